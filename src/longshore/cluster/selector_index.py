"""Selectors by what the pods they select must have, so that a pod is not held against each of them.

Most selectors name a namespace and the value of a label, and hardly any pod has both.
"""

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from longshore.cluster.terms import PodSelector

T = TypeVar("T")

# A namespace and a label with its value; None where the selector does not insist on one.
_Place = tuple[str | None, tuple[str, str] | None]


class SelectorIndex(Generic[T]):
    """Things (each once) that stand for pods, by a selector that all of these pods match."""

    def __init__(self) -> None:
        self._places: dict[_Place, dict[T, None]] = {}

    def add(self, selector: PodSelector, thing: T) -> None:
        for place in _places(selector):
            self._places.setdefault(place, {})[thing] = None

    def remove(self, selector: PodSelector, thing: T) -> None:
        for place in _places(selector):
            things = self._places[place]
            del things[thing]
            if not things:
                del self._places[place]

    def candidates(self, namespace: str, labels: Mapping[str, str]) -> Iterator[T]:
        """All those whose selector may select a pod in the namespace and with the labels."""
        for where in (namespace, None):
            yield from self._places.get((where, None), ())
            for label in labels.items():
                yield from self._places.get((where, label), ())


def _places(selector: PodSelector) -> list[_Place]:
    namespaces = selector.namespaces if selector.namespace_selector is None else (None,)
    label = _label(selector)
    return [(namespace, label) for namespace in namespaces]


def _label(selector: PodSelector) -> tuple[str, str] | None:
    """A label that all of the selected pods have."""
    labels = selector.labels
    if labels is None:
        return None
    if labels.match_labels:
        # Of equal selectors the same one, in whichever order they were written.
        return min(labels.match_labels.items())
    return next(
        ((r.key, r.values[0]) for r in labels.match_expressions if r.operator == "In" and len(r.values) == 1),
        None,
    )
