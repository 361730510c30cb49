"""What plugins remember during one attempt to schedule a pod."""

from collections.abc import Set
from typing import Any, Protocol, Self, runtime_checkable


@runtime_checkable
class Cloneable(Protocol):
    def clone(self) -> Self:
        """Return a copy that can be changed without changing the original."""
        ...


class CycleState(dict[str, Any]):
    """Values that plugins write at one extension point and read at a later one, usually under their names.

    Each attempt begins with an empty state. Attempts of pods with equal namespace, labels, owner and spec
    share `memo`, so a plugin can keep there what it computes from these alone.
    """

    def __init__(self, memo: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.memo: dict[str, Any] = {} if memo is None else memo
        # The names of the plugins whose Filter, or whose Score, is not called for the pod.
        self.skip_filter: Set[str] = frozenset()
        self.skip_score: Set[str] = frozenset()

    def clone(self) -> "CycleState":
        """Return a copy for hypothetical changes. It shares the values that have no `clone` method."""
        other = CycleState(self.memo)
        other.skip_filter = self.skip_filter
        other.skip_score = self.skip_score
        for key, value in self.items():
            other[key] = value.clone() if isinstance(value, Cloneable) else value
        return other
