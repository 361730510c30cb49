"""Plans a set by placing its pods one after the other, each on the cluster with the previous ones placed.

If some pods found no node, the set is tried again as long as there is time: with those pods first, and packed
tightly instead of placed by scores. The best plan is the one that places the most pods of the highest
priority, then of the next priority, and so on, and then the cheapest.
"""

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

import msgspec

from longshore.cluster import ClusterState
from longshore.planning.evaluation import Evaluation
from longshore.planning.node_pickers import ByScore, Fullest, NodePicker
from longshore.planning.ordering import Group, ordered, with_first
from longshore.planning.plan import Assignment, LeftOut, Plan
from longshore.planning.problem import PodToPlan, Problem, members_of
from longshore.planning.rehearsal import Rehearsal, in_turn


def plan(problem: Problem, *, clock: Callable[[], float], budget: float = 0.3) -> Plan:
    """Return the best plan found within the budget, in seconds. The first round is always completed.

    Pods that are kept on their nodes come first, whatever their priority. Afterwards the cluster is as it was
    before, even if planning fails. Raises ValueError for a pod that is already bound or assumed.
    """
    search = Search(problem, clock=clock, budget=budget)
    while not search.over:
        search.round()
    return search.plan


class _Draft(msgspec.Struct, frozen=True):
    """The result of a round. `placed`: how many pods have a node, from the highest priority down."""

    placed: tuple[int, ...]
    cost: float
    assignments: tuple[Assignment, ...]
    left_out: tuple[LeftOut, ...]


class _Try(NamedTuple):
    groups: list[Group]
    tightly: bool


class _OutOfTime(Exception):
    pass


class Search:
    """Rounds that each place the whole set, in another order or by another rule.

    A round leaves the cluster as it was. Between two rounds the cluster may change, as long as the pods of
    the problem get no nodes. The plan is then like any plan that is carried out a little later.
    """

    def __init__(self, problem: Problem, *, clock: Callable[[], float], budget: float) -> None:
        # Whether another round cannot help, or there is no time for it.
        self.over = False
        # The time spent in rounds, without the time between them.
        self.seconds = 0.0
        self._problem = problem
        self._clock = clock
        self._budget = budget
        self._scene: _Scene | None = None
        self._tries: Generator[_Try, list[PodToPlan], None] | None = None
        self._next: _Try | None = None
        self._best: _Draft | None = None

    def round(self) -> None:
        """Run one round. The first one is always completed; later ones end when the time is over."""
        began, spent = self._clock(), self.seconds

        def late() -> bool:
            return self._next is not None and spent + self._clock() - began >= self._budget

        try:
            left = self._round(late)
        except _OutOfTime:
            left = None
        self.seconds = spent + self._clock() - began
        self.over = not left or self.seconds >= self._budget or not self._is_another(left)

    @property
    def plan(self) -> Plan:
        """The best plan of the rounds so far."""
        best, scene = self._best, self._scene
        if best is None or scene is None:
            raise ValueError("there is no plan before the first round")
        return scene.evaluation.plan(best.assignments, best.left_out, best.cost, seconds=self.seconds)

    def _round(self, late: Callable[[], bool]) -> list[PodToPlan]:
        """Place the pods, judge the result, and take them away again. Return the pods that found no node."""
        if self._scene is None or self._scene.is_outdated:
            self._scene = _Scene(self._problem)
        scene = self._scene
        with Rehearsal(self._problem.chooser) as rehearsal:
            rest = _keep(self._problem, rehearsal, scene.members)
            packs = self._problem.objective == "Pack"
            this = self._next or _Try(ordered(rehearsal, rest), packs)
            picker = scene.picker(rest, tightly=this.tightly)
            picker.begin()

            def place(member: PodToPlan) -> bool:
                if late():
                    raise _OutOfTime
                row = rehearsal.place(member, picker.pick)
                if row is None:
                    return False
                picker.placed(member.info, row)
                return True

            left = in_turn(_in_order(rest, this.groups), place)
            self._judge(scene, rehearsal, left)
        scene.catch_up()
        if self._tries is None:
            self._tries = _tries(scene.cluster, this)
            next(self._tries)
        return left

    def _is_another(self, left: list[PodToPlan]) -> bool:
        self._next = None
        if self._tries is not None:
            try:
                self._next = self._tries.send(left)
            except StopIteration:
                return False
        return True

    def _judge(self, scene: "_Scene", rehearsal: Rehearsal, left: Sequence[PodToPlan]) -> None:
        """Keep the placed pods as a draft if it is better than the best one so far."""
        numbers = Counter(map(_priority, rehearsal.members))
        placed = tuple(numbers[priority] for priority in scene.priorities)
        cost = scene.evaluation.cost(rehearsal.rows)
        best = self._best
        if best is None or (placed, -cost) > (best.placed, -best.cost):
            left_out = tuple(rehearsal.left_out(member) for member in left)
            self._best = _Draft(placed, cost, rehearsal.assignments, left_out)


