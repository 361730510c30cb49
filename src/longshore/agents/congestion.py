"""Congestion: pods go where the network, or whatever else someone watches, is least congested.

Whoever watches it writes a whole number into the annotation `congestion-factor` of the node, from 0 for none
to a maximum; or a provider measures `congestion`, which counts before the annotation. Pods do not matter.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from longshore.agents.annotations import ANNOTATED_CONGESTION, read_congestion
from longshore.agents.arguments import arguments, whole_numbers
from longshore.cluster import Nodes, PodInfo
from longshore.framework import MAX_SCORE, CycleState, Handle, Scope

_LARGEST = 2**53
_TENS = 10


class CongestionArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What a configuration may say about it."""

    # The factor that stands for full congestion; larger ones are no worse.
    factor_max: Annotated[int, msgspec.Meta(ge=1, le=_LARGEST)] = 100
    # A node without a factor is not congested, halfway so, or fully.
    missing: Literal["Neutral", "FailOpen", "FailClosed"] = "Neutral"


_SHARE_OF_UNKNOWN = {"Neutral": 0.0, "FailOpen": 0.5, "FailClosed": 1.0}


class Congestion:
    """Score: the less congested, the better."""

    name = "Congestion"
    verb = "congestion"
    # The annotation is part of the node object, and a measurement changes the node.
    scope = Scope.NODE

    def __init__(self, args: object = None, *, handle: Handle) -> None:
        self._args = arguments(CongestionArgs, args, name=self.name)
        read_congestion(handle.cluster)

    @classmethod
    def environment(cls, environ: Mapping[str, str]) -> dict[str, object]:
        return whole_numbers(environ, {"CONGESTION_FACTOR_MAX": "factorMax"}, least=1, most=_LARGEST)

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Any:
        # Nodes of a cluster that was made for one question are read here.
        read_congestion(nodes.cluster)
        most = self._args.factor_max
        measured = nodes.cluster.measures.value("congestion", nodes)
        annotated = nodes.cluster.measures.value(ANNOTATED_CONGESTION, nodes)
        factor = np.where(np.isnan(measured), annotated, measured)
        share = np.minimum(np.maximum(factor, 0.0), most) / most
        share = np.where(np.isnan(factor), _SHARE_OF_UNKNOWN[self._args.missing], share)
        scores = np.floor(_TENS * (1 - share) + 0.5).astype(np.int64) * (MAX_SCORE // _TENS)
        return scores if scores.ndim else int(scores)
