"""Pods that have a node but are not being bound yet: Permit plugins hold them, or PreBind plugins run.

Such a pod is on its node only in memory. If a more important pod needs the room, it gives way: its cycle ends
and nothing is deleted.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from longshore.api import Pod, format_duration
from longshore.cluster import ClusterState
from longshore.engine.answers.observer import Observer, Unobserved
from longshore.engine.runner import OwnStep, Runner, Running
from longshore.framework import Code, Status
from longshore.framework.effects import Answered, Outcome, Succeeded


@dataclass(slots=True)
class _HeldPod:
    """A pod that Permit plugins hold."""

    running: Running
    node: str
    since: float
    # By plugin, when its patience ends.
    until: dict[str, float]

    def expired(self, now: float) -> Status | None:
        """The rejection by the plugin whose time is over first, if there is one."""
        plugin = min(self.until, key=self.until.__getitem__)
        if self.until[plugin] > now:
            return None
        waited = self.until[plugin] - self.since
        message = f"rejected due to timeout after waiting {format_duration(waited)} at plugin {plugin}"
        return Status(Code.UNSCHEDULABLE, (message,), plugin)


class WaitingPods:
    def __init__(self, runner: Runner, cluster: ClusterState, now: Callable[[], float]) -> None:
        self._runner = runner
        self._cluster = cluster
        self._now = now
        self.observer: Observer = Unobserved()
        # By the UID of the pod, as below.
        self._held: dict[str, _HeldPod] = {}
        # Pods at PreBind, and what ends their attempt when they give way.
        self._preparing: dict[str, tuple[Running, Callable[[], object]]] = {}

    def __bool__(self) -> bool:
        """Whether a Permit plugin holds a pod."""
        return bool(self._held)

    @property
    def deadline(self) -> float | None:
        """When `expire` is due."""
        return min((time for held in self._held.values() for time in held.until.values()), default=None)

    def nodes(self) -> Mapping[str, str]:
        """The nodes of the pods that are held."""
        return {uid: held.node for uid, held in self._held.items()}

    def hold(self, running: Running, pod: Pod, seconds: Mapping[str, float]) -> None:
        """Hold the pod until all of these plugins allow it, each for at most its seconds."""
        now, node = self._now(), self._cluster.node_of(pod) or ""
        until = {plugin: now + wait for plugin, wait in seconds.items()}
        self._held[pod.metadata.uid] = _HeldPod(running, node, now, until)

    def allow(self, uid: str, plugin: str) -> None:
        held = self._held.get(uid)
        if held is not None:
            held.until.pop(plugin, None)
            if not held.until:
                self._release(uid, None)

    def reject(self, uid: str, plugin: str, message: str) -> None:
        if uid in self._held:
            self._release(uid, Status(Code.UNSCHEDULABLE, (message,), plugin))

    def expire(self) -> None:
        """Reject the pods that have been held for too long."""
        for uid, held in list(self._held.items()):
            if uid in self._held and (refusal := held.expired(self._now())) is not None:
                self._release(uid, refusal)

    def may_give_way(self, running: Running, uid: str, instead: Callable[[], object] | None) -> None:
        """Allow the pod to give way: then `instead` ends the attempt. None withdraws that."""
        if instead is None:
            self._preparing.pop(uid, None)
        else:
            self._preparing[uid] = (running, instead)

    def give_way(self, uid: str) -> bool:
        """Make the pod give up its node. Return False if it has none, or is being bound already."""
        if uid in self._held:
            self._release(uid, Status.error("waiting on permit for pod: preempted"))
            return True
        if uid not in self._preparing:
            return False
        running, instead = self._preparing.pop(uid)
        # What the plugin has asked for goes on, but its answer is ignored.
        self._runner.cancel(running)
        running.ended(instead())
        return True

    def _release(self, uid: str, refusal: Status | None) -> None:
        held = self._held.pop(uid)
        code = Code.SUCCESS if refusal is None else refusal.code
        self.observer.permit_waited(self._now() - held.since, code)
        self._runner.answer(held.running, Succeeded() if refusal is None else Answered(refusal))


@dataclass(slots=True)
class WaitOnPermit(OwnStep):
    """Wait until the plugins allow the pod. Answered with `Answered` and a status if it is rejected."""

    pods: WaitingPods
    pod: Pod
    seconds: Mapping[str, float]

    def begin(self, running: Running) -> None:
        self.pods.hold(running, self.pod, self.seconds)


@dataclass(slots=True)
class MayGiveWay(OwnStep):
    """Allow the pod to give way from now on: then `instead` ends the attempt. None withdraws that."""

    pods: WaitingPods
    pod: Pod
    instead: Callable[[], object] | None

    def begin(self, running: Running) -> Outcome:
        self.pods.may_give_way(running, self.pod.metadata.uid, self.instead)
        return Succeeded()
