"""Rates the whole cluster with the pod on each node in turn, as one number; smaller is better.

An objective covers all nodes together, but a placement changes only one of them. The sum over all nodes is
therefore computed once and corrected for each candidate: the work grows with the nodes, not with their
square. Deviations are added up about the mean, so that the differences which decide are not lost in rounding.
"""

from collections.abc import Callable

import numpy as np

from longshore.agents.demand_history import DemandHistory
from longshore.cluster.arrays import Bools, Floats, Ints


class Model:
    """`capacity[resource]` and `usage[resource]` with one element per node, and the demand of a pod."""

    def __init__(self, capacity: Floats, usage: Floats, demand: Floats, history: DemandHistory) -> None:
        self.capacity = capacity
        self.usage = usage
        self.demand = demand[:, np.newaxis]
        self.history = history

    @property
    def fits(self) -> Bools:
        """Return where the node has enough of every resource."""
        fits: Bools = np.logical_and.reduce(self.demand <= self.capacity - self.usage)
        return fits

    def utilization(self, usage: Floats) -> Floats:
        """Return the used share of each resource on each node; 1 where the node has no capacity."""
        offered = self.capacity > 0
        return np.where(offered, usage / np.where(offered, self.capacity, 1.0), 1.0)

    def bounded_utilization(self, usage: Floats) -> Floats:
        """Return the utilization, at most 1; 0 where the node has no capacity and uses none."""
        return np.where((self.capacity > 0) | (usage > 0), np.clip(self.utilization(usage), 0.0, 1.0), 0.0)


# Called with the model and the index of the resource that matters most.
Objective = Callable[[Model, int], Floats]


def load_balance(model: Model, resource: int) -> Floats:
    """Return the standard deviation of the utilization over the nodes."""
    before, change = _one_resource(model, resource)
    return np.sqrt(_variance(before, change, len(before)))


def consolidate(model: Model, resource: int) -> Floats:
    """Return 1 if all nodes have equal utilization, and less the more of them are either empty or full.

    A node's distance from the mean is weighted by the room on its side of the mean: down to 0, or up to 1.
    """
    before, change = _one_resource(model, resource)
    count = len(before)
    base = before.mean()
    mean = base + change / count
    inside = (mean > 0) & (mean < 1)
    ordered = np.sort(before) - base
    # The squared distances from the mean, for the nodes below it and for those above it.
    below = np.searchsorted(ordered + base, mean)
    squares = _squares_before(ordered, below, mean - base)
    total = _squares_before(ordered, np.full_like(below, count), mean - base)
    low, high = squares, total - squares
    # Correct for the candidate, whose utilization changes.
    for values, sign in ((before, -1), (before + change, 1)):
        distance = sign * (values - mean) ** 2
        low = low + distance * (values < mean)
        high = high + distance * (values >= mean)
    room = np.where(inside, mean, 0.5)
    scaled = np.maximum(low, 0.0) / room**2 + np.maximum(high, 0.0) / (1 - room) ** 2
    return np.where(inside, 1 - np.sqrt(scaled / count), 0.0)


def adaptive_bin_packing(model: Model, resource: int) -> Floats:
    """Return how far the variability of the nodes' utilization is from that of past requests.

    Pods of equal size are spread. If sizes vary, nodes are filled unevenly, which keeps room for large pods.
    """
    before = model.bounded_utilization(model.usage)
    change = model.bounded_utilization(model.usage + model.demand) - before
    count = before.shape[1]
    base = before.mean(axis=1, keepdims=True)
    apart = before - base
    covariance = apart @ apart.T / count
    mean = base + change / count
    # The quadratic form of the mean and the covariance, with the candidate's utilization changed.
    shift = (mean * change).sum(axis=0)
    own = (mean * apart).sum(axis=0)
    form = np.einsum("jn,jk,kn->n", mean, covariance, mean)
    form = form + (2 * own * shift + shift**2) / count - (shift / count) ** 2
    return np.abs(_variability(form, (mean**2).sum(axis=0)) - _demand_variability(model))


def _one_resource(model: Model, resource: int) -> tuple[Floats, Floats]:
    """Return the utilization of the resource on each node, and what the pod would add."""
    before = model.utilization(model.usage)[resource]
    return before, model.utilization(model.usage + model.demand)[resource] - before


def _variance(before: Floats, change: Floats, count: int) -> Floats:
    """Return the variance over all nodes if one of them changes by `change`."""
    apart = before - before.mean()
    squares = (apart**2).sum() + 2 * apart * change + change**2 - change**2 / count
    variance: Floats = np.maximum(squares, 0.0) / count
    return variance


def _squares_before(ordered: Floats, places: Ints, about: Floats) -> Floats:
    """Return the sum of squared distances of the first `places` values from each point."""
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    squares = np.concatenate([[0.0], np.cumsum(ordered**2)])
    found: Floats = places * about**2 - 2 * about * sums[places] + squares[places]
    return found


def _demand_variability(model: Model) -> float:
    """Return the variability of past requests as shares of the mean node, for resources that nodes offer."""
    offered = model.capacity > 0
    nodes = offered.sum(axis=1)
    total = np.where(offered, model.capacity, 0.0).sum(axis=1)
    scale = np.where(nodes > 0, nodes / np.where(total > 0, total, 1.0), 0.0)
    mean = model.history.mean * scale
    covariance = model.history.second * np.outer(scale, scale) - np.outer(mean, mean)
    return float(_variability(np.asarray(mean @ covariance @ mean), np.asarray(mean @ mean)))


def _variability(form: Floats, squared_mean: Floats) -> Floats:
    """Return the joint coefficient of variation of several resources; 0 where nothing can be compared."""
    sound = (form > 0) & (squared_mean > 0)
    return np.where(sound, np.sqrt(np.where(sound, form, 0.0)) / np.where(sound, squared_mean, 1.0), 0.0)