class _Scene:
    """The facts about the cluster that rounds need, rebuilt when the cluster changes between rounds."""

    def __init__(self, problem: Problem) -> None:
        self._chooser = problem.chooser
        self.cluster = problem.chooser.cluster
        self.members = members_of(problem)
        self.priorities = sorted(set(map(_priority, self.members)), reverse=True)
        self.evaluation = Evaluation(problem)
        self._pickers: dict[bool, NodePicker] = {}
        self._position = self.cluster.journal.position

    @property
    def is_outdated(self) -> bool:
        return self.cluster.journal.position != self._position

    def catch_up(self) -> None:
        """Note the end of a round, so that its own changes do not count as changes to the cluster."""
        self._position = self.cluster.journal.position

    def picker(self, rest: Sequence[PodToPlan], *, tightly: bool) -> NodePicker:
        """Return the rule by which nodes are picked. Call it after the kept pods were placed."""
        if tightly not in self._pickers:
            self._pickers[tightly] = Fullest(self._chooser) if tightly else ByScore(self._chooser, rest)
        return self._pickers[tightly]


def _tries(cluster: ClusterState, first: _Try) -> Generator[_Try, list[PodToPlan], None]:
    """Yield what to try next; receive the pods that found no node in the last try."""
    groups, packs = first
    tried: set[tuple[int, ...]] = set()
    left = yield first
    while left:
        tried.add(_numbers(groups))
        if not packs and not (yield _Try(groups, tightly=True)):
            return
        groups = with_first(cluster, groups, {member.group for member in left})
        if _numbers(groups) in tried:
            return
        left = yield _Try(groups, packs)


def _keep(problem: Problem, rehearsal: Rehearsal, members: Sequence[PodToPlan]) -> list[PodToPlan]:
    """Place the pods that can stay on the nodes of an earlier plan. Return the other pods."""
    by_uid = {member.uid: member for member in members}
    earlier = [(by_uid[uid], node) for uid, node in problem.kept.items() if uid in by_uid]
    in_turn(earlier, lambda entry: rehearsal.place_on(*entry))
    for member in rehearsal.members:
        del by_uid[member.uid]
    return list(by_uid.values())


def _in_order(members: Sequence[PodToPlan], groups: Sequence[Group]) -> list[PodToPlan]:
    """Return the members in the order of the groups; last, those that were kept when the groups were made."""
    uids = (member.uid for group in groups for member in group.members)
    places = {uid: place for place, uid in enumerate(uids)}
    return sorted(members, key=lambda member: places.get(member.uid, len(places)))


def _priority(member: PodToPlan) -> int:
    return member.info.pod.spec.priority


def _numbers(groups: Sequence[Group]) -> tuple[int, ...]:
    return tuple(group.number for group in groups)
