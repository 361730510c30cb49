"""PigeonHoling: puts a pod on the node with which the cluster as a whole is best by one of three policies.

LOAD_BALANCE spreads pods, CONSOLIDATE packs them, and A_BINPACK does either: it spreads as long as the pods
that it has seen are alike, and packs when their sizes vary. The cluster means the nodes that passed the
filters for this pod. Their usage is read from the annotations `requested-*`. If these are missing or expired,
it is the sum of the requests of their pods.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import structlog

from longshore.agents.annotations import ALLOCATION, GPUS, read_requested, requested_measure
from longshore.agents.demand_history import DemandHistory
from longshore.agents.environment import warn_invalid, whole_numbers
from longshore.agents.objectives import (
    Model,
    Objective,
    adaptive_bin_packing,
    consolidate,
    load_balance,
)
from longshore.api import InvalidQuantity, value
from longshore.cluster import Nodes, PodInfo
from longshore.cluster.arrays import Floats, Ints
from longshore.cluster.resources import LARGEST_REQUEST
from longshore.config.plugin_arguments import read_plugin_arguments
from longshore.errors import UserError
from longshore.framework import CycleState, Handle, Scope

CONFIG_FILE = "pigeon.cfg"

Policy = Literal["A_BINPACK", "LOAD_BALANCE", "CONSOLIDATE"]

_OBJECTIVES: Mapping[str, Objective] = {
    "A_BINPACK": adaptive_bin_packing,
    "LOAD_BALANCE": load_balance,
    "CONSOLIDATE": consolidate,
}
# The resources in the order in which `numResources` counts them, with their units.
_RESOURCES = {"cpu": 1, "memory": 2**20, "pods": 1, "gpu": 1, "ephemeral-storage": 2**30}
# The assumed usage of a pod without requests: CPU in millicores, memory in MiB.
_AT_LEAST = {"cpu": 10, "memory": 16}
# Smaller differences are rounding errors.
_EQUAL = 1e-9
_TENS = 10
_WORST, _BEST = 1, 10

log = structlog.get_logger()


class PigeonHolingArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The arguments of PigeonHoling in a configuration. They take precedence over the file."""

    # The index of the resource that LOAD_BALANCE and CONSOLIDATE look at.
    policy_objective: Policy | None = None
    policy_resource_index: Annotated[int, msgspec.Meta(ge=0)] | None = None
    # How many of CPU, memory, pods, GPUs and ephemeral storage to consider, in this order.
    num_resources: Annotated[int, msgspec.Meta(ge=1, le=len(_RESOURCES))] = 2
    # A file with `policyObjective = …` and `policyResourceIndex = …`.
    config_file: str = ""
    # The resource name of GPUs, in addition to `gpu`.
    gpu_resource: str = "nvidia.com/gpu"


