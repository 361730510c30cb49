"""Why an agent refuses nodes, in few statuses: of many nodes the same is said.

What an agent said whose answers about a node depend on that node alone is kept for pods that are alike, and
asked again of nodes that changed.
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
# An agent that puts numbers into its reasons has ever new ones: so many are kept beside two for each node.
_SPARE = 100


class Refused(msgspec.Struct, frozen=True):
    """Which of the nodes asked about are left, and what is said of the others."""

    left: Bools
    reasons: Sequence[tuple[Status, Ints]] = ()


class _Statuses:
    """Statuses by number. What is said without a word has a number as well."""

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
        """What is said of each node. One reason after the other: few combinations of them occur."""
        said: Ints = np.zeros(size, np.int64)
        for rejection in found:
            where = np.broadcast_to(rejection.where, size)
            hopeless = np.broadcast_to(rejection.unresolvable, size)
            for rows, is_hopeless in ((where & hopeless, True), (where & ~hopeless, False)):
                before = said[rows]
                after = before.copy()
                for number in np.unique(before).tolist():
                    told = self._statuses[number]
                    code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if is_hopeless else told.code
                    status = Status(code, (*told.reasons, rejection.reason), told.plugin)
                    after[before == number] = self.number(status)
                said[rows] = after
        return said

    def by_status(self, numbers: Ints, rows: Ints) -> Sequence[tuple[Status, Ints]]:
        return [(self._statuses[number], rows[numbers == number]) for number in np.unique(numbers).tolist()]


class Reasons:
    """What the one filter of a profile says about each node to pods of a shape."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        [self._slot] = shape.profile.filters
        self._begin()

    def __len__(self) -> int:
        """How many different things are remembered that were said."""
        return len(self._statuses)

    def _begin(self) -> None:
        self._statuses = _Statuses(self._slot.name)
        self._numbers = CachedColumn(self._said)

    def about(self, rows: Ints) -> Sequence[tuple[Status, Ints]]:
        """Of nodes that are refused. What it says of one may be otherwise than of many, by a rounding."""
        nodes = self._shape.cluster.all_nodes()
        if len(self) > 2 * len(nodes.cluster.known) + _SPARE:
            self._begin()
        numbers = self._numbers.of(nodes)
        return self._statuses.by_status(numbers[rows], rows)

    def _said(self, nodes: Nodes) -> Ints | int:
        slot, state, pod = self._slot, self._shape.state, self._shape.pod
        known = nodes.cluster.known
        if isinstance(nodes, OneNode):
            status = filter_one(slot, state, pod, nodes) if known[nodes.row] else None
            return _LET_IN if status is None else self._statuses.number(status)
        return self._statuses.numbers(rejections(slot, state, pod, nodes, known), len(known))


def thorough(attempt: Attempt, refusal: Status | None, rows: Ints) -> Refused:
    """A PreFilter refused the pod, or all nodes but some."""
    diagnosis = attempt.diagnose(refusal)
    statuses = [diagnosis.status(row) for row in rows.tolist()]
    left = np.array([said is None for said in statuses], np.bool_)
    reasons = [(said, rows[[place]]) for place, said in enumerate(statuses) if said is not None]
    return Refused(left, reasons)


def together(attempt: Attempt, rows: Ints) -> Refused:
    """What a filter that looks at the nodes together says about these."""
    [slot] = attempt.profile.filters
    nodes = attempt.cluster.some_nodes(rows)
    found = rejections(slot, attempt.state, attempt.pod, nodes, np.ones(len(rows), np.bool_))
    statuses = _Statuses(slot.name)
    numbers = statuses.numbers(found, len(rows))
    bad = numbers != _LET_IN
    return Refused(~bad, statuses.by_status(numbers[bad], rows[bad]))
