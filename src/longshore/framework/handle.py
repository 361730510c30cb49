"""What the engine offers to plugins and controllers, apart from calling them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from longshore.api import Pod
from longshore.cluster import ClusterState, OneNode, PodInfo
from longshore.framework.controllers import Controller
from longshore.framework.cycle_state import CycleState
from longshore.framework.effects import Tell
from longshore.framework.points import Plugin
from longshore.framework.status import Status

# Called with a pod before and after a change: None before it was added, and after it was deleted.
PodListener = Callable[[Pod | None, Pod | None], None]


class Handle(Protocol):
    """The engine as the plugins of one profile see it. The factory of a plugin gets it.

    A plugin must not keep what a method returns longer than the call in which it asked.
    """

    @property
    def cluster(self) -> ClusterState:
        """The state of the cluster. Plugins must not change it."""
        ...

    def now(self) -> float:
        """Return the engine's time in seconds. A plugin must not read any other clock."""
        ...

    @property
    def wall_time(self) -> float:
        """The engine's time as seconds since 1970, for timestamps that people and other programs read."""
        ...

    def stopwatch(self) -> float:
        """Return seconds that advance even during a call, unlike `now`.

        They are for computations with a time budget. No other decision may depend on them.
        """
        ...

    # For plugins that evaluate what would happen.

    def filter_node(self, state: CycleState, pod: PodInfo, node: OneNode) -> Status | None:
        """Return what the profile's filters say about the pod on the node, including hypothetical pods.

        As in an attempt, nominated pods of equal or higher priority count as if they were on the node.
        """
        ...

    def looks_at_one_node(self, state: CycleState, pod: PodInfo) -> bool:
        """Whether every filter that takes part in the attempt depends on one node at a time."""
        ...

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: OneNode) -> Status | None:
        """Add a pod to the node hypothetically: to `node` and to the state of all PreFilters."""
        ...

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: OneNode) -> Status | None:
        """Remove a pod from the node hypothetically: from `node` and from the state of all PreFilters."""
        ...

    # For plugins that hold pods back.

    def waiting_pods(self) -> Mapping[str, str]:
        """Return the pods that are held in Permit: the node of each by UID."""
        ...

    def allow(self, uid: str, plugin: str) -> None:
        """Release a pod that this plugin holds in Permit. It is bound when no plugin holds it."""
        ...

    def reject(self, uid: str, plugin: str, message: str) -> None:
        """Reject a pod that is held in Permit. It goes back to the queue."""
        ...

    def activate(self, pods: Iterable[Pod]) -> None:
        """Schedule these queued pods as soon as possible, without backoff."""
        ...

    def hold(self, pods: Iterable[Pod]) -> None:
        """Stop scheduling these queued pods, because the plugin's PreEnqueue rejects them from now on.

        A pod whose bind has failed gives up the room that was kept for it. Attempts in progress continue.
        """
        ...

    def in_flight(self, pod: Pod) -> bool:
        """Whether an attempt of the pod is in progress: it is being scheduled or bound, or held in Permit."""
        ...

    def take_back_nomination(self, pod: Pod) -> None:
        """Withdraw the pod's nomination. Pods that had to leave the room free are scheduled again."""
        ...

    # For plugins with a state of their own.

    def tell(self, effect: Tell) -> None:
        """Inform people through an event, a condition or a nomination. There is no answer."""
        ...

    def on_pod_change(self, listener: PodListener, plugin: str) -> None:
        """Call the listener after each change of a pod, when the cluster state contains the change.

        If the listener raises or takes too long, an event of the pod says so under the plugin's name,
        provided that the pod waits in the queue. The pod is scheduled nevertheless.
        """
        ...

    def control(self, controller: Controller) -> None:
        """Run the controller: call it for all changes, and perform its errands."""
        ...

    @property
    def controllers(self) -> tuple[Controller, ...]:
        """All controllers of the engine so far, including those of other profiles."""
        ...


# Makes a plugin from its arguments in the configuration, or None for the defaults, and from the handle.
Factory = Callable[[Any, Handle], Plugin]
