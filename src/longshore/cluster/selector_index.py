"""An index of selectors by what the selected pods must have, to avoid matching a pod against all of them.

Most selectors name a namespace and a label with its value, and very few pods have both.
"""

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from longshore.cluster.terms import PodSelector

T = TypeVar("T")

# A namespace and a label with its value; None if the selector does not require one.
_Place = tuple[str | None, tuple[str, str] | None]


class SelectorIndex(Generic[T]):
    """Items, each stored with a selector, that are found by a pod that the selector may match."""

    def __init__(self) -> None:
        self._places: dict[_Place, dict[T, None]] = {}

    def add(self, selector: PodSelector, item: T) -> None:
        for place in _places(selector):
            self._places.setdefault(place, {})[item] = None

    def remove(self, selector: PodSelector, item: T) -> None:
        for place in _places(selector):
            items = self._places[place]
            del items[item]
            if not items:
                del self._places[place]

    def candidates(self, namespace: str, labels: Mapping[str, str]) -> Iterator[T]:
        """Yield the items whose selector may match a pod with this namespace and these labels."""
        for where in (namespace, None):
            yield from self._places.get((where, None), ())
            for label in labels.items():
                yield from self._places.get((where, label), ())


def _places(selector: PodSelector) -> list[_Place]:
    namespaces = selector.namespaces if selector.namespace_selector is None else (None,)
    label = _label(selector)
    return [(namespace, label) for namespace in namespaces]


def _label(selector: PodSelector) -> tuple[str, str] | None:
    """Return a label that all pods must have to be selected, or None if the selector requires no value."""
    labels = selector.labels
    if labels is None:
        return None
    if labels.match_labels:
        # The smallest one: it must be the same for equal selectors, in whichever order they list their
        # labels.
        return min(labels.match_labels.items())
    return next(
        ((r.key, r.values[0]) for r in labels.match_expressions if r.operator == "In" and len(r.values) == 1),
        None,
    )
