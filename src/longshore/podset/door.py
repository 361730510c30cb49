"""The door through which pods of a set come into the queue: in the order of the plan, or as a whole.

A pod of a set that goes only as a whole waits in Permit, with its room taken, until all others are there too.
"""

from collections.abc import Callable, Iterable

from longshore.api import Pod
from longshore.cluster import PodInfo
from longshore.planning.handle import PlanningHandle
from longshore.podset.arguments import NAME
from longshore.podset.setplan import SetPlan
from longshore.podset.texts import BEING_PLANNED


class Door:
    def __init__(self, handle: PlanningHandle, *, freed: Callable[[], None]) -> None:
        """`freed` is called when room is kept no longer."""
        self._handle = handle
        self._freed = freed

    def is_placed(self, pod: Pod) -> bool:
        """Whether the pod is on a node as far as we know: bound, or about to be."""
        return self._handle.cluster.pod(pod.key) is not None

    def promise(self, plan: SetPlan, pod: Pod, node: str) -> None:
        """Keep the room of a pod that has its entry, until it is tried."""
        nominations = self._handle.cluster.nominations
        known = nominations.node_of(pod.metadata.uid)
        if known != node and not plan.spread and not self.is_placed(pod):
            nominations.add(PodInfo.of(pod), node)

    def note_spread(self, plan: SetPlan, pod: Pod) -> None:
        """If one pod of a set is to be spread, no room is kept for any.

        They would look uneven: each is judged beside those promised to the same node, but not beside those
        promised to others.
        """
        if not pod.spec.topology_spread_constraints:
            return
        if not plan.spread:
            self.take_back_room(plan.podset.pending.values())
        plan.spread.add(pod.metadata.uid)

    def take_back_room(self, pods: Iterable[Pod]) -> None:
        """What was kept for these is for others."""
        nominations = self._handle.cluster.nominations
        kept = [pod for pod in pods if nominations.node_of(pod.metadata.uid) is not None]
        for pod in kept:
            self._handle.take_back_nomination(pod)
        if kept:
            self._freed()

    def let_in(self, plan: SetPlan) -> None:
        """The pods that are ready may be tried."""
        pods = [pod for uid in plan.ready if (pod := plan.podset.pending.get(uid)) is not None]
        plan.going |= plan.ready
        plan.ready.clear()
        order = {name: number for number, name in enumerate(plan.entries)}
        pods.sort(key=lambda pod: (order.get(pod.metadata.name, len(order)), pod.metadata.name))
        self._handle.activate(pods)

    def close(self, plan: SetPlan, pods: Iterable[Pod], why: str) -> None:
        """The pods may not go after all, unless their bind is under way."""
        pods = list(pods)
        self.take_back_room(pods)
        for pod in pods:
            uid = pod.metadata.uid
            plan.ready.discard(uid)
            waits = uid in plan.gathered or uid in plan.admitted
            if waits or not self._handle.in_flight(pod):
                plan.going.discard(uid)
            plan.gathered.discard(uid)
            plan.admitted.pop(uid, None)
            if waits:
                self._handle.reject(uid, NAME, why)
        self._handle.hold(pods)

    def take_back(self, plan: SetPlan) -> None:
        """Plan the set anew, as a whole, but for pods that are bound or being bound."""
        plan.barred.clear()
        waiting = list(plan.waiting())
        self.close(plan, waiting, BEING_PLANNED)
        for pod in waiting:
            if not self.is_placed(pod):
                plan.missing.add(pod.metadata.uid)
                plan.unplanned.add(pod.metadata.uid)

    def arrived(self, plan: SetPlan, pod: Pod) -> bool:
        """The pod has its planned node. Whether it may be bound at once."""
        uid = pod.metadata.uid
        plan.missing.discard(uid)
        if plan.all_or_nothing and plan.missing:
            plan.gathered.add(uid)
            return False
        self.open_if_all_are_here(plan)
        return True

    def open_if_all_are_here(self, plan: SetPlan) -> None:
        if plan.gathered and not plan.missing:
            gathered, plan.gathered = sorted(plan.gathered), set()
            for uid in gathered:
                self._handle.allow(uid, NAME)

    def admit(self, plan: SetPlan, uids: Iterable[str]) -> None:
        """Entries of pods that found a node by themselves are stored: they may be bound."""
        late = []
        for uid in uids:
            plan.admitted.pop(uid, None)
            plan.left_out.pop(uid, None)
            self._handle.allow(uid, NAME)
            pod = plan.podset.pending.get(uid)
            if pod is not None and not self.is_placed(pod):
                late.append(pod)
        # It has waited for too long, and is to be tried again on the node that is stored for it.
        self._handle.activate(late)
