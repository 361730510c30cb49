"""Congestion: prefers nodes where the network, or anything else that is monitored, is least congested.

The monitor writes an integer into the node annotation `congestion-factor`, from 0 (no congestion) to a
maximum. If a provider measures `congestion`, that takes precedence. The score does not depend on the pod.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from longshore.agents.annotations import ANNOTATED_CONGESTION, read_congestion
from longshore.agents.environment import whole_numbers
from longshore.cluster import Nodes, PodInfo
from longshore.config.plugin_arguments import read_plugin_arguments
from longshore.framework import MAX_SCORE, CycleState, Handle, Scope

_LARGEST = 2**53
_TENS = 10


class CongestionArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The arguments of Congestion in a configuration."""

    # The factor that means full congestion; larger ones count the same.
    factor_max: Annotated[int, msgspec.Meta(ge=1, le=_LARGEST)] = 100
    # How a node without a factor counts: not congested, half congested, or fully congested.
    missing: Literal["Neutral", "FailOpen", "FailClosed"] = "Neutral"


_SHARE_OF_UNKNOWN = {"Neutral": 0.0, "FailOpen": 0.5, "FailClosed": 1.0}


class Congestion:
    """Score: the less congested, the better."""

    name = "Congestion"
    verb = "congestion"
    # The annotation is part of the node object, and a new measurement counts as a change of the node.
    scope = Scope.NODE

    def __init__(self, args: object = None, *, handle: Handle) -> None:
        self._args = read_plugin_arguments(CongestionArgs, args, plugin=self.name)
        read_congestion(handle.cluster)

    @classmethod
    def environment(cls, environ: Mapping[str, str]) -> dict[str, object]:
        return whole_numbers(environ, {"CONGESTION_FACTOR_MAX": "factorMax"}, least=1, most=_LARGEST)

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Any:
        # A cluster built for a single request has not been read yet.
        read_congestion(nodes.cluster)
        most = self._args.factor_max
        measured = nodes.cluster.measures.value("congestion", nodes)
        annotated = nodes.cluster.measures.value(ANNOTATED_CONGESTION, nodes)
        factor = np.where(np.isnan(measured), annotated, measured)
        share = np.minimum(np.maximum(factor, 0.0), most) / most
        share = np.where(np.isnan(factor), _SHARE_OF_UNKNOWN[self._args.missing], share)
        scores = np.floor(_TENS * (1 - share) + 0.5).astype(np.int64) * (MAX_SCORE // _TENS)
        return scores if scores.ndim else int(scores)
