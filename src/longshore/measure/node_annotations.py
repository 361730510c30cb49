"""The annotations for the load of a node and for what its pods request, as values.

The load is written as what is free: allocatable minus used, which is negative if more is used than
allocatable. A node's values are replaced together, so that the annotation with their time applies to all of
them. If the requests have not changed, their time is not changed either, until it would soon be too old.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping

from longshore.agents import annotations
from longshore.agents.annotations import (
    ALLOCATED_AT,
    FORECAST_FREE,
    MEAN_FREE,
    MEASURED_AT,
    REQUESTED,
    STD_FREE,
)
from longshore.api import InvalidQuantity, Node, Pod, value
from longshore.api.timestamps import format_timestamp, parse_timestamp
from longshore.cluster import PodInfo
from longshore.cluster.measures import Measured
from longshore.cluster.resources import allocatable_amounts
from longshore.measure.providers import Values

# The wanted value of each annotation; None removes it.
Wanted = Mapping[str, str | None]

# The resource name of GPUs that the agent reading these annotations expects.
GPUS = "nvidia.com/gpu"
FREE = {resource: f"free-{resource}" for resource in REQUESTED}
# The annotations to remove when the load of a node is no longer known.
LOAD = (*MEAN_FREE.values(), *STD_FREE.values(), MEASURED_AT)
# The share of the maximum age after which an unchanged time is renewed, so that a later pass is soon enough.
_RENEWED_AFTER = 1 / 3


def load(node: Node, values: Values, *, now: float, max_age: float) -> Wanted:
    """Return the annotations for the load, or nothing if there is no fresh value and old ones are valid."""
    fresh = _fresh(node.metadata.name, values, now=now, max_age=max_age)
    offered = allocatable_amounts(node.status.allocatable)
    # Another program may write forecasts: change them only if some node has a measured forecast.
    forecasts = [resource for resource in FORECAST_FREE if f"{resource}/forecast" in values]
    found: dict[str, str | None] = {}
    times = []
    for resource, mean_key in MEAN_FREE.items():
        mean, capacity = fresh.get(f"{resource}/mean"), offered.get(resource, 0)
        if mean is None or capacity <= 0:
            continue
        times.append(mean[1])
        found[mean_key] = _decimal(capacity - mean[0])
        if std := fresh.get(f"{resource}/std"):
            times.append(std[1])
            found[STD_FREE[resource]] = _decimal(std[0])
        if resource in forecasts and (forecast := fresh.get(f"{resource}/forecast")):
            found[FORECAST_FREE[resource][0]] = _decimal(capacity - forecast[0])
    keys = (*LOAD, *(FORECAST_FREE[resource][0] for resource in forecasts))
    if found:
        found[MEASURED_AT] = _timestamp(min(times))
    elif not _has_expired(node, now=now, max_age=max_age):
        return {}
    return dict.fromkeys(keys) | found


def allocation(
    node: Node, requested: Mapping[str, int], *, now: float, max_age: float, gpus: str = GPUS
) -> Wanted:
    """Return the annotations for what pods request and what is left, which is at least 0, with their time."""
    offered = _amounts(allocatable_amounts(node.status.allocatable), gpus)
    offered["gpu"] += _unnamed_gpus(node)
    found: dict[str, str | None] = {
        key: str(requested.get(resource, 0)) for resource, key in REQUESTED.items()
    }
    for resource, key in FREE.items():
        found[key] = str(max(offered.get(resource, 0) - requested.get(resource, 0), 0))
    age = now - parse_timestamp(node.metadata.annotations.get(ALLOCATED_AT, ""))
    if changes(node, found) or not 0 <= age <= max_age * _RENEWED_AFTER:
        found[ALLOCATED_AT] = _timestamp(now)
    return found


def requested_by_node(pods: Iterable[Pod], *, gpus: str = GPUS) -> dict[str, dict[str, int]]:
    """Return what the pods bound to each node request, whether they have started or not."""
    by_node: dict[str, Counter[str]] = {}
    for pod in pods:
        if pod.spec.node_name and not pod.terminal:
            amounts = by_node.setdefault(pod.spec.node_name, Counter())
            amounts.update(_amounts(PodInfo.of(pod).requests, gpus))
    return {node: dict(amounts) for node, amounts in by_node.items()}


def changes(node: Node, wanted: Wanted) -> Wanted:
    """Return the annotations that differ from the wanted ones."""
    there = node.metadata.annotations
    return {key: text for key, text in wanted.items() if there.get(key) != text}


def _fresh(node: str, values: Values, *, now: float, max_age: float) -> dict[str, Measured]:
    """Return the node's values that are numbers and not too old.

    A value without a time, or with one in the near future, counts as measured now.
    """
    found: dict[str, Measured] = {}
    for measure, by_node in values.items():
        amount, at = by_node.get(node, (math.nan, math.nan))
        at = now if math.isnan(at) else at
        if math.isfinite(amount) and abs(now - at) <= max_age:
            found[measure] = (amount, min(at, now))
    return found


def _has_expired(node: Node, *, now: float, max_age: float) -> bool:
    """Whether the node's annotations are too old or too far in the future.

    Annotations without a time never expire, because another program writes them.
    """
    _, at = annotations.load(node)["cpu/mean"]
    return abs(now - at) > max_age


def _amounts(columns: Mapping[str, int], gpus: str) -> dict[str, int]:
    """Return the amounts by the names that annotations use."""
    amounts = {resource: columns[resource] for resource in REQUESTED if resource in columns}
    return amounts | {"gpu": columns.get(gpus, 0)}


def _unnamed_gpus(node: Node) -> int:
    """Return the amount of the resource `gpu`, which has no column because its name has no domain."""
    try:
        return max(value(node.status.allocatable.get("gpu", "0")), 0)
    except InvalidQuantity:
        return 0


def _decimal(amount: float) -> str:
    """Format an amount with at most three decimals, without an exponent."""
    text = f"{amount:.3f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _timestamp(seconds: float) -> str:
    return format_timestamp(seconds, "milliseconds" if seconds % 1 else "seconds")
