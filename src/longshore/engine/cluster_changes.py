"""Takes in changes of the cluster: the state and the queue follow them, and pods that they may help wake."""

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

# Why a pod no longer waits on Permit.
_REMOVED = "removed"
_TO_BE_TRIED = (Place.ACTIVE, Place.BACKOFF)


class ClusterChanges:
    """`is_ours` returns whether one of our profiles has to schedule the pod."""

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
        # Otherwise we have bound it, and this change is older than the bind.

    def _not_ours(self, pod: Pod) -> None:
        """The pod is being deleted, or is another scheduler's: we do not schedule it."""
        ending = pod.metadata.deletion_timestamp is not None
        entry = self._queue.find(pod)
        if ending and entry is not None and entry.place in _TO_BE_TRIED:
            self._tell(skipped(pod))
        self._queue.withdraw(pod)
        self.take_back_nomination(pod)
        self._waiting.reject(pod.metadata.uid, "", _REMOVED)
        # A bind may be in progress. The API server refuses to bind a pod that is being deleted.
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
        """Give up the room of an assumed pod."""
        if self._cluster.is_assumed(pod):
            self._remove(pod)

    def _wake(self, old: Pod | None, new: Pod | None, *, among: Callable[[Pod], bool] | None = None) -> None:
        for event in assigned_pod_events(old, new):
            self._queue.event(event, now=self._now(), among=among)

    def _follow_nomination(self, old: Pod | None, new: Pod) -> None:
        """Follow the nomination in the pod's status, which we may have written, or someone else.

        As long as the status has none, our own nomination counts: the watch may not have shown it yet.
        """
        nominations = self._cluster.nominations
        before = "" if old is None else old.status.nominated_node_name
        node = new.status.nominated_node_name
        if not (before or node or nominations) or self._cluster.is_assumed(new):
            return
        known = nominations.node_of(new.metadata.uid)
        if before != node and known is not None and known != node:
            self.take_back_nomination(new)
            known = None
        elif before and before != node:
            self._not_nominated_to(before, new)
        if node and known is None:
            nominations.add(PodInfo.of(new), node)
        elif known is not None and old is not None and _visible(old) != _visible(new):
            nominations.add(PodInfo.of(new), known)

    def take_back_nomination(self, pod: Pod) -> None:
        """Remove the pod's nomination."""
        node = self._cluster.nominations.node_of(pod.metadata.uid)
        if node is not None:
            self._cluster.nominations.remove(pod.metadata.uid)
            self._not_nominated_to(node, pod)

    def _not_nominated_to(self, node: str, pod: Pod) -> None:
        """Wake the pods that had to leave the room on the node to this pod."""
        uid, priority = pod.metadata.uid, pod.spec.priority
        self._wake(
            _on(pod, node),
            None,
            among=lambda other: other.spec.priority <= priority and other.metadata.uid != uid,
        )

    def released(self, pod: Pod, node: str) -> None:
        """Wake the pods that may have found no room because this pod had the node, which it gave up."""
        uid = pod.metadata.uid
        self._wake(_on(pod, node), None, among=lambda other: other.metadata.uid != uid)


def _visible(pod: Pod) -> tuple[object, ...]:
    """Return what matters about the pod to other pods."""
    return pod.spec, pod.metadata.labels


def _on(pod: Pod, node: str) -> Pod:
    """Return the pod as it would have been on the node, so that plugins see what room it took."""
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))
