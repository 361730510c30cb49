"""Load variation risk balancing: prefers nodes whose usage is low and varies little.

The risk of a resource is the average of the share used with the pod on the node and the deviation of that
share, weighted by a margin and a sensitivity. The riskiest resource decides.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
import numpy as np

from longshore.agents.load import COLUMNS, Missing, load_of, worst
from longshore.cluster import Nodes, PodInfo
from longshore.config.plugin_arguments import read_plugin_arguments
from longshore.framework import MAX_SCORE, CycleState, Handle, Scope

_NotNegative = Annotated[float, msgspec.Meta(ge=0)]


class LoadVariationRiskBalancingArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The arguments of LoadVariationRiskBalancing in a configuration."""

    # The deviation's root of degree `safe_variance_sensitivity` is multiplied by the margin.
    safe_variance_margin: _NotNegative = 1.0
    safe_variance_sensitivity: _NotNegative = 1.0
    missing: Missing = "Neutral"


class LoadVariationRiskBalancing:
    name = "LoadVariationRiskBalancing"
    verb = "load-variation-risk-balancing"
    scope = Scope.PODS

    def __init__(self, args: object = None, *, handle: Handle) -> None:
        self._args = read_plugin_arguments(LoadVariationRiskBalancingArgs, args, plugin=self.name)

    @classmethod
    def environment(cls, environ: Mapping[str, str]) -> dict[str, object]:
        return {}

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Any:
        scores = []
        for resource, column in COLUMNS.items():
            load = load_of(nodes, resource, missing=self._args.missing)
            load = load._replace(capacity=nodes.cluster.capacities.of(nodes, column))
            mean, deviation = load.shares(pod.requests.get(resource, 0))
            risk = (mean + self._weighed(deviation)) / 2
            scores.append((load.known, np.floor(MAX_SCORE * (1 - risk) + 0.5)))
        return worst(scores, missing=self._args.missing)

    def _weighed(self, deviation: Any) -> Any:
        sensitivity = self._args.safe_variance_sensitivity
        # The limit as the exponent grows to infinity.
        root = deviation ** (1 / sensitivity) if sensitivity else np.floor(deviation)
        return np.minimum(self._args.safe_variance_margin * root, 1.0)
