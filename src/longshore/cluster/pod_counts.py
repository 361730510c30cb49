"""How many pods of which kind are on each row: what spreading and affinity between pods ask for.

Pods with equal namespace and labels are one *group*; so are the pods that carry an equal affinity term. A
group knows how many of its pods are on which rows. A *tally* is the sum of some groups as a column, made when
someone first asks for it and kept in step from then on, so that placing a pod costs a few additions and
asking costs next to nothing.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

import numpy as np

from longshore.api import Pod
from longshore.cluster.arrays import Ints
from longshore.cluster.selector_index import SelectorIndex
from longshore.cluster.terms import PodSelector, Term, Terms

# Tallies kept of a sort; past the limit the one asked for longest ago goes.
_TALLIES = 512


class Tally:
    """A column of counts, kept in step with its groups. To be asked for anew in each attempt."""

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
        """The group has come to nothing."""
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
    """Pods of one kind: how many are on which row, and the tallies they count in."""

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
        # Any of the group: they have the same namespace and labels.
        self.pod = pod


# Namespace, whether it is about to go, and labels.
_Kind = tuple[object, ...]
# Pods that all of the selectors select.
_Selection = tuple[PodSelector, ...]

K = TypeVar("K")


def _kind(pod: Pod) -> _Kind:
    meta = pod.metadata
    return (meta.namespace, meta.deletion_timestamp is not None, *sorted(meta.labels.items()))


def _recent(tallies: dict[K, Tally], key: K) -> Tally | None:
    """The tally, if it is kept; it becomes the last in the order of insertion."""
    tally = tallies.pop(key, None)
    if tally is not None:
        tallies[key] = tally
    return tally


class _Terms:
    """The pods on the nodes by the terms of one sort that they carry."""

    def __init__(self) -> None:
        self._groups: dict[Term, _Group] = {}
        self._tallies: dict[Term, Tally] = {}
        self._index = SelectorIndex[Term]()

    def about(self, pod: Pod, census: "Census") -> list[tuple[Term, Tally]]:
        """The terms that select the pod, and where the pods are that carry them."""
        if not self._groups:
            return []
        meta = pod.metadata
        return [
            (term, self._carriers(term, census.size))
            for term in self._index.candidates(meta.namespace, meta.labels)
            if census.selects(term.selector, pod)
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


class Census:
    def __init__(self) -> None:
        self.size = 0
        # By namespace, since most selectors are about a single one.
        self._groups: dict[str, dict[_Kind, _LabelGroup]] = {}
        self._affinity = _Terms()
        self._anti_affinity = _Terms()
        self._preferred = _Terms()
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._tallies: dict[_Selection, Tally] = {}
        self._index = SelectorIndex[_Selection]()

    # What plugins ask.

    def pods(self, *selectors: PodSelector) -> Tally:
        """How many pods there are that all of the selectors select.

        One that leaves out terminating pods does so for all of them.
        """
        tally = _recent(self._tallies, selectors)
        return self._make(selectors) if tally is None else tally

    def selects(self, selector: PodSelector, pod: Pod) -> bool:
        """Whether the pod is among the selected ones, wherever it is."""
        meta = pod.metadata
        return selector.selects(meta.namespace, self.namespace_labels(meta.namespace), meta.labels)

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Empty for a namespace that nobody told of."""
        return self._namespaces.get(namespace, {})

    def anti_affinity_against(self, pod: Pod) -> list[tuple[Term, Tally]]:
        """Terms by which pods on the nodes require the pod to stay away, and where those pods are."""
        return self._anti_affinity.about(pod, self)

    def affinity_towards(self, pod: Pod) -> list[tuple[Term, Tally]]:
        """Terms by which pods on the nodes require the company of pods like this."""
        return self._affinity.about(pod, self)

    def preferences_about(self, pod: Pod) -> list[tuple[Term, Tally]]:
        """Terms by which pods on the nodes prefer the pod to be near, or far."""
        return self._preferred.about(pod, self)

    # What changes it.

    def add(self, pod: Pod, terms: Terms, row: int) -> None:
        self._count(pod, terms, row, 1)

    def remove(self, pod: Pod, terms: Terms, row: int) -> None:
        self._count(pod, terms, row, -1)

    def put_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """The namespace is new, has changed, or is gone."""
        before = self.namespace_labels(name)
        if labels is None:
            self._namespaces.pop(name, None)
        else:
            self._namespaces[name] = labels
        if before == self.namespace_labels(name):
            return
        # Which pods are selected may be others now.
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
