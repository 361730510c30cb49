"""How loaded nodes are: what of a resource is used on each, how much that varies, and what is not known.

The mean of what was measured, with the forecast mixed in, plus the requests of pods that it cannot show yet.
Where nothing is known, or too old, the policy `missing` of the agent counts.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from longshore.agents.amounts import Amount, at_most, either, is_known, whole
from longshore.cluster import CPU, MEMORY, Nodes
from longshore.framework import MAX_SCORE

# What becomes of a resource without measurements. Neutral: it has no say, and a node without any is the
# worst. FailOpen: it is accepted, with a middle score. FailClosed: it is refused. Requests: those of the
# node's pods stand in for what they use.
Missing = Literal["Neutral", "FailOpen", "FailClosed", "Requests"]

REASON_NO_MEASUREMENTS = "no fresh measurements of the node's load"

COLUMNS = {"cpu": CPU, "memory": MEMORY}

_SCORE_OF_UNKNOWN = {"FailOpen": MAX_SCORE // 2, "FailClosed": 0}


class Load(NamedTuple):
    """Of one resource, in the unit of its column; nothing is used, and nothing varies, where not `known`."""

    known: Amount
    capacity: Amount
    used: Amount
    deviation: Amount

    def shares(self, request: float) -> tuple[Amount, Amount]:
        """The mean with one more pod that asks for so much, and the deviation: of the capacity, 0 to 1."""
        capacity = self.capacity + (self.capacity <= 0)
        return at_most((self.used + request) / capacity, 1.0), at_most(self.deviation / capacity, 1.0)


def load_of(
    nodes: Nodes, resource: str, *, forecast_weight: float = 0.0, missing: Missing = "Neutral"
) -> Load:
    """`forecast_weight`: how much the forecast counts, from 0 to 1, where there is one."""
    measures, column = nodes.cluster.measures, COLUMNS[resource]
    capacity, requested = nodes.allocatable[column], nodes.requested[column]
    mean = measures.value(f"{resource}/mean", nodes)
    offered = capacity > 0
    known = offered & is_known(mean)
    if forecast_weight:
        forecast = measures.value(f"{resource}/forecast", nodes)
        # Of what is free, as it was measured: then the last digit is that of whoever measured it.
        free = (1 - forecast_weight) * (capacity - mean) + forecast_weight * (capacity - forecast)
        mean = either(is_known(forecast), capacity - free, mean)
    used = either(mean > 0, mean, 0.0) + measures.unseen(nodes, column)
    deviation = measures.value(f"{resource}/std", nodes)
    # Of what was measured: requests that stand in for it do not vary.
    deviation = either(known & (deviation > 0), deviation, 0.0)
    if missing == "Requests":
        used, known = either(known, used, requested), offered
    return Load(known, capacity, either(known, used, 0.0), deviation)


def worst(scores: Sequence[tuple[Amount, Amount]], *, missing: Missing) -> Amount:
    """Of a node over its resources, each with whether it is known, as whole numbers."""
    instead = _SCORE_OF_UNKNOWN.get(missing, MAX_SCORE)
    any_known: Amount = missing in _SCORE_OF_UNKNOWN
    lowest: Amount = MAX_SCORE
    for known, score in scores:
        any_known = any_known | known
        said = either(known, score, instead)
        lowest = either(said < lowest, said, lowest)
    return whole(lowest * any_known)
