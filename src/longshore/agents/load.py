"""The load of nodes: how much of a resource each one uses, how much that varies, and what is unknown.

Usage is the measured mean, combined with the forecast, plus the requests of pods that are too new to show in
it. Where measurements are missing or expired, the agent's `missing` policy applies.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from longshore.agents.amounts import Amount, at_most, either, is_known, whole
from longshore.cluster import CPU, MEMORY, Nodes
from longshore.framework import MAX_SCORE

# How a resource without measurements counts. Neutral: it is ignored, and a node without any measurement has
# the worst score. FailOpen: it is accepted, with a middle score. FailClosed: it is rejected. Requests: the
# requests of the node's pods replace the measured usage.
Missing = Literal["Neutral", "FailOpen", "FailClosed", "Requests"]

REASON_NO_MEASUREMENTS = "no fresh measurements of the node's load"

COLUMNS = {"cpu": CPU, "memory": MEMORY}

_SCORE_OF_UNKNOWN = {"FailOpen": MAX_SCORE // 2, "FailClosed": 0}


class Load(NamedTuple):
    """The load of one resource, in the unit of its column. Usage and deviation are 0 where not `known`."""

    known: Amount
    capacity: Amount
    used: Amount
    deviation: Amount

    def shares(self, request: float) -> tuple[Amount, Amount]:
        """Return mean and deviation with one more pod of this request, as shares of the capacity, 0 to 1."""
        capacity = self.capacity + (self.capacity <= 0)
        return at_most((self.used + request) / capacity, 1.0), at_most(self.deviation / capacity, 1.0)


def load_of(
    nodes: Nodes, resource: str, *, forecast_weight: float = 0.0, missing: Missing = "Neutral"
) -> Load:
    """Return the load of a resource. `forecast_weight` (0 to 1) applies where a forecast exists."""
    measures, column = nodes.cluster.measures, COLUMNS[resource]
    capacity, requested = nodes.allocatable[column], nodes.requested[column]
    mean = measures.value(f"{resource}/mean", nodes)
    offered = capacity > 0
    known = offered & is_known(mean)
    if forecast_weight:
        forecast = measures.value(f"{resource}/forecast", nodes)
        # Combined as free amounts, as they were measured, so that rounding equals that of the source.
        free = (1 - forecast_weight) * (capacity - mean) + forecast_weight * (capacity - forecast)
        mean = either(is_known(forecast), capacity - free, mean)
    used = either(mean > 0, mean, 0.0) + measures.unseen(nodes, column)
    deviation = measures.value(f"{resource}/std", nodes)
    # Only measured usage varies; requests that replace it do not.
    deviation = either(known & (deviation > 0), deviation, 0.0)
    if missing == "Requests":
        used, known = either(known, used, requested), offered
    return Load(known, capacity, either(known, used, 0.0), deviation)


def worst(scores: Sequence[tuple[Amount, Amount]], *, missing: Missing) -> Amount:
    """Return the lowest score over the resources of a node, given each score with whether it is known."""
    instead = _SCORE_OF_UNKNOWN.get(missing, MAX_SCORE)
    any_known: Amount = missing in _SCORE_OF_UNKNOWN
    lowest: Amount = MAX_SCORE
    for known, score in scores:
        any_known = any_known | known
        said = either(known, score, instead)
        lowest = either(said < lowest, said, lowest)
    return whole(lowest * any_known)
