"""A trial placement of pods on the nodes of the live cluster. At its end, everything is as it was before.

Each pod sees the room, ports, affinity, and spreading of the pods placed before it, through the same filters
and scores that place any pod. The cluster must not change in any other way during the trial. Plugins that
keep state are called as in an attempt that fails: Reserve when a pod is put on a node, Unreserve when it is
removed again.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from longshore.cluster import PodInfo
from longshore.cluster.arrays import Bools
from longshore.engine.decision.attempt import Attempt
from longshore.engine.decision.chooser import NO_NODES, Chooser
from longshore.engine.decision.diagnosis import Refusal
from longshore.engine.plugin_failure import PLUGIN_ERRORS, PluginFailure
from longshore.framework import Code, CycleState, Status
from longshore.framework.points import Reserve
from longshore.planning.plan import Assignment, LeftOut
from longshore.planning.problem import PodToPlan

NOT_ELIGIBLE = "node(s) weren't eligible"

T = TypeVar("T")

# Returns the row to use, given the attempt and a mask of the feasible rows, of which there is at least one.
Pick = Callable[[Attempt, Bools], int]


class _Step(msgspec.Struct, frozen=True):
    """A pod on a node, and what is needed to undo it."""

    member: PodToPlan
    row: int
    node: str
    # The plugins whose Reserve was called, with the state of the attempt.
    reserves: tuple[Reserve, ...]
    state: CycleState | None
    # The node to which the pod was nominated.
    nominated: str | None
    nominee: PodInfo | None


class Rehearsal:
    """A context manager: the pods that are placed in it are removed at its end, whatever happens."""

    def __init__(self, chooser: Chooser) -> None:
        self._chooser = chooser
        self.cluster = chooser.cluster
        self._steps: list[_Step] = []
        # Why the last try of a pod failed, if not because no node is feasible.
        self._failures: dict[str, str] = {}
        # The reasons by group, each with the position of the journal at which it was found.
        self._reasons: dict[int, tuple[int, str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.undo()

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def rows(self) -> list[int]:
        """The rows of the pods that are placed, in order."""
        return [step.row for step in self._steps]

    @property
    def members(self) -> list[PodToPlan]:
        return [step.member for step in self._steps]

    @property
    def assignments(self) -> tuple[Assignment, ...]:
        return tuple(Assignment(step.member.name, step.member.uid, step.node) for step in self._steps)

    # Placing.

    def place(self, member: PodToPlan, pick: Pick) -> int | None:
        """Put the pod on the node it is nominated to, or the picked one. Return None if none is feasible."""
        try:
            attempt = self._attempt(member)
            if attempt is None:
                return None
            row = self._chooser.nominated(attempt)
            if row is None:
                left = attempt.feasible()
                shape = attempt.shape
                if not (shape.feasible_count if left is shape.feasible else left.any()):
                    return None
                row = pick(attempt, left)
            return row if self._take(member, attempt, row) else None
        except PluginFailure as failure:
            self._failures[member.uid] = str(failure)
            return None

    def place_on(self, member: PodToPlan, node: str) -> bool:
        """Put the pod on this node if it is feasible. Return whether it was."""
        row = self.cluster.row(node)
        if row is None or not self.cluster.known[row]:
            return False
        try:
            attempt = self._attempt(member)
            if attempt is None:
                return False
            if self._chooser.nominated(attempt) != row and not attempt.feasible()[row]:
                return False
            return self._take(member, attempt, row)
        except PluginFailure as failure:
            self._failures[member.uid] = str(failure)
            return False

    def feasible(self, member: PodToPlan) -> Bools | None:
        """Return a mask of the rows that are feasible for the pod now; None if PreFilter rejects it."""
        try:
            attempt = self._attempt(member)
            return None if attempt is None else attempt.feasible()
        except PluginFailure:
            return None

    def undo(self, down_to: int = 0) -> None:
        """Remove the pods again, the last one first, until `down_to` are left."""
        steps, cluster = self._steps, self.cluster
        while len(steps) > down_to:
            step = steps[-1]
            pod = step.member.info.pod
            if step.state is not None:
                for plugin in reversed(step.reserves):
                    # An error of the plugin must not stop the others from being called.
                    with suppress(Exception):
                        plugin.unreserve(step.state, step.member.info, step.node)
            cluster.forget(pod)
            if step.nominee is not None and step.nominated is not None:
                cluster.nominations.add(step.nominee, step.nominated)
            steps.pop()

    def _attempt(self, member: PodToPlan) -> Attempt | None:
        """Return an attempt that has passed PreFilter, or None if the pod cannot be placed at all."""
        if member.info.problem or not self.cluster.node_count:
            return None
        if self._failures:
            self._failures.pop(member.uid, None)
        attempt = self._chooser.attempt(member.info, member.key)
        if attempt.pre_filter() is not None:
            return None
        if member.eligible is not None:
            narrowed = attempt.narrowed
            attempt.narrowed = member.eligible if narrowed is None else narrowed & member.eligible
        return attempt

    def _take(self, member: PodToPlan, attempt: Attempt, row: int) -> bool:
        cluster, info = self.cluster, member.info
        node = cluster.node_name(row)
        nominated = nominee = None
        if cluster.nominations:
            nominated = cluster.nominations.node_of(member.uid)
            if nominated is not None:
                nominee = next(
                    each for each in cluster.nominations.on(nominated) if each.pod.metadata.uid == member.uid
                )
        reserves = attempt.shape.concerned.reserves
        # Recorded first, so that it is undone if anything fails below.
        state = attempt.state if reserves else None
        self._steps.append(_Step(member, row, node, reserves, state, nominated, nominee))
        cluster.assume(info, node)
        if nominee is not None:
            cluster.nominations.remove(member.uid)
        for plugin in reserves:
            status = _reserve(plugin, attempt, info, node)
            if status is not None:
                self.undo(len(self._steps) - 1)
                self._failures[member.uid] = _message(status)
                return False
        return True

    # Why a pod has no node.

    def left_out(self, member: PodToPlan) -> LeftOut:
        return LeftOut(member.name, member.uid, self.refusal(member))

    def refusal(self, member: PodToPlan) -> str:
        """Return why no node is feasible for the pod now, in kube-scheduler's words."""
        if member.info.problem:
            return member.info.problem
        if not self.cluster.node_count:
            return NO_NODES
        if member.uid in self._failures:
            return self._failures[member.uid]
        try:
            return self._diagnosis(member)
        except PluginFailure as failure:
            return str(failure)

    def objection(self, member: PodToPlan, node: str) -> str:
        """Return why this node is not feasible for the pod now, or an empty text if it is."""
        row = self.cluster.row(node)
        if row is None or not self.cluster.known[row]:
            return "there is no such node"
        if member.info.problem:
            return member.info.problem
        if member.eligible is not None and not member.eligible[row]:
            return "the node is not eligible"
        try:
            attempt = self._chooser.attempt(member.info, member.key)
            status = attempt.pre_filter()
            if status is None and attempt.narrowed is not None and not attempt.narrowed[row]:
                status = attempt.diagnose().absent
            if status is None:
                status = attempt.filter_with_nominated(attempt.state, self.cluster.one_node(row))
        except PluginFailure as failure:
            return str(failure)
        return self._failures.get(member.uid, "") if status is None else ", ".join(status.reasons)

    def _diagnosis(self, member: PodToPlan) -> str:
        attempt = self._chooser.attempt(member.info, member.key)
        refusal = attempt.pre_filter()
        if refusal is not None:
            return attempt.diagnose(refusal).message
        position = self.cluster.journal.position
        # Filters that look at one node at a time give the same reasons for pods that are alike.
        alike = attempt.looks_at_one_node and attempt.narrowed is None and not self.cluster.nominations
        if alike:
            found, reason = self._reasons.get(member.group, (-1, ""))
            if found == position:
                return reason
        reason = _diagnose(attempt, member.eligible)
        if alike:
            self._reasons[member.group] = (position, reason)
        return reason


