"""A plan as a value: the node of each pod of a set, their order, and what the plan costs.

Spreading and affinity are checked pod by pod, so the order is part of a plan, and its pods must be placed in
this order. The cost and its lower bound belong to the objective that the plan was made for; lower is better.
"""

from collections.abc import Mapping
from functools import cached_property

import msgspec

# Keeps the gap defined if the cost is 0.
_TINY = 1e-9
# The most names listed of the pods that hold back a whole set.
_NAMED = 3

# The name of the planner in this package.
BUILT_IN = "built-in"
GOES_AS_A_WHOLE = "the set goes only as a whole"


class Assignment(msgspec.Struct, frozen=True):
    """One pod, `namespace/name`, on one node. The UID distinguishes it from a later pod of that name."""

    pod: str
    uid: str
    node: str


class LeftOut(msgspec.Struct, frozen=True):
    """A pod for which the plan has no node, and why."""

    pod: str
    uid: str
    reason: str


class Plan(msgspec.Struct, frozen=True, dict=True):
    """The nodes of the pods of a set, in order, and the pods without a node.

    `objective` is the cost. No plan that places all pods costs less than `bound`, which is None if it is not
    known, such as for a plan that leaves out pods. `planner` made the plan, in `seconds`.
    """

    assignments: tuple[Assignment, ...]
    left_out: tuple[LeftOut, ...] = ()
    objective: float = 0.0
    bound: float | None = None
    planner: str = BUILT_IN
    seconds: float = 0.0

    @property
    def gap(self) -> float | None:
        """The most that a better plan could save, as a share of the cost; None without a bound."""
        if self.bound is None:
            return None
        return max(0.0, (self.objective - self.bound) / max(abs(self.objective), _TINY))

    @property
    def complete(self) -> bool:
        """Whether no pod is left out."""
        return not self.left_out

    def node_of(self, uid: str) -> str | None:
        return self._nodes.get(uid)

    @cached_property
    def _nodes(self) -> Mapping[str, str]:
        return {assignment.uid: assignment.node for assignment in self.assignments}


def none_of(assignments: tuple[Assignment, ...], left_out: tuple[LeftOut, ...]) -> tuple[LeftOut, ...]:
    """Return all pods as left out because some are: these for their own reason, others because of them."""
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
