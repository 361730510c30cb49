"""The interface for observers of the engine, such as metrics.

The engine reads no clock. An observer may have one to measure with, because no decision depends on it.
"""

from collections.abc import Callable
from typing import Literal, Protocol

from longshore.engine.decision.chooser import Placement, Unplaced
from longshore.engine.queue.entry import QueueEntry
from longshore.framework import Code, Status

Result = Literal["scheduled", "unschedulable", "error"]


class Observer(Protocol):
    """Called in the middle of decisions, so the methods must be quick and must not raise."""

    def attempt_begins(self, entry: QueueEntry) -> Callable[[], None] | None:
        """May set `entry.began`. To measure the attempt, return a function to call when it first waits."""
        ...

    def decided(self, entry: QueueEntry, decision: Placement | Unplaced | Status) -> None:
        """The node is chosen; or no node fits, and the PostFilters were called."""
        ...

    def attempt_ended(self, entry: QueueEntry, result: Result, *, now: float) -> None:
        """The pod is bound, or needs another attempt."""
        ...

    def bind_answered(self, profile: str, seconds: float, *, bound: bool) -> None:
        """The bind ended. Called only for attempts that `attempt_begins` chose to measure."""
        ...

    def permit_waited(self, seconds: float, code: Code) -> None:
        """A pod that waited on Permit was allowed or rejected."""
        ...

    def post_filtered(self, plugin: str) -> None:
        """A PostFilter plugin is about to be called."""
        ...

    def preempted(self, victims: int) -> None:
        """This many pods are evicted to make room for one."""
        ...

    def queued(self, place: str, why: str) -> None:
        """A pod came to a place of the queue."""
        ...

    def planned(self, planner: str, seconds: float, *, placed: int, left_out: int) -> None:
        """A planner made a plan for a pod set, in which this many pods have a node."""
        ...


class Unobserved:
    """An observer that does nothing."""

    def attempt_begins(self, entry: QueueEntry) -> Callable[[], None] | None: ...

    def decided(self, entry: QueueEntry, decision: Placement | Unplaced | Status) -> None: ...

    def attempt_ended(self, entry: QueueEntry, result: Result, *, now: float) -> None: ...

    def bind_answered(self, profile: str, seconds: float, *, bound: bool) -> None: ...

    def permit_waited(self, seconds: float, code: Code) -> None: ...

    def post_filtered(self, plugin: str) -> None: ...

    def preempted(self, victims: int) -> None: ...

    def queued(self, place: str, why: str) -> None: ...

    def planned(self, planner: str, seconds: float, *, placed: int, left_out: int) -> None: ...
