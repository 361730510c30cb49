"""What a configuration may say about Reward."""

from typing import Annotated, Any

import msgspec

from longshore.agents.arguments import arguments
from longshore.api import parse_duration
from longshore.api.names import is_dns_label, is_dns_subdomain
from longshore.errors import UserError

NAME = "Reward"


class RewardArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    # Whose pods are learnt from; empty: those of all.
    namespaces: tuple[str, ...] = ()
    # How long a container has to do without an error to have done well.
    mttf: str = "10m"
    # In which time values drift back half of the way to the best; 0s: never.
    half_life: str = "24h"
    # Where rewards are kept; no name: only in memory.
    config_map: str = "longshore-rewards"
    config_map_namespace: str = "kube-system"
    # How many values are kept: pairs of type and node, nodes and types.
    entries: Annotated[int, msgspec.Meta(ge=3, le=1_000_000)] = 10_000

    @property
    def mttf_seconds(self) -> float:
        return parse_duration(self.mttf) or 0.0

    @property
    def half_life_seconds(self) -> float:
        return parse_duration(self.half_life) or 0.0


def reward_arguments(args: Any) -> RewardArgs:
    """Raises UserError."""
    found = arguments(RewardArgs, args, name=NAME)
    for key, text in (("mttf", found.mttf), ("halfLife", found.half_life)):
        seconds = parse_duration(text)
        if seconds is None or seconds < 0:
            raise UserError(f"arguments of {NAME}: {key} is a duration such as 10m, not {text!r}")
    if found.config_map and not is_dns_subdomain(found.config_map):
        raise UserError(f"arguments of {NAME}: configMap is the name of an object, not {found.config_map!r}")
    if found.config_map and not is_dns_label(found.config_map_namespace):
        namespace = found.config_map_namespace
        raise UserError(
            f"arguments of {NAME}: configMapNamespace is the name of a namespace, not {namespace!r}"
        )
    return found
