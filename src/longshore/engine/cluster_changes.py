"""What happens in the cluster, as it concerns the scheduler: state and queue follow, and pods are woken."""

from collections.abc import Callable

import msgspec

from longshore.api import Node, Pod
from longshore.cluster import ClusterState, PodInfo
from longshore.engine.cycle.reporting import skipped
from longshore.engine.cycle.waiting import WaitingPods
from longshore.engine.events import Measurements
from longshore.engine.queue.cluster_events import MEASURED, assigned_pod_events, node_events
from longshore.engine.queue.scheduling_queue import Place, SchedulingQueue
from longshore.framework.effects import Tell

# Why a pod that was waiting on Permit waits no more.
_REMOVED = "removed"
_TO_BE_TRIED = (Place.ACTIVE, Place.BACKOFF)


class ClusterChanges:
    """`is_ours` tells whether a pod without a node is for one of our profiles."""

    def __init__(
        self,
        cluster: ClusterState,
        queue: SchedulingQueue,
        waiting: WaitingPods,
        *,
        now: Callable[[], float],
        tell: Callable[[Tell], None],
        is_ours: Callable[[Pod], bool],
    ) -> None:
        self._cluster = cluster
        self._queue = queue
        self._waiting = waiting
        self._tell = tell
        self._now = now
        self._is_ours = is_ours

    def node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is not None:
            row = self._cluster.row(new.metadata.name)
            known = None if row is None else self._cluster.node(row)
            self._cluster.add_node(new)
            events = node_events(known, new)
        elif old is not None:
            self._cluster.remove_node(old.metadata.name)
            events = node_events(old, None)
        for event in events:
            self._queue.event(event, now=self._now())

    def measured(self, measurements: Measurements, *, wall_time: float) -> None:
        if self._cluster.measures.put(measurements.values, now=wall_time):
            self._queue.event(MEASURED, now=self._now())

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and (new is None or old.metadata.uid != new.metadata.uid):
            self._gone(old)
            old = None
        if new is None:
            return
        self._queue.remove_predecessor(new)
        predecessor = self._cluster.pod(new.key)
        if predecessor is not None and predecessor.metadata.uid != new.metadata.uid:
            self._remove(predecessor)
        if new.spec.node_name or new.terminal:
            self._assigned(new)
            return
        if not self._cluster.is_assumed(new):
            self._remove(new)
        if not self._is_ours(new):
            self._not_ours(new)
        elif self._queue.holds(new) or not self._cluster.is_assumed(new):
            self._queue.put(new, now=self._now())
            self._follow_nomination(old, new)
        # Else we have bound it, and this is a last word from before.

    def _not_ours(self, pod: Pod) -> None:
        """The pod is being deleted, or is for another scheduler: it will have no node from us."""
        ending = pod.metadata.deletion_timestamp is not None
        entry = self._queue.find(pod)
        if ending and entry is not None and entry.place in _TO_BE_TRIED:
            self._tell(skipped(pod))
        self._queue.withdraw(pod)
        self.take_back_nomination(pod)
        self._waiting.reject(pod.metadata.uid, "", _REMOVED)
        # A bind may be under way. The API server gives no node to a pod that is ending: it comes too late.
        if ending or not self._queue.holds(pod):
            self.forget(pod)

    def _assigned(self, new: Pod) -> None:
        """The pod has a node, or has ended."""
        before = self._cluster.pod(new.key)
        was_assumed = before is not None and self._cluster.is_assumed(before)
        self._queue.withdraw(new)
        self._cluster.nominations.remove(new.metadata.uid)
        self._cluster.add_pod(new)
        if new.terminal:
            if before is not None:
                self._wake(before, None)
        else:
            self._wake(None if was_assumed else before, new)

    def _gone(self, pod: Pod) -> None:
        self._queue.withdraw(pod)
        self.take_back_nomination(pod)
        self._waiting.reject(pod.metadata.uid, "", _REMOVED)
        self._remove(pod)

    def _remove(self, pod: Pod) -> None:
        node = self._cluster.node_of(pod)
        if node is not None:
            self._cluster.remove_pod(pod)
            self._wake(_on(pod, node), None)

    def forget(self, pod: Pod) -> None:
        """An assumed pod will not come to its node."""
        if self._cluster.is_assumed(pod):
            self._remove(pod)

    def _wake(self, old: Pod | None, new: Pod | None, *, among: Callable[[Pod], bool] | None = None) -> None:
        for event in assigned_pod_events(old, new):
            self._queue.event(event, now=self._now(), among=among)

    def _follow_nomination(self, old: Pod | None, new: Pod) -> None:
        """The API server says where the pod is expected: we may have written it, or someone else.

        As long as it says nothing, what we know counts: the word of it may be on its way.
        """
        nominations = self._cluster.nominations
        said = "" if old is None else old.status.nominated_node_name
        node = new.status.nominated_node_name
        if not (said or node or nominations) or self._cluster.is_assumed(new):
            return
        known = nominations.node_of(new.metadata.uid)
        if said != node and known is not None and known != node:
            self.take_back_nomination(new)
            known = None
        elif said and said != node:
            self._not_nominated_to(said, new)
        if node and known is None:
            nominations.add(PodInfo.of(new), node)
        elif known is not None and old is not None and _looks(old) != _looks(new):
            nominations.add(PodInfo.of(new), known)

    def take_back_nomination(self, pod: Pod) -> None:
        """The pod is not to go to the node that it was promised."""
        node = self._cluster.nominations.node_of(pod.metadata.uid)
        if node is not None:
            self._cluster.nominations.remove(pod.metadata.uid)
            self._not_nominated_to(node, pod)

    def _not_nominated_to(self, node: str, pod: Pod) -> None:
        """Room that was kept for the pod is to be had by those that had to leave it free."""
        uid, priority = pod.metadata.uid, pod.spec.priority
        self._wake(
            _on(pod, node),
            None,
            among=lambda other: other.spec.priority <= priority and other.metadata.uid != uid,
        )

    def released(self, pod: Pod, node: str) -> None:
        """The pod had its node and gave it up: others may have found the room taken meanwhile."""
        uid = pod.metadata.uid
        self._wake(_on(pod, node), None, among=lambda other: other.metadata.uid != uid)


def _looks(pod: Pod) -> tuple[object, ...]:
    """What others see of the pod."""
    return pod.spec, pod.metadata.labels


def _on(pod: Pod, node: str) -> Pod:
    """The pod as it would have been on the node: plugins tell by that whether it took any room."""
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))