def in_turn(waiting: Iterable[T], place: Callable[[T], bool]) -> list[T]:
    """Place each in turn, and try failed ones again as long as that may help. Return those that failed."""
    while True:
        failed: list[T] = []
        helped = False
        for each in waiting:
            if not place(each):
                failed.append(each)
            elif failed:
                # An earlier pod may have failed because of its affinity to this one.
                helped = True
        if not helped:
            return failed
        waiting = failed


def _diagnose(attempt: Attempt, eligible: Bools | None) -> str:
    if eligible is None:
        return attempt.diagnose().message
    narrowed = attempt.narrowed
    attempt.narrowed = eligible if narrowed is None else narrowed & eligible
    diagnosis = attempt.diagnose()
    out = attempt.cluster.known & ~eligible
    if diagnosis.absent_rows is not None:
        diagnosis.absent_rows &= ~out
    if out.any():
        diagnosis.refuse(Refusal("", out, ((NOT_ELIGIBLE, out),), out))
    return diagnosis.message


def _reserve(plugin: Reserve, attempt: Attempt, info: PodInfo, node: str) -> Status | None:
    """Return the status if the plugin rejects the pod or fails, otherwise None."""
    try:
        status = plugin.reserve(attempt.state, info, node)
        succeeded = status is None or status.code is Code.SUCCESS
    except PLUGIN_ERRORS as error:  # a failing plugin fails only this pod
        return PluginFailure(plugin.name, "Reserve", repr(error)).status
    return None if succeeded else status


def _message(status: Status) -> str:
    if not status.rejected:
        return status.message
    reasons = ", ".join(f"1 {reason}" for reason in sorted(status.reasons))
    return f"0/1 nodes are available: {reasons}."
