"""How loaded nodes are: what of a resource is used on each, how much that varies, and what is not known.

The mean of what was measured, with the forecast mixed in, plus the requests of pods that it cannot show yet.
Where nothing is known, or too old, the policy `missing` of the agent counts. All of this works on the arrays
of many nodes and on the numbers of one.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from longshore.cluster import CPU, MEMORY, Nodes
from longshore.framework import MAX_SCORE

# An array for many nodes, or a number for one.
Amount = Any

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
        return (
            np.minimum((self.used + request) / capacity, 1.0),
            np.minimum(self.deviation / capacity, 1.0),
        )


def load_of(
    nodes: Nodes, resource: str, *, forecast_weight: float = 0.0, missing: Missing = "Neutral"
) -> Load:
    """`forecast_weight`: how much the forecast counts, from 0 to 1, where there is one."""
    measures, column = nodes.cluster.measures, COLUMNS[resource]
    capacity, requested = nodes.allocatable[column], nodes.requested[column]
    mean = measures.value(f"{resource}/mean", nodes)
    offered = np.greater(capacity, 0)
    known = offered & ~np.isnan(mean)
    # Numbers may be of any size: what overflows is more than the node has.
    with np.errstate(over="ignore", invalid="ignore"):
        if forecast_weight:
            forecast = measures.value(f"{resource}/forecast", nodes)
            # Of what is free, as it was measured: then the last digit is that of whoever measured it.
            free = (1 - forecast_weight) * (capacity - mean) + forecast_weight * (capacity - forecast)
            mean = np.where(np.isnan(forecast), mean, capacity - free)
        used = np.fmax(mean, 0.0) + measures.unseen(nodes, column)
    if missing == "Requests":
        used, known = np.where(known, used, requested), offered
    deviation = np.fmax(measures.value(f"{resource}/std", nodes), 0.0)
    return Load(known, capacity, np.where(known, used, 0.0), np.where(known, deviation, 0.0))


def worst(scores: Sequence[tuple[Amount, Amount]], *, missing: Missing) -> Amount:
    """Of a node over its resources, each with whether it is known, as whole numbers."""
    instead = _SCORE_OF_UNKNOWN.get(missing, MAX_SCORE)
    any_known: Amount = missing in _SCORE_OF_UNKNOWN
    lowest: Amount = MAX_SCORE
    for known, score in scores:
        any_known = any_known | known
        lowest = np.minimum(lowest, np.where(known, score, instead))
    return whole(lowest * any_known)


def whole(score: Amount) -> Amount:
    """Without the fraction: an array of numbers, or a plain number."""
    score = np.asarray(score)
    return score.astype(np.int64) if score.ndim else int(score)
