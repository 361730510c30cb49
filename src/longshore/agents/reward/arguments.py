"""What a configuration may say about Reward."""

import re
from typing import Annotated, Any

import msgspec

from longshore.agents.arguments import arguments
from longshore.api import parse_duration
from longshore.errors import UserError

NAME = "Reward"

_DNS_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


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
    names = (("configMap", found.config_map), ("configMapNamespace", found.config_map_namespace))
    for key, name in names if found.config_map else ():
        if not _DNS_NAME.fullmatch(name):
            raise UserError(f"arguments of {NAME}: {key} is the name of an object, not {name!r}")
    return found
