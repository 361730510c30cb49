"""What a node's annotations are to say about its load and about what its pods ask for, as values.

The load is told as what is free: allocatable without what is used, below 0 where more is used than the node
offers. A node's values are replaced as a whole, so that all of them are as old as the time beside them says.
What pods ask for is often what it was: then its time is left alone as well, until it is about to be too old.
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

# What an annotation is to be; None if it is not to be there.
Wanted = Mapping[str, str | None]

# What GPUs are called, as the agent that reads these annotations has it.
GPUS = "nvidia.com/gpu"
FREE = {resource: f"free-{resource}" for resource in REQUESTED}
# All that are ours to take away when the load of a node is not known any longer.
LOAD = (*MEAN_FREE.values(), *STD_FREE.values(), MEASURED_AT)
# Of the maximum age: the time of what has not changed is renewed soon enough for the pass after this one.
_RENEWED_AFTER = 1 / 3


def load(node: Node, values: Values, *, now: float, max_age: float) -> Wanted:
    """Its load; nothing to say if no value is fresh but what is written there still is."""
    fresh = _fresh(node.metadata.name, values, now=now, max_age=max_age)
    offered = allocatable_amounts(node.status.allocatable)
    # Forecasts may be written by somebody else: they are ours if they are measured for any node.
    forecasts = [resource for resource in FORECAST_FREE if f"{resource}/forecast" in values]
    told: dict[str, str | None] = {}
    times = []
    for resource, mean_key in MEAN_FREE.items():
        mean, capacity = fresh.get(f"{resource}/mean"), offered.get(resource, 0)
        if mean is None or capacity <= 0:
            continue
        times.append(mean[1])
        told[mean_key] = _decimal(capacity - mean[0])
        if std := fresh.get(f"{resource}/std"):
            times.append(std[1])
            told[STD_FREE[resource]] = _decimal(std[0])
        if resource in forecasts and (forecast := fresh.get(f"{resource}/forecast")):
            told[FORECAST_FREE[resource][0]] = _decimal(capacity - forecast[0])
    keys = (*LOAD, *(FORECAST_FREE[resource][0] for resource in forecasts))
    if told:
        told[MEASURED_AT] = _timestamp(min(times))
    elif not _grown_old(node, now=now, max_age=max_age):
        return {}
    return dict.fromkeys(keys) | told


def allocation(
    node: Node, asked: Mapping[str, int], *, now: float, max_age: float, gpus: str = GPUS
) -> Wanted:
    """What its pods ask for and what is left of what it offers, 0 if they ask for more; and since when."""
    offered = _amounts(allocatable_amounts(node.status.allocatable), gpus)
    offered["gpu"] += _unnamed_gpus(node)
    told: dict[str, str | None] = {key: str(asked.get(resource, 0)) for resource, key in REQUESTED.items()}
    for resource, key in FREE.items():
        told[key] = str(max(offered.get(resource, 0) - asked.get(resource, 0), 0))
    age = now - parse_timestamp(node.metadata.annotations.get(ALLOCATED_AT, ""))
    if changes(node, told) or not 0 <= age <= max_age * _RENEWED_AFTER:
        told[ALLOCATED_AT] = _timestamp(now)
    return told


def asked_for(pods: Iterable[Pod], *, gpus: str = GPUS) -> dict[str, dict[str, int]]:
    """By node, what the pods bound to it ask for, whether they run yet or not."""
    by_node: dict[str, Counter[str]] = {}
    for pod in pods:
        if pod.spec.node_name and not pod.terminal:
            amounts = by_node.setdefault(pod.spec.node_name, Counter())
            amounts.update(_amounts(PodInfo.of(pod).requests, gpus))
    return {node: dict(amounts) for node, amounts in by_node.items()}


def changes(node: Node, wanted: Wanted) -> Wanted:
    """What has to be written for the node to be as wanted."""
    there = node.metadata.annotations
    return {key: text for key, text in wanted.items() if there.get(key) != text}


def _fresh(node: str, values: Values, *, now: float, max_age: float) -> dict[str, Measured]:
    """Its values that are numbers and not too old.

    One without a time was taken when it was asked for, and so was one whose clock is a little ahead of ours.
    """
    found: dict[str, Measured] = {}
    for measure, by_node in values.items():
        amount, at = by_node.get(node, (math.nan, math.nan))
        at = now if math.isnan(at) else at
        if math.isfinite(amount) and abs(now - at) <= max_age:
            found[measure] = (amount, min(at, now))
    return found


def _grown_old(node: Node, *, now: float, max_age: float) -> bool:
    """Or are of a time that is yet to come. Without one they are somebody else's, and never grow old."""
    _, at = annotations.load(node)["cpu/mean"]
    return abs(now - at) > max_age


def _amounts(columns: Mapping[str, int], gpus: str) -> dict[str, int]:
    """By the names that the annotations have."""
    amounts = {resource: columns[resource] for resource in REQUESTED if resource in columns}
    return amounts | {"gpu": columns.get(gpus, 0)}


def _unnamed_gpus(node: Node) -> int:
    """A node may offer `gpu`, which has no domain in its name, and therefore no column."""
    try:
        return max(value(node.status.allocatable.get("gpu", "0")), 0)
    except InvalidQuantity:
        return 0


def _decimal(amount: float) -> str:
    """To a thousandth, without an exponent, and without zeros that say nothing."""
    text = f"{amount:.3f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _timestamp(seconds: float) -> str:
    return format_timestamp(seconds, "milliseconds" if seconds % 1 else "seconds")