class PigeonHoling:
    """Score: the better the whole cluster with the pod on the node, the higher."""

    name = "PigeonHoling"
    verb = "pigeon-holing"
    scope = Scope.CLUSTER

    def __init__(self, args: object = None, *, handle: Handle) -> None:
        self._args = read_plugin_arguments(PigeonHolingArgs, args, plugin=self.name)
        policy, self._index = _policy(self._args)
        self._objective = _OBJECTIVES[policy]
        self._resources = dict(list(_RESOURCES.items())[: self._args.num_resources])
        if self._index >= len(self._resources):
            raise UserError(
                f"arguments of {self.name}: policyResourceIndex {self._index} is out of range for the "
                f"resources considered ({', '.join(self._resources)}): lower it, or raise numResources"
            )
        self._history = DemandHistory(len(self._resources))
        read_requested(handle.cluster)

    @classmethod
    def environment(cls, environ: Mapping[str, str]) -> dict[str, object]:
        found = whole_numbers(environ, {"NUM_RESOURCES": "numResources"}, least=1, most=len(_RESOURCES))
        if objective := environ.get("POLICY_OBJECTIVE"):
            if objective not in _OBJECTIVES:
                warn_invalid("POLICY_OBJECTIVE", objective, f"one of {', '.join(_OBJECTIVES)}")
            found["policyObjective"] = objective if objective in _OBJECTIVES else "A_BINPACK"
        if Path(CONFIG_FILE).is_file():
            found["configFile"] = CONFIG_FILE
        return found

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Ints:
        # A cluster built for a single request has not been read yet.
        read_requested(nodes.cluster)
        demand = self._demand(pod)
        if not len(nodes):
            return np.zeros(0, np.int64)
        if self.name not in state:
            # Count the pod once per attempt, however often the plugin is called.
            state[self.name] = True
            self._history.add(demand)
        capacity = np.array([self._capacity(resource, nodes) for resource in self._resources])
        usage = np.array([self._usage(resource, nodes) for resource in self._resources])
        model = Model(capacity, usage, demand, self._history)
        return scores(np.where(model.fits, self._objective(model, self._index), np.nan))

    def _demand(self, pod: PodInfo) -> Floats:
        asked = dict(pod.requests)
        asked["gpu"] = asked.get(self._args.gpu_resource, 0) + _unnamed_gpus(pod)
        amounts = {resource: asked.get(resource, 0) / unit for resource, unit in self._resources.items()}
        # CPU and memory are rounded down but never to 0; storage is often less than one of its units.
        amounts |= {
            resource: np.floor(amounts[resource]) or least
            for resource, least in _AT_LEAST.items()
            if resource in amounts
        }
        return np.array(list(amounts.values()), np.float64)

    def _capacity(self, resource: str, nodes: Nodes) -> Floats:
        amount = self._column(nodes.allocatable, resource, nodes)
        if resource == "gpu":
            amount = amount + np.nan_to_num(nodes.cluster.measures.value(GPUS, nodes))
        capacity: Floats = np.floor(amount / self._resources[resource])
        return capacity

    def _usage(self, resource: str, nodes: Nodes) -> Floats:
        said = nodes.cluster.measures.value(requested_measure(resource), nodes)
        counted = self._column(nodes.requested, resource, nodes)
        amount = np.where(np.isnan(said) | _outdated(nodes), counted, said)
        usage: Floats = np.floor(np.clip(amount, 0, LARGEST_REQUEST) / self._resources[resource])
        return usage

    def _column(self, columns: Any, resource: str, nodes: Nodes) -> Any:
        column = nodes.cluster.column(self._args.gpu_resource if resource == "gpu" else resource)
        return np.zeros(len(nodes)) if column is None else columns[column]


def _outdated(nodes: Nodes) -> Any:
    """Return where the annotations have expired. A cluster from a request has no pods to count instead."""
    cluster = nodes.cluster
    fresh, at = cluster.measures.value(ALLOCATION, nodes), cluster.measures.time(ALLOCATION, nodes)
    return np.isnan(fresh) & ~np.isnan(at) & bool(cluster.pod_count)


def scores(objective: Floats) -> Ints:
    """Map objectives to scores: the smallest gets the best, the largest the worst, NaN (does not fit) 0."""
    fits = ~np.isnan(objective)
    if not fits.any():
        return np.zeros(len(objective), np.int64)
    lowest, highest = np.nanmin(objective), np.nanmax(objective)
    span = highest - lowest
    if span <= _EQUAL * max(1.0, abs(highest)):
        return fits * np.int64(_BEST * _TENS)
    places = _WORST + (_BEST - _WORST) * (highest - np.where(fits, objective, highest)) / span
    return np.floor(places + 0.5).astype(np.int64) * fits * _TENS


def _unnamed_gpus(pod: PodInfo) -> int:
    """Count requests of the resource `gpu`, which has no domain and therefore no column."""
    total = 0
    for container in pod.pod.spec.containers:
        try:
            total += max(value(container.resources.requests.get("gpu", "0")), 0)
        except InvalidQuantity:
            continue
    return total


def _policy(args: PigeonHolingArgs) -> tuple[str, int]:
    """Return the objective and the index of its resource."""
    said = _read(args.config_file) if args.config_file else {}
    objective, index = said.get("policyObjective", "A_BINPACK"), said.get("policyResourceIndex", "0")
    if objective not in _OBJECTIVES:
        log.warning("unknown objective ignored", file=args.config_file, objective=objective)
        objective = "A_BINPACK"
    if not (index.isascii() and index.isdigit()):
        log.warning("invalid resource index ignored", file=args.config_file, index=index)
        index = "0"
    place = args.policy_resource_index
    return args.policy_objective or objective, int(index[:9]) if place is None else place


def _read(path: str) -> dict[str, str]:
    """Parse lines of `key = value`; trailing spaces belong to the value."""
    try:
        with Path(path).open(newline="") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"cannot read the configuration of PigeonHoling in {path}: {reason}") from error
    said = {}
    for line in text.split("\n"):
        if line and not line.startswith("#"):
            key, _, rest = line.partition("=")
            said[key.split(" ", 1)[0]] = rest.lstrip(" \t")
    return said
