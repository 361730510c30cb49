"""The arithmetic of resource scores, for the arrays of many nodes and the numbers of a single one.

Most of it uses only operators, which work for both. The few other functions handle each case.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from longshore.cluster import CPU, MEMORY, Nodes
from longshore.cluster.resources import FIXED_COLUMNS, counted
from longshore.config.arguments import ResourceSpec, ShapePoint
from longshore.framework import MAX_SCORE

# An array for many nodes, or a number for one.
Amount = Any

# A resource, its column if that is fixed, its weight in the score, and how much of it the pod requests.
ScoredRequest = tuple[str, int | None, int, int]
# What the nodes offer of a resource.
Offered = Any
# For a resource: its weight, what the nodes offer, what their pods use, and what the pod would add.
Use = tuple[int, Offered, Amount, int]

# Rates what would be used of what is offered, from 0 to MAX_SCORE; 0 if nothing is offered.
Rating = Callable[[Offered, Amount], Amount]

# The resources that have a column in every cluster.
FIXED = {name: column for column, name in enumerate(FIXED_COLUMNS)}

_NATIVE = ("cpu", "memory", "ephemeral-storage")
_HIGHEST_SHAPE_SCORE = 10


def scored_requests(specs: Sequence[ResourceSpec], amounts: Mapping[str, int]) -> list[ScoredRequest]:
    """Return the resources that count for a pod: the native ones, and others that it requests."""
    return [
        (spec.name, FIXED.get(spec.name), spec.weight, amounts.get(spec.name, 0))
        for spec in specs
        if spec.name in _NATIVE or (counted(spec.name) and spec.name != "pods" and amounts.get(spec.name))
    ]


def uses(requests: Sequence[ScoredRequest], nodes: Nodes, *, nonzero: bool) -> Iterator[Use]:
    """Yield how the resources are used. With `nonzero`, containers without requests count with a default."""
    requested = nodes.requested
    for resource, fixed, weight, amount in requests:
        column = nodes.cluster.column(resource) if fixed is None else fixed
        if nonzero and column == CPU:
            yield weight, nodes.offer(CPU), nodes.nonzero_requested[0], amount
        elif nonzero and column == MEMORY:
            yield weight, nodes.offer(MEMORY), nodes.nonzero_requested[1], amount
        elif column is not None:
            yield weight, nodes.offer(column), requested[column], amount


def weighted_mean(parts: Iterator[Use], rating: Rating) -> Amount:
    """Return the weighted mean over the resources that a node offers, rounded down."""
    total: Amount = 0
    weights: Amount = 0
    for weight, offered, used, amount in parts:
        rated = rating(offered, used + amount)
        total += rated if weight == 1 else weight * rated
        # Dividing by one number is much faster than by an array.
        weights += weight if offered.everywhere else weight * (offered.amount > 0)
    return total // (weights + (weights == 0))


def weighted_mean_of_rated(parts: Iterator[Use], rating: Rating) -> Amount:
    """Return the weighted mean over the resources rated above 0, rounded to the nearest integer, half up."""
    total: Amount = 0
    weights: Amount = 0
    for weight, offered, used, amount in parts:
        rated = rating(offered, used + amount) * (offered.amount > 0)
        total += weight * rated
        weights += weight * (rated > 0)
    return (2 * total + weights) // (2 * weights + (weights == 0))


def free_share(offered: Offered, use: Amount) -> Amount:
    return offered.percentage(at_least_0(offered.amount - use))


def used_share(offered: Offered, use: Amount) -> Amount:
    return offered.percentage(at_most(use, offered.amount))


def shaped(shape: Sequence[ShapePoint]) -> Rating:
    """Return a rating by the used share, with a function that is linear between the points of the shape."""
    points = [(point.utilization, point.score * MAX_SCORE // _HIGHEST_SHAPE_SCORE) for point in shape]
    ratings = np.array([_broken_line(points, share) for share in range(MAX_SCORE + 1)])
    return lambda offered, use: ratings[used_share(offered, use)]


def at_most(amount: Amount, limit: Amount) -> Amount:
    if isinstance(amount, np.ndarray):
        return np.minimum(amount, limit)
    return limit if amount > limit else amount


def at_least_0(amount: Amount) -> Amount:
    """Return the amount, but not less than 0. An array is changed in place."""
    if isinstance(amount, np.ndarray):
        return np.maximum(amount, 0, out=amount)
    return amount if amount > 0 else 0


def truncated(amount: Amount) -> Amount:
    """Return the amount without its fraction."""
    return amount.astype(np.int64) if isinstance(amount, np.ndarray) else int(amount)


def _broken_line(points: Sequence[tuple[int, int]], at: int) -> int:
    before, score_before = points[0]
    if at <= before:
        return score_before
    for end, score in points[1:]:
        if at <= end:
            # Rounded toward zero, also if the line falls.
            return score_before + int((score - score_before) * (at - before) / (end - before))
        before, score_before = end, score
    return score_before
