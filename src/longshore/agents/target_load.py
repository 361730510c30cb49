"""Target load packing: fills nodes up to a target CPU utilization, and exceeds it only if necessary.

Up to the target, nodes with a higher utilization score better. Above it, a lower one is better, but still far
worse than below the target. The usage of a pod is predicted from its limits and requests. Pods on a node that
are not measured yet count only with their requests.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import msgspec
import numpy as np

from longshore.agents.load import Missing, load_of, worst
from longshore.api import Container, InvalidQuantity, milli_value
from longshore.cluster import CPU, Nodes, PodInfo
from longshore.config.plugin_arguments import read_plugin_arguments
from longshore.config.problems import found
from longshore.framework import MAX_SCORE, CycleState, Handle, Scope

# Larger multipliers are mistakes.
_LARGEST_MULTIPLIER = 1e6


class DefaultRequests(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The assumed usage of a container that has neither limit nor request."""

    cpu: str = "1000m"


class TargetLoadPackingArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The arguments of TargetLoadPacking in a configuration."""

    # In percent of the node's capacity.
    target_utilization: Annotated[int, msgspec.Meta(ge=1, le=100)] = 40
    default_requests: DefaultRequests = DefaultRequests()
    # The assumed usage of a container with a request and no limit is its request times this.
    default_requests_multiplier: str | float = "1.5"
    missing: Missing = "Neutral"


class TargetLoadPacking:
    name = "TargetLoadPacking"
    verb = "target-load-packing"
    scope = Scope.PODS

    def __init__(self, args: object = None, *, handle: Handle) -> None:
        self._args = read_plugin_arguments(TargetLoadPackingArgs, args, plugin=self.name, check=_problems)
        self._multiplier = _multiplier(self._args)
        self._default = _cpu({"cpu": self._args.default_requests.cpu}) or 0

    @classmethod
    def environment(cls, environ: Mapping[str, str]) -> dict[str, object]:
        return {}

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Any:
        predicted = state.memo.get(self.name)
        if predicted is None:
            predicted = state.memo[self.name] = self.predicted(pod)
        target, missing = float(self._args.target_utilization), self._args.missing
        load = load_of(nodes, "cpu", missing=missing)
        capacity = nodes.cluster.capacities.of(nodes, CPU)
        use = 100 * (load.used + predicted) / (capacity + (capacity <= 0))
        below = (MAX_SCORE - target) * use / target + target
        above = target * np.maximum(100 - use, 0) / max(100 - target, 1)
        score = np.floor(np.where(use <= target, below, above) + 0.5)
        return worst([(load.known, score)], missing=missing)

    def predicted(self, pod: PodInfo) -> int:
        """Return the CPU that the pod is assumed to use, in millicores, including its sidecars."""
        spec = pod.pod.spec
        sidecars = [each for each in spec.init_containers if each.restart_policy == "Always"]
        containers = sum(self._container(each) for each in (*spec.containers, *sidecars))
        return containers + (_cpu(spec.overhead) or 0)

    def _container(self, container: Container) -> int:
        limit = _cpu(container.resources.limits)
        if limit is not None:
            return limit
        request = _cpu(container.resources.requests)
        return self._default if request is None else int(request * self._multiplier + 0.5)


def _problems(args: TargetLoadPackingArgs) -> Iterator[tuple[str, str]]:
    if not 0 <= _multiplier(args) < _LARGEST_MULTIPLIER:
        said = args.default_requests_multiplier
        yield "defaultRequestsMultiplier", f"must be a number such as 1.5, found {found(said)}"
    if _cpu({"cpu": args.default_requests.cpu}) is None:
        yield (
            "defaultRequests.cpu",
            f"must be a quantity such as 500m, found {found(args.default_requests.cpu)}",
        )


def _multiplier(args: TargetLoadPackingArgs) -> float:
    """Return the multiplier, or a negative number if it cannot be read."""
    try:
        return float(args.default_requests_multiplier)
    except ValueError:
        return -1.0


def _cpu(quantities: Mapping[str, str]) -> int | None:
    """Return millicores; None if there is no quantity or it is invalid."""
    try:
        amount = milli_value(quantities["cpu"])
    except (KeyError, InvalidQuantity):
        return None
    return amount if amount >= 0 else None
