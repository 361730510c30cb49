"""Low risk overcommitment: prefers nodes on which limits and real load are least likely to be too much.

Two risks are weighed for each resource. The risk of the limits is the share of the usage allowed beyond
requests that the node has no capacity for. The risk of the load is the probability that usage exceeds the
requests, given that it stays within the limits. The riskiest resource counts.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
import numpy as np

from longshore.agents import beta
from longshore.agents.load import COLUMNS, Load, Missing, load_of, worst
from longshore.cluster import Nodes, PodInfo
from longshore.cluster.overcommitment import beyond_requests
from longshore.config.plugin_arguments import read_plugin_arguments
from longshore.framework import MAX_SCORE, CycleState, Handle, Scope

# Deviations are capped so that a Beta distribution with them exists.
_MOST_VARIANCE = 0.99

_Weight = Annotated[float, msgspec.Meta(ge=0, le=1)]


class RiskLimitWeights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cpu: _Weight = 0.5
    memory: _Weight = 0.5


class LowRiskOverCommitmentArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The arguments of LowRiskOverCommitment in a configuration."""

    # The source smooths over this many measurements; the deviation was larger before.
    smoothing_window_size: Annotated[int, msgspec.Meta(ge=1)] = 5
    # The weight of the limits' risk; the rest is the weight of the load's risk.
    risk_limit_weights: RiskLimitWeights = RiskLimitWeights()
    missing: Missing = "Neutral"


class _Sums(msgspec.Struct, frozen=True):
    """The sums of the requests and of the limits of the pods on a node, in the unit of the column."""

    requests: Any
    limits: Any


class LowRiskOverCommitment:
    name = "LowRiskOverCommitment"
    verb = "low-risk-over-commitment"
    scope = Scope.PODS

    def __init__(self, args: object = None, *, handle: Handle) -> None:
        self._args = read_plugin_arguments(LowRiskOverCommitmentArgs, args, plugin=self.name)
        beta.require_scipy(self.name)
        handle.cluster.keep_limits()

    @classmethod
    def environment(cls, environ: Mapping[str, str]) -> dict[str, object]:
        return {}

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Any:
        beyond = state.memo.get(self.name)
        if beyond is None:
            beyond = state.memo[self.name] = dict(zip(COLUMNS, beyond_requests(pod), strict=True))
        if not any(beyond.values()) and not any(pod.requests.get(resource) for resource in COLUMNS):
            # A best-effort pod has no requests or limits to weigh.
            return 0
        scores = []
        for resource, column in COLUMNS.items():
            load = load_of(nodes, resource, missing=self._args.missing)
            load = load._replace(capacity=nodes.cluster.capacities.of(nodes, column))
            requested = nodes.requested[column]
            without = _Sums(requested, requested + nodes.cluster.limits.beyond(nodes, column))
            request = pod.requests.get(resource, 0)
            within = _Sums(without.requests + request, without.limits + request + beyond[resource])
            weight = getattr(self._args.risk_limit_weights, resource)
            risk = weight * limit_risk(within, load.capacity)
            risk = risk + (1 - weight) * self._load_risk(without, load)
            scores.append((load.known, np.floor(MAX_SCORE * (1 - risk) + 0.5)))
        return worst(scores, missing=self._args.missing)

    def _load_risk(self, without: _Sums, load: Load) -> Any:
        mean, deviation = load.shares(0)
        widened = deviation * math.sqrt(self._args.smoothing_window_size)
        deviation = np.minimum(widened, np.sqrt(_MOST_VARIANCE * mean * (1 - mean)))
        return load_risk(mean, deviation, without, load.capacity)


def limit_risk(asked: _Sums, capacity: Any) -> Any:
    """Return the share of the usage allowed beyond requests that the node has no capacity for."""
    lacking = np.maximum(asked.limits - capacity, 0)
    beyond = asked.limits - np.minimum(asked.requests, capacity)
    return lacking / np.maximum(beyond, 1)


def load_risk(mean: Any, deviation: Any, asked: _Sums, capacity: Any) -> Any:
    """Return the probability that usage exceeds the requests, given that it stays below binding limits."""
    capacity = capacity + (capacity <= 0)
    # Both in one call: for a single node a call costs more than the calculation.
    shares = np.minimum(np.array([asked.requests, asked.limits]) / capacity, 1.0)
    kept, possible = 1 - beta.risk(np.array([mean, mean]), np.array([deviation, deviation]), shares)
    # Without limits no usage is expected, so there is no risk.
    kept = np.where(asked.limits > 0, kept, 1.0)
    binding = (asked.limits > 0) & (asked.limits < capacity) & (possible > 0)
    return 1 - np.minimum(kept / np.where(binding, possible, 1.0), 1.0)
