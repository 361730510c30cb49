"""A queue with plugins that the test defines."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from longshore.api import Pod
from longshore.engine.queue.scheduling_queue import QueueEntry, SchedulingQueue
from longshore.framework import Action, ClusterEvent, Resource, Status, WakeOn
from longshore.testing import node, pod

FIT = frozenset({"Fit"})
WEB = pod("web").on("n1")
POD_GONE = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, WEB, None)
POD_ADDED = ClusterEvent(Resource.ASSIGNED_POD, Action.ADD, None, WEB)
NODE_ADDED = ClusterEvent(Resource.NODE, Action.ADD, None, node("n1"))
NODE_LABELLED = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL, node("n1"), node("n1").labels(a="b"))
NODE_TAINTED = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT, node("n1").taint("t"), node("n1"))
ANYTHING = ClusterEvent(Resource.WILDCARD, Action.ALL)


class FakeProfiles:
    """Orders by priority, then age. The test sets what plugins wake on and which pods they keep out."""

    def __init__(self) -> None:
        # By plugin, or by profile and plugin. Other plugins wake on anything.
        self.wakes_on: dict[str, Sequence[WakeOn]] = {
            "Fit": (
                WakeOn(Resource.POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN),
                WakeOn(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE),
            ),
            "SchedulingGates": (WakeOn(Resource.POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, own),),
        }
        # Which pods each PreEnqueue plugin lets in.
        self.gates: dict[str, Callable[[Pod], bool]] = {
            "SchedulingGates": lambda pod: not pod.spec.scheduling_gates
        }
        # The pods that PreEnqueue was asked about, and the plugin that had to be asked first.
        self.asked: list[tuple[str, str]] = []
        self.wakes_asked = 0

    def pre_enqueue(self, pod: Pod, first: str) -> Status | None:
        self.asked.append((pod.metadata.name, first))
        for name in sorted(self.gates, key=lambda name: name != first):
            if not self.gates[name](pod):
                return msgspec.structs.replace(Status.unresolvable("not yet"), plugin=name)
        return None

    def sort_key(self, pod: Pod, since: float) -> Any:
        return -pod.spec.priority, since

    def wakes(self, pod: Pod, plugin: str) -> Sequence[WakeOn] | None:
        self.wakes_asked += 1
        return self.wakes_on.get(f"{pod.spec.scheduler_name}/{plugin}", self.wakes_on.get(plugin))


class Scene:
    """A queue, its plugins, and the calls of its observer."""

    def __init__(
        self, *pods: Pod, max_unschedulable_seconds: float = 300.0, max_backoff: float = 10.0
    ) -> None:
        self.plugins = FakeProfiles()
        self.heard: list[str] = []
        self.queue = SchedulingQueue(
            self.plugins,
            max_backoff=max_backoff,
            max_unschedulable_seconds=max_unschedulable_seconds,
            observe=lambda place, why: self.heard.append(f"{place} {why}"),
        )
        for number, waiting in enumerate(pods):
            self.queue.put(waiting, now=float(number))

    def popped(self) -> QueueEntry:
        entry = self.queue.pop()
        assert entry is not None
        return entry

    def names(self) -> list[str]:
        """Pop all pods that can be tried now; returns their names in order."""
        found = []
        while (entry := self.queue.pop()) is not None:
            found.append(entry.pod.metadata.name)
        return found

    def rejected(
        self, *, now: float, by: frozenset[str] = FIT, pending: frozenset[str] = frozenset()
    ) -> QueueEntry:
        """Try the next pod, and let the plugins reject it."""
        entry = self.popped()
        self.queue.fail(entry, now=now, rejectors=by, pending=pending)
        return entry

    def place(self, pod: Pod) -> str:
        entry = self.queue.find(pod)
        return "nowhere" if entry is None else entry.place.value


def own(waiting: Pod, _old: Any, new: Any) -> bool:
    """A hint that wakes a pod when the pod itself changed."""
    return isinstance(new, Pod) and new.metadata.uid == waiting.metadata.uid
