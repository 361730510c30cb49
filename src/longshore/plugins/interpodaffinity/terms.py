"""The affinity terms of the incoming pod, and sums by domain for them."""

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from longshore.api import InvalidSelector, LabelSelector, Pod, selects
from longshore.cluster import PodSelector, Term, Terms
from longshore.cluster.arrays import Bools, Ints, Rows
from longshore.cluster.domains import Domains
from longshore.framework import CycleState

_ALL_NAMESPACES = LabelSelector()


class Incoming(msgspec.Struct, frozen=True):
    """The terms of the incoming pod, as they are matched with the pods on the nodes.

    `companions`: the selectors that a pod must all match to fulfill the affinity. `near`: the topology keys
    in whose domains such a pod is required. `problem`: why the terms are invalid.
    """

    terms: Terms
    companions: tuple[PodSelector, ...] = ()
    near: tuple[str, ...] = ()
    # Whether anything is required, rather than preferred.
    required: bool = False
    problem: str = ""

    @classmethod
    def of(cls, state: CycleState, pod: Pod, key: str) -> "Incoming":
        found: Incoming | None = state.memo.get(key)
        if found is None:
            found = state.memo[key] = _incoming(pod)
        return found


class Sums:
    """Numbers by domain, for several keys."""

    __slots__ = ("_by_key",)

    def __init__(self, by_key: Mapping[str, tuple[Domains, Ints]]) -> None:
        self._by_key = dict(by_key)

    @classmethod
    def of(cls, columns: Iterable[tuple[Domains, Ints]]) -> "Sums":
        """Sum up columns with one number for each row. Columns with the same key are added."""
        by_row: dict[str, tuple[Domains, Ints]] = {}
        for domains, column in columns:
            _, before = by_row.get(domains.key, (domains, None))
            by_row[domains.key] = domains, column if before is None else before + column
        return cls({key: (domains, domains.sums(column)) for key, (domains, column) in by_row.items()})

    def __bool__(self) -> bool:
        """Whether any sum is not 0."""
        return any(sums.any() for _, sums in self._by_key.values())

    def values(self) -> Iterable[tuple[Domains, Ints]]:
        return self._by_key.values()

    def copy(self) -> "Sums":
        # A change replaces the arrays, so copies can share them.
        return Sums(self._by_key)

    def change(self, domains: Domains, row: int, number: int) -> None:
        """Add a number to the domain of the row."""
        domain = domains.ids[row]
        if domain != domains.outside:
            _, before = self._by_key.get(domains.key, (domains, None))
            sums = np.zeros(domains.outside + 1, np.int64) if before is None else before.copy()
            sums[domain] += number
            self._by_key[domains.key] = domains, sums

    def positive(self, rows: Rows) -> Bools | None:
        """Return the rows with a positive sum for at least one key; None if there are no keys."""
        return _any(domains.at(sums, rows) > 0 for domains, sums in self._by_key.values())

    def missing(self, rows: Rows) -> Bools | None:
        """Return the rows with no positive sum, or no domain, for at least one key."""
        return _any(domains.at(sums, rows) <= 0 for domains, sums in self._by_key.values())

    def lacking(self, rows: Rows) -> Bools | None:
        """Return the rows whose node lacks at least one of the keys."""
        return _any(domains.lacking(rows) for domains, _ in self._by_key.values())


def _any(parts: Iterable[Bools]) -> Bools | None:
    found: Bools | None = None
    for part in parts:
        found = part if found is None else found | part
    return found


def _incoming(pod: Pod) -> Incoming:
    try:
        terms = Terms.of(pod)
    except InvalidSelector as error:
        return Incoming(Terms(), problem=f"parsing pod: {error}")
    if not terms:
        return Incoming(terms)
    sorts = (terms.affinity, terms.anti_affinity, terms.preferred)
    terms = Terms(*(tuple(map(_as_incoming, of_a_sort)) for of_a_sort in sorts))
    return Incoming(
        terms,
        tuple(term.selector for term in terms.affinity),
        tuple({term.topology_key: None for term in terms.affinity}),
        bool(terms.affinity or terms.anti_affinity),
    )


def _as_incoming(term: Term) -> Term:
    """Return the term as kube-scheduler applies it to an incoming pod.

    A namespace selector that matches a namespace without labels selects all namespaces.

    kube-scheduler looks up the namespaces that the selector selects, but then also matches the selector with
    each pod as if its namespace had no labels. The terms of pods on nodes are applied as written.
    """
    selector = term.selector
    if selector.namespace_selector is None or not selects(selector.namespace_selector, {}):
        return term
    anywhere = PodSelector.of((), selector.labels, namespace_selector=_ALL_NAMESPACES)
    return msgspec.structs.replace(term, selector=anywhere)
