"""A plan as a value: which pod of a set goes to which node, in which order, and what that costs.

Spreading and affinity are checked pod after pod, so the order is part of a plan: who follows it places the
pods one after the other. The cost and its lower bound are those of the objective that the plan was made for;
lower is better.
"""

from collections.abc import Mapping
from functools import cached_property

import msgspec

# What keeps the gap defined where the cost is nothing.
_TINY = 1e-9
# Names told of the pods that hold a whole set back.
_NAMED = 3

# The planner of this package, by name.
BUILT_IN = "built-in"
GOES_AS_A_WHOLE = "the set goes only as a whole"


class Assignment(msgspec.Struct, frozen=True):
    """One pod on one node. The pod goes by `namespace/name`; the UID tells it from its successor."""

    pod: str
    uid: str
    node: str


class LeftOut(msgspec.Struct, frozen=True):
    """A pod that the plan has no node for, and why."""

    pod: str
    uid: str
    reason: str


class Plan(msgspec.Struct, frozen=True, dict=True):
    """Where the pods of a set go, in order, and those that go nowhere.

    `objective` is the cost, and no plan that places all pods costs less than `bound`; None if nobody knows,
    as of a plan that leaves out some. `planner` made it, in so many seconds.
    """

    assignments: tuple[Assignment, ...]
    left_out: tuple[LeftOut, ...] = ()
    objective: float = 0.0
    bound: float | None = None
    planner: str = BUILT_IN
    seconds: float = 0.0

    @property
    def gap(self) -> float | None:
        """How much cheaper a better plan could be at most, as a share of the cost; None without a bound."""
        if self.bound is None:
            return None
        return max(0.0, (self.objective - self.bound) / max(abs(self.objective), _TINY))

    @property
    def complete(self) -> bool:
        """Nothing is left out."""
        return not self.left_out

    def node_of(self, uid: str) -> str | None:
        return self._nodes.get(uid)

    @cached_property
    def _nodes(self) -> Mapping[str, str]:
        return {assignment.uid: assignment.node for assignment in self.assignments}


def none_of(assignments: tuple[Assignment, ...], left_out: tuple[LeftOut, ...]) -> tuple[LeftOut, ...]:
    """All pods as left out, because some are: those by their own reason, the others on account of them."""
    names = ", ".join(each.pod for each in left_out[:_NAMED])
    if len(left_out) > _NAMED:
        names += f" and {len(left_out) - _NAMED} more"
    held_back = f"{GOES_AS_A_WHOLE}, and there is no node for {names}: {left_out[0].reason}"
    return (
        *(LeftOut(each.pod, each.uid, f"{each.reason} {_sentence(GOES_AS_A_WHOLE)}") for each in left_out),
        *(LeftOut(each.pod, each.uid, held_back) for each in assignments),
    )


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."
