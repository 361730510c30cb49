"""Why an agent rejects nodes. Many nodes have the same status, so there are few statuses.

If an agent's answer about a node depends only on that node, it is cached for pods of the same shape and
evaluated again for nodes that changed.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from longshore.cluster import Nodes, OneNode
from longshore.cluster.arrays import Bools, Ints
from longshore.cluster.cached_column import CachedColumn
from longshore.engine.decision.attempt import Attempt
from longshore.engine.decision.plugin_calls import filter_one, rejections
from longshore.engine.decision.shapes import Shape
from longshore.framework import Code, Rejection, Status

UNKNOWN_NODE = "the extender does not know this node"

_LET_IN = 0
# Reasons with numbers in them are always new: this many statuses are kept besides two for each node.
_SPARE = 100


class Refused(msgspec.Struct, frozen=True):
    """Which of the requested nodes pass, and the status of the others."""

    left: Bools
    reasons: Sequence[tuple[Status, Ints]] = ()


class _Statuses:
    """Numbers for statuses. A node that passes has number 0."""

    def __init__(self, plugin: str) -> None:
        nothing = Status(Code.UNSCHEDULABLE, (), plugin)
        self._statuses = [nothing]
        self._numbers = {nothing: _LET_IN}

    def __len__(self) -> int:
        return len(self._statuses)

    def number(self, status: Status) -> int:
        found = self._numbers.setdefault(status, len(self._statuses))
        if found == len(self._statuses):
            self._statuses.append(status)
        return found

    def numbers(self, found: Sequence[Rejection], size: int) -> Ints:
        """Return the number of each node's status. A status has all reasons of its node, in order."""
        numbers: Ints = np.zeros(size, np.int64)
        for rejection in found:
            where = np.broadcast_to(rejection.where, size)
            hopeless = np.broadcast_to(rejection.unresolvable, size)
            for rows, is_hopeless in ((where & hopeless, True), (where & ~hopeless, False)):
                before = numbers[rows]
                after = before.copy()
                for number in np.unique(before).tolist():
                    earlier = self._statuses[number]
                    code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if is_hopeless else earlier.code
                    status = Status(code, (*earlier.reasons, rejection.reason), earlier.plugin)
                    after[before == number] = self.number(status)
                numbers[rows] = after
        return numbers

    def by_status(self, numbers: Ints, rows: Ints) -> Sequence[tuple[Status, Ints]]:
        return [(self._statuses[number], rows[numbers == number]) for number in np.unique(numbers).tolist()]


class Reasons:
    """The status that the filter of a profile gives each node, for pods of one shape."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        [self._slot] = shape.profile.filters
        self._begin()

    def __len__(self) -> int:
        """The number of statuses that are kept."""
        return len(self._statuses)

    def _begin(self) -> None:
        self._statuses = _Statuses(self._slot.name)
        self._numbers = CachedColumn(self._evaluate)

    def about(self, rows: Ints) -> Sequence[tuple[Status, Ints]]:
        """Return the statuses of these rejected nodes.

        Rounding can make the answer about a single node differ from the answer for an array.
        """
        nodes = self._shape.cluster.all_nodes()
        if len(self) > 2 * len(nodes.cluster.known) + _SPARE:
            self._begin()
        numbers = self._numbers.of(nodes)
        return self._statuses.by_status(numbers[rows], rows)

    def _evaluate(self, nodes: Nodes) -> Ints | int:
        slot, state, pod = self._slot, self._shape.state, self._shape.pod
        known = nodes.cluster.known
        if isinstance(nodes, OneNode):
            status = filter_one(slot, state, pod, nodes) if known[nodes.row] else None
            return _LET_IN if status is None else self._statuses.number(status)
        return self._statuses.numbers(rejections(slot, state, pod, nodes, known), len(known))


def refused_by_pre_filter(attempt: Attempt, refusal: Status | None, rows: Ints) -> Refused:
    """Return the result after PreFilter has rejected the pod, or has limited the nodes."""
    diagnosis = attempt.diagnose(refusal)
    statuses = [diagnosis.status(row) for row in rows.tolist()]
    left = np.array([status is None for status in statuses], np.bool_)
    reasons = [(status, rows[[place]]) for place, status in enumerate(statuses) if status is not None]
    return Refused(left, reasons)


def refused_together(attempt: Attempt, rows: Ints) -> Refused:
    """Return the result of a filter whose answer depends on all requested nodes together."""
    [slot] = attempt.profile.filters
    nodes = attempt.cluster.some_nodes(rows)
    found = rejections(slot, attempt.state, attempt.pod, nodes, np.ones(len(rows), np.bool_))
    statuses = _Statuses(slot.name)
    numbers = statuses.numbers(found, len(rows))
    bad = numbers != _LET_IN
    return Refused(~bad, statuses.by_status(numbers[bad], rows[bad]))
