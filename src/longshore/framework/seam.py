"""The seam between an engine and a cluster: everything outside of the engine is behind this one protocol.

The real cluster (`longshore.kube.cluster`), the simulated one (`longshore.sim.cluster`) and a recorded one
(`longshore.sim.recorded`) are equals: whatever runs on one of them runs on the others.
"""

from collections.abc import Callable, Collection
from typing import Any, Protocol

from longshore.api import (
    Change,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
    StorageClass,
    VolumeAttachment,
)
from longshore.api.meta import ApiObject
from longshore.framework.effects import Operation, Outcome, Tell

# The kinds that the default plugins read. A controller names further ones in its `watches`.
FOLLOWED_KINDS: tuple[type[ApiObject], ...] = (
    Pod,
    Node,
    Namespace,
    Service,
    ReplicationController,
    ReplicaSet,
    StatefulSet,
    PodDisruptionBudget,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    CSINode,
    CSIDriver,
    CSIStorageCapacity,
    VolumeAttachment,
)

# Ends a watch, or gives up an operation. Calling it a second time, or too late, does nothing.
Cancel = Callable[[], object]


def ignore() -> None:
    """Do nothing: for callers that do not need to know."""


class Cluster(Protocol):
    """Where objects are watched and operations are performed.

    All methods return at once. Callbacks come from the same thread, one at a time, and must return at once.
    """

    def watch(
        self,
        kinds: Collection[type[ApiObject]],
        on_change: Callable[[Change[Any]], None],
        on_synced: Callable[[], None] = ignore,
    ) -> Cancel:
        """Report the objects of these kinds that exist, each as an addition, and then every change of them.

        The changes of one object come in the order in which they happened; those of different objects may
        come in any order. Versions may be left out, so the old object of a change is the one that was
        reported last. An object that took the name of a deleted one is reported as a deletion and an
        addition, even if it was not seen. `on_synced` is called once, after every object that existed
        at the beginning was reported. A kind that the cluster does not have counts as having no objects until
        it is installed. After cancellation nothing more is reported.
        """
        ...

    def perform(self, operation: Operation, on_outcome: Callable[[Outcome], None]) -> Cancel:
        """Perform the operation, and call `on_outcome` exactly once, after this method has returned.

        What the cluster refuses is an outcome too, and no exception escapes. If the answer of the API server
        is lost, the outcome says what is known: the object is read, where that can tell whether the write
        has landed; otherwise the outcome is `Failed`, and the write may have landed all the same. A change
        may be reported to watches before or after the outcome of the operation that made it. After
        cancellation there is no outcome, and it is unknown whether the operation lands.
        """
        ...

    def report(self, tell: Tell) -> None:
        """Inform people. There is no answer, and a report may be lost without notice."""
        ...

    def close(self) -> None:
        """Cancel all watches and operations. What is asked for afterwards is ignored, without an outcome."""
        ...
