"""How many pods of each kind are on each row, for topology spread and inter-pod affinity.

The pods with the same namespace and labels are one *group*; so are the pods that carry the same affinity
term. A group knows how many of its pods are on which rows. A *tally* is the sum of some groups as a column.
It is computed on first use and updated from then on, so that placing a pod costs a few additions and reading
the counts costs almost nothing.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

import numpy as np

from longshore.api import Pod
from longshore.cluster.arrays import Ints
from longshore.cluster.selector_index import SelectorIndex
from longshore.cluster.terms import PodSelector, Term, Terms

# The most tallies of each sort that are kept; beyond the limit, the least recently used one is dropped.
_TALLIES = 512


class Tally:
    """A column of counts that is updated with its groups. Ask for it again in each scheduling attempt."""

    __slots__ = ("_groups", "by_row", "total")

    def __init__(self, size: int) -> None:
        self.by_row: Ints = np.zeros(size, np.int64)
        self.total = 0
        self._groups: set[_Group] = set()

    def join(self, group: "_Group") -> None:
        for row, number in group.rows.items():
            self.add(row, number)
        group.tallies.append(self)
        self._groups.add(group)

    def leave(self, group: "_Group") -> None:
        """Drop a group that has no pods left."""
        self._groups.discard(group)

    def close(self) -> None:
        for group in self._groups:
            group.tallies.remove(self)

    def add(self, row: int, number: int) -> None:
        self.by_row[row] += number
        self.total += number

    def resize(self, size: int) -> None:
        more: Ints = np.zeros(size - len(self.by_row), np.int64)
        self.by_row = np.concatenate([self.by_row, more])


class _Group:
    """Pods of one kind: how many are on which row, and the tallies that include them."""

    __slots__ = ("rows", "tallies")

    def __init__(self) -> None:
        self.rows: dict[int, int] = {}
        self.tallies: list[Tally] = []

    def add(self, row: int, number: int) -> None:
        count = self.rows.get(row, 0) + number
        if count:
            self.rows[row] = count
        else:
            del self.rows[row]
        for tally in self.tallies:
            tally.add(row, number)


class _LabelGroup(_Group):
    __slots__ = ("pod",)

    def __init__(self, pod: Pod) -> None:
        super().__init__()
        # Any pod of the group: all have the same namespace and labels.
        self.pod = pod


# Namespace, whether the pod is terminating, and labels.
_Kind = tuple[object, ...]
# The pods that match all of the selectors.
_Selection = tuple[PodSelector, ...]

K = TypeVar("K")


def _kind(pod: Pod) -> _Kind:
    meta = pod.metadata
    return (meta.namespace, meta.deletion_timestamp is not None, *sorted(meta.labels.items()))


def _recent(tallies: dict[K, Tally], key: K) -> Tally | None:
    """Return the tally if it exists, and mark it as most recently used by moving it to the end."""
    tally = tallies.pop(key, None)
    if tally is not None:
        tallies[key] = tally
    return tally


class _Terms:
    """The pods on the nodes, by the affinity terms of one sort that they carry."""

    def __init__(self) -> None:
        self._groups: dict[Term, _Group] = {}
        self._tallies: dict[Term, Tally] = {}
        self._index = SelectorIndex[Term]()

    def about(self, pod: Pod, pod_counts: "PodCounts") -> list[tuple[Term, Tally]]:
        """Return the terms that select the pod, each with the counts of the pods that carry it."""
        if not self._groups:
            return []
        meta = pod.metadata
        return [
            (term, self._carriers(term, pod_counts.size))
            for term in self._index.candidates(meta.namespace, meta.labels)
            if pod_counts.selects(term.selector, pod)
        ]

    def count(self, terms: Iterable[Term], row: int, number: int) -> None:
        """Count a pod that carries the terms."""
        for term in terms:
            group = self._groups.get(term)
            if group is None:
                group = self._groups[term] = _Group()
                self._index.add(term.selector, term)
            group.add(row, number)
            if not group.rows:
                del self._groups[term]
                self._index.remove(term.selector, term)
                self._tallies.pop(term, None)

    def resize(self, size: int) -> None:
        for tally in self._tallies.values():
            tally.resize(size)

    def _carriers(self, term: Term, size: int) -> Tally:
        tally = _recent(self._tallies, term)
        if tally is None:
            if len(self._tallies) >= _TALLIES:
                self._tallies.pop(next(iter(self._tallies))).close()
            tally = self._tallies[term] = Tally(size)
            tally.join(self._groups[term])
        return tally


class PodCounts:
    def __init__(self) -> None:
        self.size = 0
        # By namespace, because most selectors name a single one.
        self._groups: dict[str, dict[_Kind, _LabelGroup]] = {}
        self._affinity = _Terms()
        self._anti_affinity = _Terms()
        self._preferred = _Terms()
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._tallies: dict[_Selection, Tally] = {}
        self._index = SelectorIndex[_Selection]()

    # What plugins read.

    def pods(self, *selectors: PodSelector) -> Tally:
        """Return the counts of the pods that match all of the selectors.

        If one of the selectors excludes terminating pods, they are not counted.
        """
        tally = _recent(self._tallies, selectors)
        return self._make(selectors) if tally is None else tally

    def selects(self, selector: PodSelector, pod: Pod) -> bool:
        """Whether the selector selects the pod, wherever it is."""
        meta = pod.metadata
        return selector.selects(meta.namespace, self.namespace_labels(meta.namespace), meta.labels)

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Return the labels of the namespace; none if the namespace is unknown."""
        return self._namespaces.get(namespace, {})

    def anti_affinity_against(self, pod: Pod) -> list[tuple[Term, Tally]]:
        """Return the required anti-affinity terms of placed pods that select the pod, each with counts."""
        return self._anti_affinity.about(pod, self)

    def affinity_towards(self, pod: Pod) -> list[tuple[Term, Tally]]:
        """Return the required affinity terms of placed pods that select the pod, each with counts."""
        return self._affinity.about(pod, self)

    def preferences_about(self, pod: Pod) -> list[tuple[Term, Tally]]:
        """Return the preferred terms of placed pods that select the pod, each with counts."""
        return self._preferred.about(pod, self)

    # Updates.

    def add(self, pod: Pod, terms: Terms, row: int) -> None:
        self._count(pod, terms, row, 1)

    def remove(self, pod: Pod, terms: Terms, row: int) -> None:
        self._count(pod, terms, row, -1)

    def put_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """Store the labels of a namespace that is new, has changed, or is gone (None)."""
        before = self.namespace_labels(name)
        if labels is None:
            self._namespaces.pop(name, None)
        else:
            self._namespaces[name] = labels
        if before == self.namespace_labels(name):
            return
        # Selectors by namespace may now select other pods.
        for selectors in [s for s in self._tallies if any(each.namespace_selector for each in s)]:
            self._drop(selectors)

    def resize(self, size: int) -> None:
        self.size = size
        for tally in self._tallies.values():
            tally.resize(size)
        for terms in (self._affinity, self._anti_affinity, self._preferred):
            terms.resize(size)

    def _count(self, pod: Pod, terms: Terms, row: int, number: int) -> None:
        kind, namespace = _kind(pod), pod.metadata.namespace
        groups = self._groups.setdefault(namespace, {})
        group = groups.get(kind)
        if group is None:
            group = groups[kind] = self._join(_LabelGroup(pod))
        group.add(row, number)
        if not group.rows:
            for tally in group.tallies:
                tally.leave(group)
            del groups[kind]
            if not groups:
                del self._groups[namespace]
        if terms:
            self._affinity.count(terms.affinity, row, number)
            self._anti_affinity.count(terms.anti_affinity, row, number)
            self._preferred.count(terms.preferred, row, number)

    def _join(self, group: _LabelGroup) -> _LabelGroup:
        meta = group.pod.metadata
        for selectors in self._index.candidates(meta.namespace, meta.labels):
            if self._counts(selectors, group.pod):
                self._tallies[selectors].join(group)
        return group

    def _counts(self, selectors: _Selection, pod: Pod) -> bool:
        meta = pod.metadata
        going, about = meta.deletion_timestamp is not None, self.namespace_labels(meta.namespace)
        for selector in selectors:
            if going and not selector.terminating:
                return False
            if not selector.selects(meta.namespace, about, meta.labels):
                return False
        return True

    def _make(self, selectors: _Selection) -> Tally:
        if len(self._tallies) >= _TALLIES:
            self._drop(next(iter(self._tallies)))
        tally = self._tallies[selectors] = Tally(self.size)
        first = selectors[0]
        self._index.add(first, selectors)
        for namespace in first.namespaces if first.namespace_selector is None else self._groups:
            for group in self._groups.get(namespace, {}).values():
                if self._counts(selectors, group.pod):
                    tally.join(group)
        return tally

    def _drop(self, selectors: _Selection) -> None:
        self._tallies.pop(selectors).close()
        self._index.remove(selectors[0], selectors)
