"""What nodes say of themselves in annotations, read into `cluster.measures`.

Others may measure the nodes as well, and values of two sources must not be mixed. Hence one rule: `read_load`
is for whoever sets up the provider of measurements, if that provider is `annotations`; no agent calls it.
Whoever builds a cluster by hand, as for the Node objects of one request, calls it there, and tells the time
with `cluster.measures.put({}, now=...)` if values are to grow old. Annotations that no provider measures
belong to the agent that wants them, which calls `read_congestion` or `read_requested` itself. All three may
be called again for the same cluster: nodes are read once.
"""

import math
import re
import sys
from typing import Final

from longshore.api import InvalidQuantity, Node, value
from longshore.api.timestamps import moment
from longshore.cluster import ClusterState
from longshore.cluster.measures import Measured
from longshore.cluster.resources import allocatable_amounts

# Of what is free: cpu in thousandths, memory in bytes.
MEAN_FREE: Final = {"cpu": "mean-free-cpu", "memory": "mean-free-memory"}
STD_FREE: Final = {"cpu": "std-free-cpu", "memory": "std-free-memory"}
# The first spelling is what has always been written, the second is read as well.
FORECAST_FREE: Final = {
    "cpu": ("forcasted-free-cpu", "forecasted-free-cpu"),
    "memory": ("forcasted-free-memory", "forecasted-free-memory"),
}
# When the load was measured, in RFC 3339. Without it, the values never grow old.
MEASURED_AT: Final = "longshore.dev/measured-at"
CONGESTION_FACTOR: Final = "congestion-factor"
# Not `congestion`: that is what a provider measures, and a node without the annotation must not undo it.
ANNOTATED_CONGESTION: Final = "congestion/annotated"
# What the pods of the node ask for: cpu in thousandths, memory and storage in bytes.
REQUESTED: Final = {
    "cpu": "requested-cpu",
    "memory": "requested-memory",
    "pods": "requested-pods",
    "gpu": "requested-gpu",
    "ephemeral-storage": "requested-ephemeral-storage",
}
# When that was counted, in RFC 3339. Without it, too, the values never grow old.
ALLOCATED_AT: Final = "longshore.dev/allocated-at"
# 1 as long as what was counted is not too old: the amounts themselves stay, for want of better ones.
ALLOCATION: Final = "allocation/fresh"
# What the node offers of a resource that has no domain in its name, and therefore no column.
GPUS: Final = "gpu/allocatable"

_UNKNOWN = float("nan")
_NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan)", re.ASCII | re.IGNORECASE
)
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")


def read_load(cluster: ClusterState) -> None:
    """Have `cpu/mean`, `cpu/std` and `cpu/forecast`, and those of memory, read from the nodes."""
    cluster.measures.read_nodes(load)


def read_congestion(cluster: ClusterState) -> None:
    """Have `ANNOTATED_CONGESTION` read from the nodes."""
    cluster.measures.read_nodes(congestion)


def read_requested(cluster: ClusterState) -> None:
    """Have what the pods of the nodes ask for read from the nodes, as `requested_measure` names it."""
    cluster.measures.read_nodes(requested)


def requested_measure(resource: str) -> str:
    return f"{resource}/requested"


def load(node: Node) -> dict[str, Measured]:
    """How much is used: what the node offers without what is free, below 0 if more is free than it offers."""
    annotations = node.metadata.annotations
    offered = allocatable_amounts(node.status.allocatable)
    at = moment(annotations.get(MEASURED_AT, ""))
    found: dict[str, Measured] = {}
    for resource in MEAN_FREE:
        capacity = offered.get(resource, 0)
        mean = number(annotations.get(MEAN_FREE[resource], ""))
        std = number(annotations.get(STD_FREE[resource], ""))
        # A deviation that nobody wrote is not known; one of infinity, or NaN, spoils the mean.
        if mean is None or not math.isfinite(std or 0.0):
            mean = std = None
        texts = (annotations.get(key, "") for key in FORECAST_FREE[resource])
        forecast = next((n for text in texts if (n := number(text)) is not None), _UNKNOWN)
        found[f"{resource}/mean"] = (_UNKNOWN if mean is None else capacity - mean, at)
        found[f"{resource}/std"] = (_UNKNOWN if std is None else std, at)
        found[f"{resource}/forecast"] = (capacity - forecast, at)
    return found


def congestion(node: Node) -> dict[str, Measured]:
    """A whole number; whoever writes it says nothing of its time."""
    text = node.metadata.annotations.get(CONGESTION_FACTOR, "")
    # Numbers may have any number of digits, and an infinite one would be none.
    factor = min(float(text), sys.float_info.max) if _WHOLE_NUMBER.fullmatch(text) else _UNKNOWN
    return {ANNOTATED_CONGESTION: (factor, _UNKNOWN)}


def requested(node: Node) -> dict[str, Measured]:
    annotations = node.metadata.annotations
    found: dict[str, Measured] = {ALLOCATION: (1.0, moment(annotations.get(ALLOCATED_AT, "")))}
    for resource, key in REQUESTED.items():
        amount = number(annotations.get(key, ""))
        found[requested_measure(resource)] = (_UNKNOWN if amount is None else amount, _UNKNOWN)
    found[GPUS] = (_gpus(node), _UNKNOWN)
    return found


def number(text: str) -> float | None:
    """The number that a text is, as other languages read one too: no blanks, no underscores, no units."""
    return float(text) if _NUMBER.fullmatch(text) else None


def _gpus(node: Node) -> float:
    text = node.status.allocatable.get("gpu")
    try:
        return _UNKNOWN if text is None else float(max(value(text), 0))
    except InvalidQuantity:
        return _UNKNOWN
