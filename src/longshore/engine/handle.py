"""What plugins may do through the engine, besides answering."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from longshore.api import Pod
from longshore.cluster import ClusterState, OneNode, PodInfo
from longshore.engine.answers.observer import Observer
from longshore.engine.decision.attempt import Attempt
from longshore.engine.decision.chooser import Chooser
from longshore.engine.decision.shapes import shape_key
from longshore.framework import CycleState, Status
from longshore.framework.controllers import Controller
from longshore.framework.effects import Tell
from longshore.framework.points import PodListener

if TYPE_CHECKING:
    from longshore.engine.engine import Engine


class EngineHandle:
    """The `Handle` of one profile's plugins. `chooser` is set when the profile is made of them.

    Plugins that plan for many pods, rather than answer about one, may use what is beyond the protocol.
    """

    chooser: Chooser

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self._last: Attempt | None = None

    @property
    def cluster(self) -> ClusterState:
        return self._engine.cluster

    def now(self) -> float:
        return self._engine.now

    @property
    def wall_time(self) -> float:
        return self._engine.wall_time

    def stopwatch(self) -> float:
        """Seconds that go on while the engine works, unlike its time."""
        return self._engine.stopwatch()

    @property
    def observer(self) -> Observer:
        """To be told what only the plugin knows."""
        return self._engine.observer

    def control(self, controller: Controller) -> None:
        """Let it hear of all changes, and have its errands run."""
        self._engine.add_controller(controller)

    @property
    def controllers(self) -> tuple[Controller, ...]:
        """All that the engine has by now, those of other profiles too."""
        return self._engine.controllers

    def filter_node(self, state: CycleState, pod: PodInfo, node: OneNode) -> Status | None:
        return self._attempt(pod).filter_with_nominated(state, node)

    def looks_at_one_node(self, state: CycleState, pod: PodInfo) -> bool:
        return all(slot.name in state.skip_filter for slot in self._attempt(pod).shape.other_filters)

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: OneNode) -> Status | None:
        self._attempt(pod).add_pod(state, added, node)
        return None

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: OneNode) -> Status | None:
        self._attempt(pod).remove_pod(state, removed, node)
        return None

    def waiting_pods(self) -> Mapping[str, str]:
        return self._engine.waiting_pods()

    def allow(self, uid: str, plugin: str) -> None:
        self._engine.allow(uid, plugin)

    def reject(self, uid: str, plugin: str, message: str) -> None:
        self._engine.reject(uid, plugin, message)

    def tell(self, effect: Tell) -> None:
        self._engine.tell(effect)

    def activate(self, pods: Iterable[Pod]) -> None:
        self._engine.activate(pods)

    def hold(self, pods: Iterable[Pod]) -> None:
        """The plugin's PreEnqueue has changed its mind about these: they are not to be tried now.

        They keep no room either, if a bind has failed. What is in flight is left alone.
        """
        self._engine.hold(pods)

    def take_back_nomination(self, pod: Pod) -> None:
        """The pod is not to go to the node that it was promised: its room is for those that left it free."""
        self._engine.take_back_nomination(pod)

    def in_flight(self, pod: Pod) -> bool:
        """Whether the pod is being tried or bound, or waits in Permit."""
        return self._engine.in_flight(pod)

    def on_pod_change(self, listener: PodListener, plugin: str) -> None:
        self._engine.on_pod_change(listener, plugin)

    def _attempt(self, pod: PodInfo) -> Attempt:
        """Of this pod: asked about many nodes in a row."""
        if self._last is None or self._last.pod is not pod:
            self._last = self.chooser.attempt(pod, shape_key(pod.pod))
        return self._last
