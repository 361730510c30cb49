"""The arguments of the plugin in a configuration: those of Pallet, and more.

pluginConfig:
- name: PodSetPlanner
  args:
    callTimeout: 15s
    plannerNamespaces: [planner-system]
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from longshore.api.duration import parse_duration
from longshore.config.plugin_arguments import read_plugin_arguments
from longshore.podset.planner_services import CALL_SECONDS, PlannerSettings

NAME = "PodSetPlanner"


class PodSetPlannerArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    # From Pallet: how long a planner may take.
    call_timeout: str = ""
    # From Pallet; ignored.
    debug: bool = False
    update_period: str = ""
    planner_fallback: Literal["built-in", "none"] = "built-in"
    # Where planner services may be; empty: anywhere.
    planner_namespaces: tuple[str, ...] = ()
    # `namespace/name` of a Service, or `*`, to host:port.
    planner_addresses: dict[str, str] = {}


def planner_settings(args: Mapping[str, object] | None) -> PlannerSettings:
    """Raises UserError."""
    found = read_plugin_arguments(PodSetPlannerArgs, args, plugin=NAME)
    # As in Pallet, a text that is not a duration means the default.
    seconds = parse_duration(found.call_timeout)
    return PlannerSettings(
        fallback=found.planner_fallback,
        namespaces=frozenset(found.planner_namespaces) or None,
        addresses=found.planner_addresses,
        call_seconds=seconds if seconds is not None and seconds > 0 else CALL_SECONDS,
    )
