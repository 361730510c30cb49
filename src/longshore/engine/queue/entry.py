"""A pod in the scheduling queue, and what the queue asks plugins about it."""

import enum
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from longshore.api import Pod
from longshore.framework import Status, WakeOn

if TYPE_CHECKING:
    from longshore.engine.queue.unschedulable import Cause

NO_PLUGINS: frozenset[str] = frozenset()


class Place(enum.StrEnum):
    """Where a pod waits. The values are the names in metrics."""

    # Tried in the order of the QueueSort plugin.
    ACTIVE = "active"
    # Tried when its time has come, or earlier if no other pod is active.
    BACKOFF = "backoff"
    # Rejected; tried when an event happens that may help it.
    UNSCHEDULABLE = "unschedulable"
    # Kept out by a PreEnqueue plugin.
    GATED = "gated"
    # Being tried or bound.
    IN_FLIGHT = "in flight"


@dataclass(eq=False, slots=True)
class QueueEntry:
    """A pod that needs a node, in its newest version."""

    pod: Pod
    # When it came, or when its last attempt failed.
    timestamp: float
    # When it was first let in. The time before, while it was gated, does not count.
    added: float
    attempts: int = 0
    # These determine the backoff: attempts that plugins rejected, and errors since the last of those.
    rejections: int = 0
    errors: int = 0
    # The plugins that rejected it in its last attempt, and those of them that said Pending.
    rejectors: frozenset[str] = NO_PLUGINS
    pending: frozenset[str] = NO_PLUGINS
    # The plugin that keeps it out of the queue, or empty.
    gated_by: str = ""
    # When its last attempt began, by the observer's clock.
    began: float = 0.0
    # Whether the observer measures this attempt.
    measured: bool = False
    # What pods of its shape have in common; None before its first attempt and after it changes.
    shape_key: bytes | None = None

    # The queue's own notes.
    place: Place = Place.ACTIVE
    sort_key: Any = None
    # Number of the heap item that stands for it; items with another number are leftovers.
    ticket: int = 0
    # Shared by all pods that wait for an event because of the same plugins; None if it does not wait for one.
    cause: "Cause | None" = None
    # Its group within the cause, and its number among all pods that ever waited for an event.
    group: Hashable = None
    came: int = 0
    # When it will have waited for too long; None if there is no limit.
    overdue: float | None = None
    # How many events had been noted when its attempt began.
    noted: int = 0
    # While it was in flight, it stopped being a pod for us to schedule.
    withdrawn: bool = False

    def renew(self, pod: Pod) -> None:
        """Take in a newer version, which we have to schedule."""
        if self.shape_key is not None and _shape_of(self.pod) != _shape_of(pod):
            self.shape_key = None
        self.pod = pod
        self.withdrawn = False


class QueuePlugins(Protocol):
    """The plugins that the queue asks. The pod's scheduler name determines the profile."""

    def pre_enqueue(self, pod: Pod, first: str) -> Status | None:
        """Ask the PreEnqueue plugins; return the first refusal, with the name of its plugin.

        `first`, the plugin that gated the pod before, is asked before the others; empty if none did.
        """
        ...

    def sort_key(self, pod: Pod, since: float) -> Any:
        """Return the key that orders active pods: the pod with the lowest key is tried first."""
        ...

    def wakes(self, pod: Pod, plugin: str) -> Sequence[WakeOn] | None:
        """Return what the plugin wakes on; None means any event, also for a name that is no plugin's.

        The answer is kept, so it must be the same each time for the same profile.
        """
        ...


def _shape_of(pod: Pod) -> tuple[object, ...]:
    return pod.spec, pod.metadata.labels, pod.metadata.owner_references
