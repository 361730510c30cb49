"""The arguments of Reward in a configuration."""

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from longshore.api import parse_duration
from longshore.api.names import is_dns_label, is_dns_subdomain
from longshore.config.plugin_arguments import read_plugin_arguments
from longshore.config.problems import found

NAME = "Reward"


class RewardArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    # The namespaces whose pods are learned from; empty means all.
    namespaces: tuple[str, ...] = ()
    # How long a container must run without an error to count as successful.
    mttf: str = "10m"
    # The time in which values drift halfway back to the best; 0s means never.
    half_life: str = "24h"
    # The ConfigMap that stores the rewards; without a name they are only in memory.
    config_map: str = "longshore-rewards"
    config_map_namespace: str = "kube-system"
    # The most values that are kept: for pairs of type and node, for nodes, and for types.
    entries: Annotated[int, msgspec.Meta(ge=3, le=1_000_000)] = 10_000

    @property
    def mttf_seconds(self) -> float:
        return parse_duration(self.mttf) or 0.0

    @property
    def half_life_seconds(self) -> float:
        return parse_duration(self.half_life) or 0.0


def reward_arguments(args: Any) -> RewardArgs:
    """Return the arguments in a configuration. Raise UserError."""
    return read_plugin_arguments(RewardArgs, args, plugin=NAME, check=_problems)


def _problems(args: RewardArgs) -> Iterator[tuple[str, str]]:
    for field, text in (("mttf", args.mttf), ("halfLife", args.half_life)):
        seconds = parse_duration(text)
        if seconds is None or seconds < 0:
            yield field, f"must be a duration such as 10m, found {found(text)}"
    if args.config_map and not is_dns_subdomain(args.config_map):
        yield "configMap", f"must be the name of an object, found {found(args.config_map)}"
    if args.config_map and not is_dns_label(args.config_map_namespace):
        yield (
            "configMapNamespace",
            f"must be the name of a namespace, found {found(args.config_map_namespace)}",
        )
