"""Who wants to know what the engine does and how long it takes: metrics, most often.

The engine reads no clock. An observer may have one, for measurements alone: no decision depends on it.
"""

from collections.abc import Callable
from typing import Literal, Protocol

from longshore.engine.decision.chooser import Placement, Unplaced
from longshore.engine.queue.entry import QueueEntry
from longshore.framework import Code, Status

Result = Literal["scheduled", "unschedulable", "error"]


class Observer(Protocol):
    """Told as things happen, in the midst of decisions: it has to be quick, and must not raise."""

    def attempt_begins(self, entry: QueueEntry) -> Callable[[], None] | None:
        """May note the time in `entry.began`. What it returns is called when the attempt first rests."""
        ...

    def decided(self, entry: QueueEntry, decision: Placement | Unplaced | Status) -> None:
        """The node is chosen; or there is none, and the PostFilters have had their say."""
        ...

    def attempt_ended(self, entry: QueueEntry, result: Result, *, now: float) -> None:
        """The pod is bound, or will need another attempt."""
        ...

    def bind_answered(self, profile: str, seconds: float, *, bound: bool) -> None:
        """Of an attempt for whose rest it asked to be called."""
        ...

    def permit_waited(self, seconds: float, code: Code) -> None:
        """A pod that waited for a permission has got it, or has been refused."""
        ...

    def post_filtered(self, plugin: str) -> None:
        """The plugin was asked for a way out."""
        ...

    def preempted(self, victims: int) -> None:
        """So many pods will be evicted for one."""
        ...

    def queued(self, place: str, why: str) -> None:
        """A pod has come to a place of the queue."""
        ...

    def planned(self, planner: str, seconds: float, *, placed: int, left_out: int) -> None:
        """So many pods of a set have a node in the plan of this planner."""
        ...


class Unobserved:
    """Nobody wants to know."""

    def attempt_begins(self, entry: QueueEntry) -> Callable[[], None] | None: ...

    def decided(self, entry: QueueEntry, decision: Placement | Unplaced | Status) -> None: ...

    def attempt_ended(self, entry: QueueEntry, result: Result, *, now: float) -> None: ...

    def bind_answered(self, profile: str, seconds: float, *, bound: bool) -> None: ...

    def permit_waited(self, seconds: float, code: Code) -> None: ...

    def post_filtered(self, plugin: str) -> None: ...

    def preempted(self, victims: int) -> None: ...

    def queued(self, place: str, why: str) -> None: ...

    def planned(self, planner: str, seconds: float, *, placed: int, left_out: int) -> None: ...
