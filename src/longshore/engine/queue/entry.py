"""A waiting pod, and what the queue asks of the plugins about it."""

import enum
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from longshore.api import Pod
from longshore.framework import Status, WakeOn

if TYPE_CHECKING:
    from longshore.engine.queue.unschedulable import Cause

NOBODY: frozenset[str] = frozenset()


class Place(enum.StrEnum):
    """Where a pod waits, by the name that metrics use."""

    # To be tried, in the order of the profile.
    ACTIVE = "active"
    # To be tried when its time has come, or as soon as nothing else is to be tried.
    BACKOFF = "backoff"
    # Rejected; to be tried when something happens that may help it.
    UNSCHEDULABLE = "unschedulable"
    # Kept out by a PreEnqueue plugin.
    GATED = "gated"
    # Being tried, or its bind is under way.
    IN_FLIGHT = "in flight"


@dataclass(eq=False, slots=True)
class Entry:
    """A waiting pod in its newest version."""

    pod: Pod
    # When it came in, or when its last attempt failed.
    timestamp: float
    # When it was first let in: the time before, during which it was gated, does not count.
    added: float
    attempts: int = 0
    # What backoff counts: attempts that plugins rejected, and errors since the last of these.
    rejections: int = 0
    errors: int = 0
    # The plugins that rejected it the last time; of these, the ones that said Pending.
    rejectors: frozenset[str] = NOBODY
    pending: frozenset[str] = NOBODY
    # The plugin that keeps it out, or nothing.
    gated_by: str = ""
    # When its last attempt began, by the clock of whoever measures.
    began: float = 0.0
    # Whether the observer measures this attempt.
    measured: bool = False
    # What it has in common with pods of its shape; None before its first attempt, and when that changes.
    shape_key: bytes | None = None

    # From here on, what the queue notes down for itself.
    place: Place = Place.ACTIVE
    sort_key: Any = None
    # Number of the heap item that stands for this entry; items with another number are leftovers.
    ticket: int = 0
    # Shared with all pods that are set aside for the same reason; None if it is not set aside.
    cause: "Cause | None" = None
    # What it has in common with others that are set aside, and its number among all that ever were.
    kin: Hashable = None
    came: int = 0
    # When it will have been set aside for too long; None if it may stay.
    overdue: float | None = None
    # How many events had been noted when its flight began.
    noted: int = 0
    # It stopped being ours to schedule during its flight.
    withdrawn: bool = False

    def renew(self, pod: Pod) -> None:
        """There is a newer version, and it is ours to schedule."""
        if self.shape_key is not None and _made_of(self.pod) != _made_of(pod):
            self.shape_key = None
        self.pod = pod
        self.withdrawn = False


class Profiles(Protocol):
    """The plugins of all profiles; which one counts is decided by the pod's scheduler name."""

    def pre_enqueue(self, pod: Pod, first: str) -> Status | None:
        """What the PreEnqueue plugins say, with the name of the one that refused.

        `first`, the one that gated the pod before, is asked first; empty if none did.
        """
        ...

    def sort_key(self, pod: Pod, since: float) -> Any:
        """The pod with the lower key is tried first."""
        ...

    def wakes(self, pod: Pod, plugin: str) -> Sequence[WakeOn] | None:
        """What the plugin wakes on; None, also for names that are no plugin's: any event.

        The answer is kept: it must be the same each time for the same profile.
        """
        ...


def _made_of(pod: Pod) -> tuple[object, ...]:
    return pod.spec, pod.metadata.labels, pod.metadata.owner_references
