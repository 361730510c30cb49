"""Reads the load that node annotations report into `cluster.measures`.

Other sources may measure the nodes too, and values of two sources must not be mixed. Therefore only the code
that sets up the provider of measurements calls `read_load`, and only if that provider is `annotations`; no
agent calls it. Code that builds a cluster by hand, for example from the Node objects of one request, calls it
for that cluster, and sets the time with `cluster.measures.put({}, now=...)` if values should expire.
Annotations that no provider measures belong to the agent that needs them, which calls `read_congestion` or
`read_requested` itself. All three may be called repeatedly for the same cluster: nodes are read once.
"""

import math
import re
import sys
from typing import Final

from longshore.api import InvalidQuantity, Node, value
from longshore.api.timestamps import parse_timestamp
from longshore.cluster import ClusterState
from longshore.cluster.measures import Measured
from longshore.cluster.resources import allocatable_amounts

# Free amounts: CPU in millicores, memory in bytes.
MEAN_FREE: Final = {"cpu": "mean-free-cpu", "memory": "mean-free-memory"}
STD_FREE: Final = {"cpu": "std-free-cpu", "memory": "std-free-memory"}
# The first spelling is the original one, which we write; the second is accepted too.
FORECAST_FREE: Final = {
    "cpu": ("forcasted-free-cpu", "forecasted-free-cpu"),
    "memory": ("forcasted-free-memory", "forecasted-free-memory"),
}
# When the load was measured, in RFC 3339. Without it, the values never expire.
MEASURED_AT: Final = "longshore.dev/measured-at"
CONGESTION_FACTOR: Final = "congestion-factor"
# Not `congestion`: a provider measures that one, and a node without the annotation must not overwrite it.
ANNOTATED_CONGESTION: Final = "congestion/annotated"
# Requests of the node's pods: CPU in millicores, memory and storage in bytes.
REQUESTED: Final = {
    "cpu": "requested-cpu",
    "memory": "requested-memory",
    "pods": "requested-pods",
    "gpu": "requested-gpu",
    "ephemeral-storage": "requested-ephemeral-storage",
}
# When the requests were counted, in RFC 3339. Without it, the values never expire.
ALLOCATED_AT: Final = "longshore.dev/allocated-at"
# 1 until the counted requests expire. The amounts themselves stay, because there are no better ones.
ALLOCATION: Final = "allocation/fresh"
# Allocatable amount of `gpu`, a resource without a domain in its name and therefore without a column.
GPUS: Final = "gpu/allocatable"

_UNKNOWN = float("nan")
_NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan)", re.ASCII | re.IGNORECASE
)
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")


def read_load(cluster: ClusterState) -> None:
    """Read `cpu/mean`, `cpu/std`, `cpu/forecast` and the same measures of memory from the nodes."""
    cluster.measures.read_nodes(load)


def read_congestion(cluster: ClusterState) -> None:
    """Read `ANNOTATED_CONGESTION` from the nodes."""
    cluster.measures.read_nodes(congestion)


def read_requested(cluster: ClusterState) -> None:
    """Read the requests of the nodes' pods from the nodes, under the names that `requested_measure` gives."""
    cluster.measures.read_nodes(requested)


def requested_measure(resource: str) -> str:
    return f"{resource}/requested"


def load(node: Node) -> dict[str, Measured]:
    """Return the used amounts: allocatable minus free, negative if more is free than allocatable."""
    annotations = node.metadata.annotations
    offered = allocatable_amounts(node.status.allocatable)
    at = parse_timestamp(annotations.get(MEASURED_AT, ""))
    found: dict[str, Measured] = {}
    for resource in MEAN_FREE:
        capacity = offered.get(resource, 0)
        mean = number(annotations.get(MEAN_FREE[resource], ""))
        std = number(annotations.get(STD_FREE[resource], ""))
        # A missing deviation is unknown; an infinite one or NaN makes the mean unusable too.
        if mean is None or not math.isfinite(std or 0.0):
            mean = std = None
        texts = (annotations.get(key, "") for key in FORECAST_FREE[resource])
        forecast = next((n for text in texts if (n := number(text)) is not None), _UNKNOWN)
        found[f"{resource}/mean"] = (_UNKNOWN if mean is None else capacity - mean, at)
        found[f"{resource}/std"] = (_UNKNOWN if std is None else std, at)
        found[f"{resource}/forecast"] = (capacity - forecast, at)
    return found


def congestion(node: Node) -> dict[str, Measured]:
    """Return the annotated factor, an integer; the annotation carries no time."""
    text = node.metadata.annotations.get(CONGESTION_FACTOR, "")
    # The text may have any number of digits, and infinity is not a valid factor.
    factor = min(float(text), sys.float_info.max) if _WHOLE_NUMBER.fullmatch(text) else _UNKNOWN
    return {ANNOTATED_CONGESTION: (factor, _UNKNOWN)}


def requested(node: Node) -> dict[str, Measured]:
    annotations = node.metadata.annotations
    found: dict[str, Measured] = {ALLOCATION: (1.0, parse_timestamp(annotations.get(ALLOCATED_AT, "")))}
    for resource, key in REQUESTED.items():
        amount = number(annotations.get(key, ""))
        found[requested_measure(resource)] = (_UNKNOWN if amount is None else amount, _UNKNOWN)
    found[GPUS] = (_gpus(node), _UNKNOWN)
    return found


def number(text: str) -> float | None:
    """Parse a number as other languages do: no spaces, no underscores, no units."""
    return float(text) if _NUMBER.fullmatch(text) else None


def _gpus(node: Node) -> float:
    text = node.status.allocatable.get("gpu")
    try:
        return _UNKNOWN if text is None else float(max(value(text), 0))
    except InvalidQuantity:
        return _UNKNOWN
