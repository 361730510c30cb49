"""Why nodes were refused: for the message on the pod, for preemption and for explanations."""

import msgspec
import numpy as np

from longshore.cluster import ClusterState
from longshore.cluster.arrays import Bools, Ints
from longshore.framework import Code, Status


class Refusal(msgspec.Struct, frozen=True):
    """The nodes that one plugin refused, and no plugin before it. Masks are over all rows."""

    plugin: str
    where: Bools
    reasons: tuple[tuple[str, Bools], ...]
    unresolvable: Bools
    # The nodes for which the plugin said Pending; None if there are none.
    pending: Bools | None = None

    def status(self, row: int) -> Status:
        pending = self.pending is not None and bool(self.pending[row])
        code = refusal_code(unresolvable=bool(self.unresolvable[row]), pending=pending)
        reasons = tuple(reason for reason, where in self.reasons if where[row])
        return Status(code, reasons, self.plugin)

    def rows(self, code: Code) -> Bools:
        """Return a mask of the nodes that were refused with this code."""
        if code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return self.unresolvable
        others = self.where & ~self.unresolvable
        if code is Code.UNSCHEDULABLE:
            return others if self.pending is None else others & ~self.pending
        if code is Code.PENDING and self.pending is not None:
            return others & self.pending
        return np.zeros_like(self.where)


def refusal_code(*, unresolvable: bool, pending: bool) -> Code:
    """Return the code for a node that a filter refuses for several reasons: the strictest one counts."""
    if unresolvable:
        return Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    return Code.PENDING if pending else Code.UNSCHEDULABLE


class Diagnosis:
    """The refusals of one attempt, in the order of the plugins.

    `absent` is the status of nodes that a PreFilter left out. `pre_filter` is the status if a PreFilter
    refused the pod itself; then no node was looked at.
    """

    def __init__(self, cluster: ClusterState) -> None:
        self.cluster = cluster
        self.refusals: list[Refusal] = []
        self.pre_filter: Status | None = None
        self.absent: Status | None = None
        self.absent_rows: Bools | None = None
        # The plugins whose `wakes_on` says which events may help.
        self.rejectors: set[str] = set()
        self.pending: set[str] = set()

    def refuse(self, refusal: Refusal) -> None:
        self.refusals.append(refusal)
        self.rejectors.add(refusal.plugin)
        if refusal.pending is not None and refusal.rows(Code.PENDING).any():
            self.pending.add(refusal.plugin)

    def leave_out(self, rows: Bools, status: Status) -> None:
        self.absent_rows, self.absent = rows, status

    def status(self, row: int) -> Status | None:
        """Return why the node of the row was refused; None if it was not."""
        if self.pre_filter is not None:
            return self.pre_filter
        if self.absent_rows is not None and self.absent_rows[row]:
            return self.absent
        return next((refusal.status(row) for refusal in self.refusals if refusal.where[row]), None)

    def code(self, row: int) -> Code:
        status = self.status(row)
        return Code.SUCCESS if status is None else status.code

    def rows(self, code: Code) -> Ints:
        """Return the rows of the nodes that were refused with this code."""
        known = self.cluster.known
        if self.pre_filter is not None:
            return np.flatnonzero(known) if self.pre_filter.code is code else np.zeros(0, np.int64)
        found = np.zeros(len(known), np.bool_)
        if self.absent_rows is not None and self.absent is not None and self.absent.code is code:
            found |= self.absent_rows
        for refusal in self.refusals:
            found |= refusal.rows(code)
        return np.flatnonzero(found & known)

    @property
    def message(self) -> str:
        """How many nodes were refused for which reason, in kube-scheduler's format."""
        head = f"0/{self.cluster.node_count} nodes are available:"
        if self.pre_filter is not None:
            return f"{head} {self.pre_filter.message}."
        counts: dict[str, int] = {}
        for _, reason, number in self.counts:
            counts[reason] = counts.get(reason, 0) + number
        histogram = ", ".join(sorted(f"{number} {reason}" for reason, number in counts.items()))
        return f"{head} {histogram}." if histogram else head

    @property
    def counts(self) -> tuple[tuple[str, str, int], ...]:
        """Plugin, reason and number of refused nodes; all nodes if a PreFilter refused the pod itself."""
        if self.pre_filter is not None:
            return ((self.pre_filter.plugin, self.pre_filter.message, self.cluster.node_count),)
        found = [
            (refusal.plugin, reason, int(np.count_nonzero(where)))
            for refusal in self.refusals
            for reason, where in refusal.reasons
        ]
        if self.absent is not None and self.absent_rows is not None:
            left_out = int(np.count_nonzero(self.absent_rows))
            found += (("", reason, left_out) for reason in self.absent.reasons)
        return tuple(each for each in found if each[2])
