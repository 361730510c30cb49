"""Plans a set by placing its pods one after the other, each on the cluster as the last one left it.

If pods are left over, the set is tried again in other orders as long as there is time: those without a node
first, and packed tightly instead of by scores. The best plan is the one that places more pods of the highest
priority, then of the next, and then the cheapest.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from longshore.planning.appraisal import Appraisal
from longshore.planning.ordering import Group, ordered, with_first
from longshore.planning.plan import Assignment, LeftOut, Plan
from longshore.planning.problem import Member, Problem, members_of
from longshore.planning.rehearsal import Rehearsal, in_turn
from longshore.planning.ways import ByScore, Fullest, Way


def plan(problem: Problem, *, clock: Callable[[], float], budget: float = 0.3) -> Plan:
    """The best plan found within the budget, in seconds by the clock; the first round is always finished.

    Pods that are kept come first, whatever their priority. Nothing of all this is left in the cluster
    afterwards, nor if it fails. Raises ValueError for a pod that is bound or assumed already.
    """
    began = clock()
    members = members_of(problem)
    appraisal = Appraisal(problem)

    def late() -> bool:
        return clock() - began >= budget

    with Rehearsal(problem.chooser) as rehearsal:
        rest = _keep(problem, rehearsal, members)
        best = _Search(problem, rehearsal, rest, appraisal).best(late)
    return appraisal.plan(best.assignments, best.left_out, best.cost, seconds=clock() - began)


def _keep(problem: Problem, rehearsal: Rehearsal, members: Sequence[Member]) -> list[Member]:
    """Place the pods that can stay where an earlier plan had them; the others."""
    by_uid = {member.uid: member for member in members}
    earlier = [(by_uid[uid], node) for uid, node in problem.kept.items() if uid in by_uid]
    in_turn(earlier, lambda entry: rehearsal.place_on(*entry))
    for member in rehearsal.members:
        del by_uid[member.uid]
    return list(by_uid.values())


class _Draft(msgspec.Struct, frozen=True):
    """What a round came to."""

    assignments: tuple[Assignment, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    cost: float = 0.0


class _OutOfTime(Exception):
    pass


class _Search:
    """Rounds of placing all pods that are not kept, each in another order or another way."""

    def __init__(
        self, problem: Problem, rehearsal: Rehearsal, members: Sequence[Member], appraisal: Appraisal
    ) -> None:
        self._problem = problem
        self._rehearsal = rehearsal
        self._members = members
        self._appraisal = appraisal
        self._kept = len(rehearsal)
        self._priorities = sorted({_priority(member) for member in members}, reverse=True)
        self._best = _Draft()
        # Of the best draft: how many pods are placed, from the highest priority down.
        self._placed: list[int] = []

    def best(self, late: Callable[[], bool]) -> _Draft:
        balance = self._problem.objective == "Balance"
        chooser = self._problem.chooser
        groups = ordered(self._rehearsal, self._members)
        way = ByScore(chooser, self._members) if balance else Fullest(chooser)
        left = self._round(groups, way, lambda: False)
        if left and not late():
            with suppress(_OutOfTime):
                self._try_again(groups, way, left, late)
        return self._best

    def _try_again(self, groups: list[Group], way: Way, left: list[Member], late: Callable[[], bool]) -> None:
        tight = None if isinstance(way, Fullest) else Fullest(self._problem.chooser)
        tried: set[tuple[int, ...]] = set()
        while left:
            tried.add(_numbers(groups))
            if tight is not None and not self._round(groups, tight, late):
                return
            groups = with_first(self._rehearsal.cluster, groups, {member.group for member in left})
            if _numbers(groups) in tried:
                return
            left = self._round(groups, way, late)

    def _round(self, groups: Sequence[Group], way: Way, late: Callable[[], bool]) -> list[Member]:
        """Place the pods in this order and take them away again; those that were left over."""
        rehearsal = self._rehearsal
        way.begin()

        def place(member: Member) -> bool:
            if late():
                raise _OutOfTime
            row = rehearsal.place(member, way.pick)
            if row is None:
                return False
            way.placed(member.info, row)
            return True

        left = in_turn([member for group in groups for member in group.members], place)
        self._judge(left)
        rehearsal.undo(self._kept)
        return left

    def _judge(self, left: Sequence[Member]) -> None:
        """Keep what is placed as a draft, if it is better than the best one."""
        rehearsal = self._rehearsal
        numbers = Counter(map(_priority, rehearsal.members[self._kept :]))
        placed = [numbers[priority] for priority in self._priorities]
        cost = self._appraisal.cost(rehearsal.rows)
        if not self._placed or placed > self._placed or (placed == self._placed and cost < self._best.cost):
            left_out = tuple(rehearsal.left_out(member) for member in left)
            self._placed, self._best = placed, _Draft(rehearsal.assignments, left_out, cost)


def _priority(member: Member) -> int:
    return member.info.pod.spec.priority


def _numbers(groups: Sequence[Group]) -> tuple[int, ...]:
    return tuple(group.number for group in groups)
