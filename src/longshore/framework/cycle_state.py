"""What plugins remember during one attempt to schedule a pod."""

from collections.abc import Set
from typing import Any, Protocol, Self, runtime_checkable


@runtime_checkable
class Cloneable(Protocol):
    def clone(self) -> Self:
        """A copy that can be changed without the original noticing."""
        ...


class CycleState(dict[str, Any]):
    """Values by key, most often the plugin's name: written in one point, read in a later one.

    It begins empty with each attempt and is gone with its end. `memo` lives longer: attempts of pods with
    equal namespace, labels, owner and spec share it, so what a plugin works out of those alone belongs there.
    """

    def __init__(self, memo: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.memo: dict[str, Any] = {} if memo is None else memo
        # Plugins whose filter, and whose score, has nothing to say about the pod.
        self.skip_filter: Set[str] = frozenset()
        self.skip_score: Set[str] = frozenset()

    def clone(self) -> "CycleState":
        """For trying out another set of pods: values that can be cloned are, others are shared."""
        other = CycleState(self.memo)
        other.skip_filter = self.skip_filter
        other.skip_score = self.skip_score
        for key, value in self.items():
            other[key] = value.clone() if isinstance(value, Cloneable) else value
        return other
