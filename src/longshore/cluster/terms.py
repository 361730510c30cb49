"""Pod selectors and affinity terms as values: which pods a pod wants to be near to or far from.

Equal terms of different pods are equal values, so that the pods that carry a term can be counted together.
"""

from collections.abc import Iterable, Mapping

import msgspec

from longshore.api import InvalidSelector, LabelSelector, Pod, PodAffinity, PodAffinityTerm, selects

# The most affinities whose terms are cached; beyond the limit the cache is emptied.
_REMEMBERED = 4096


class PodSelector(msgspec.Struct, frozen=True, gc=False):
    """A selection of pods, as a value that can be compared. Create it with `of`.

    It covers the pods of `namespaces` and of the namespaces that `namespace_selector` selects.
    """

    namespaces: tuple[str, ...]
    namespace_selector: LabelSelector | None
    labels: LabelSelector | None
    # Whether terminating pods are selected too.
    terminating: bool
    key: bytes

    @classmethod
    def of(
        cls,
        namespaces: Iterable[str],
        labels: LabelSelector | None,
        *,
        namespace_selector: LabelSelector | None = None,
        terminating: bool = True,
    ) -> "PodSelector":
        """Return the selection.

        Raises `InvalidSelector` for an invalid selector, so that `selects` never does.
        """
        for selector in (labels, namespace_selector):
            selects(selector, {})
        names = tuple(sorted(set(namespaces)))
        key = _encode((names, namespace_selector, labels, terminating))
        return cls(names, namespace_selector, labels, terminating, key)

    def selects(self, namespace: str, namespace_labels: Mapping[str, str], labels: Mapping[str, str]) -> bool:
        if namespace not in self.namespaces and not selects(self.namespace_selector, namespace_labels):
            return False
        wanted = self.labels
        if wanted is None or wanted.match_expressions:
            return selects(wanted, labels)
        # Nearly all selectors are like this, and nearly all of the time is spent here.
        return wanted.match_labels.items() <= labels.items()

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, PodSelector) and self.key == other.key)


class Term(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """An affinity term of a pod: be in the same topology domain as the selected pods, or in another one.

    `weight` is the weight of a preference, negative for anti-affinity, and 0 for a required term.
    """

    selector: PodSelector
    topology_key: str
    weight: int = 0

    @classmethod
    def of(cls, namespace: str, term: PodAffinityTerm, weight: int = 0) -> "Term":
        """Return the term as a value.

        A term that names no namespaces applies to that of the pod, `namespace`.
        """
        namespaces = term.namespaces
        if not namespaces and term.namespace_selector is None:
            namespaces = (namespace,)
        selector = PodSelector.of(namespaces, term.label_selector, namespace_selector=term.namespace_selector)
        return cls(selector, term.topology_key, weight)


class Terms(msgspec.Struct, frozen=True):
    """All affinity terms of a pod."""

    affinity: tuple[Term, ...] = ()
    anti_affinity: tuple[Term, ...] = ()
    preferred: tuple[Term, ...] = ()

    @classmethod
    def of(cls, pod: Pod) -> "Terms":
        """Return the terms of the pod. Raises `InvalidSelector` for an invalid selector."""
        affinity = pod.spec.affinity
        if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
            return NO_TERMS
        # The many pods of one workload share their terms.
        namespace, near, far = pod.metadata.namespace, affinity.pod_affinity, affinity.pod_anti_affinity
        key = _encode((namespace, near, far))
        terms = _remembered.get(key)
        if terms is None:
            if len(_remembered) >= _REMEMBERED:
                _remembered.clear()
            terms = _remembered[key] = cls(
                _required(namespace, near),
                _required(namespace, far),
                _preferred(namespace, near, 1) + _preferred(namespace, far, -1),
            )
        return terms

    @classmethod
    def of_placed(cls, pod: Pod) -> "Terms":
        """Return the terms of a pod on a node; none if a selector is invalid, which an API server rejects."""
        try:
            return cls.of(pod)
        except InvalidSelector:
            return NO_TERMS

    def __bool__(self) -> bool:
        return bool(self.affinity or self.anti_affinity or self.preferred)


NO_TERMS = Terms()

_remembered: dict[bytes, Terms] = {}
_encode = msgspec.msgpack.Encoder(order="sorted").encode


def _required(namespace: str, side: PodAffinity | None) -> tuple[Term, ...]:
    terms = () if side is None else side.required_during_scheduling_ignored_during_execution
    return tuple(Term.of(namespace, term) for term in terms)


def _preferred(namespace: str, side: PodAffinity | None, sign: int) -> tuple[Term, ...]:
    terms = () if side is None else side.preferred_during_scheduling_ignored_during_execution
    return tuple(Term.of(namespace, term.pod_affinity_term, sign * term.weight) for term in terms)
