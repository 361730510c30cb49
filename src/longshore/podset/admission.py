"""Does what `react` returns: lets members into the queue and through Permit, and keeps room for them."""

from collections import defaultdict
from collections.abc import Iterable

from longshore.api import Pod
from longshore.cluster import PodInfo
from longshore.planning.handle import PlanningHandle
from longshore.podset.arguments import NAME
from longshore.podset.members import Member
from longshore.podset.set_state import SetState, StuckSets
from longshore.podset.stages import Stage
from longshore.podset.texts import BEING_PLANNED, why_held
from longshore.podset.transitions import Do, MemberEvent, react


class Admission:
    def __init__(self, handle: PlanningHandle, stuck: StuckSets) -> None:
        self._handle = handle
        self._stuck = stuck

    def apply(self, state: SetState, event: MemberEvent) -> None:
        reaction = react(state.members, event, state.facts)
        state.members.update(reaction.changed)
        wanted: dict[Do, list[Member]] = defaultdict(list)
        for action in reaction.actions:
            wanted[action.do].append(action.member)
        if members := wanted[Do.FREE_ROOM]:
            self.free_room(member.pod for member in members)
        why = BEING_PLANNED if state.podset.released else why_held(state.podset)
        for member in wanted[Do.REJECT]:
            self._handle.reject(member.uid, NAME, why)
        if members := wanted[Do.HOLD]:
            self._handle.hold(member.pod for member in members)
        for member in wanted[Do.KEEP_ROOM]:
            self.keep_room(state, member.pod, member.planned_node(state.entries.current))
        for uid in sorted(member.uid for member in wanted[Do.ALLOW]):
            self._handle.allow(uid, NAME)
        state.to_enter.update(member.uid for member in wanted[Do.ENTER])
        state.to_open.update(member.uid for member in wanted[Do.OPEN_GATE])
        state.to_inform.update(member.uid for member in wanted[Do.INFORM])

    def is_placed(self, pod: Pod) -> bool:
        """Whether the pod is known to be bound, or about to be."""
        return self._handle.cluster.pod(pod.key) is not None

    def in_flight(self, state: SetState) -> set[str]:
        """Return the UIDs of the members that are being bound."""
        going = state.members.of(Stage.BINDING, Stage.ALONE)
        return {member.uid for member in going if self._handle.in_flight(member.pod)}

    def keep_room(self, state: SetState, pod: Pod, node: str | None) -> None:
        """Reserve room for a pod that has an entry, until it is tried."""
        nominations = self._handle.cluster.nominations
        if node is None or nominations.node_of(pod.metadata.uid) == node:
            return
        if not state.members.are_spread and not self.is_placed(pod):
            nominations.add(PodInfo.of(pod), node)

    def free_room(self, pods: Iterable[Pod]) -> None:
        """Release the room that is reserved for these pods."""
        nominations = self._handle.cluster.nominations
        kept = [pod for pod in pods if nominations.node_of(pod.metadata.uid) is not None]
        for pod in kept:
            self._handle.take_back_nomination(pod)
        if kept:
            self._stuck.help(now=self._handle.now())

    def let_in(self, state: SetState) -> None:
        """Have the pods that may enter the queue tried, in the order of the plan."""
        entering, state.to_enter = state.to_enter, set()
        members = [member for uid in entering if (member := state.members.get(uid)) is not None]
        order = {name: number for number, name in enumerate(state.entries.current)}
        members.sort(key=lambda member: (order.get(member.name, len(order)), member.name))
        self._handle.activate(member.pod for member in members if member.is_admitted)
