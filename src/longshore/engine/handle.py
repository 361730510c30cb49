"""The engine's implementation of `Handle`."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from longshore.api import Pod
from longshore.cluster import ClusterState, OneNode, PodInfo
from longshore.engine.decision.attempt import Attempt
from longshore.engine.decision.chooser import Chooser
from longshore.engine.decision.shapes import shape_key
from longshore.framework import CycleState, Status
from longshore.framework.controllers import Controller
from longshore.framework.effects import Tell
from longshore.framework.handle import PodListener

if TYPE_CHECKING:
    from longshore.engine.engine import Engine


class EngineHandle:
    """The `PlanningHandle` of one profile's plugins. `chooser` is set once the plugins are made."""

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
        return self._engine.stopwatch()

    def planned(self, planner: str, seconds: float, *, placed: int, left_out: int) -> None:
        self._engine.observer.planned(planner, seconds, placed=placed, left_out=left_out)

    def control(self, controller: Controller) -> None:
        self._engine.add_controller(controller)

    @property
    def controllers(self) -> tuple[Controller, ...]:
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
        self._engine.hold(pods)

    def take_back_nomination(self, pod: Pod) -> None:
        self._engine.take_back_nomination(pod)

    def in_flight(self, pod: Pod) -> bool:
        return self._engine.in_flight(pod)

    def on_pod_change(self, listener: PodListener, plugin: str) -> None:
        self._engine.on_pod_change(listener, plugin)

    def _attempt(self, pod: PodInfo) -> Attempt:
        """Return the last attempt if it is this pod's: plugins ask about many nodes in a row."""
        if self._last is None or self._last.pod is not pod:
            self._last = self.chooser.attempt(pod, shape_key(pod.pod))
        return self._last
