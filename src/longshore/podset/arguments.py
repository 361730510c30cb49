"""The arguments of the plugin in a configuration: those of Pallet, and more.

pluginConfig:
- name: PodSetPlanner
  args:
    callTimeout: 15s
    plannerNamespaces: [planner-system]
"""

from collections.abc import Mapping

import msgspec

from longshore.api.duration import parse_duration
from longshore.errors import UserError
from longshore.podset.planner_services import CALL_SECONDS, PlannerSettings

NAME = "PodSetPlanner"


class PodSetPlannerArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    # From Pallet: how long a planner may take.
    call_timeout: str = ""
    # From Pallet; ignored.
    debug: bool = False
    update_period: str = ""
    planner_fallback: str = "built-in"
    # Where planner services may be; empty: anywhere.
    planner_namespaces: tuple[str, ...] = ()
    # `namespace/name` of a Service, or `*`, to host:port.
    planner_addresses: dict[str, str] = {}


def planner_settings(args: Mapping[str, object] | None) -> PlannerSettings:
    """Raises UserError."""
    said = {name: value for name, value in (args or {}).items() if name not in ("apiVersion", "kind")}
    try:
        found = msgspec.convert(said, PodSetPlannerArgs)
    except msgspec.ValidationError as error:
        raise UserError(f"arguments of {NAME}: {error}") from error
    if found.planner_fallback not in ("built-in", "none"):
        raise UserError(
            f"arguments of {NAME}: plannerFallback must be built-in or none, not {found.planner_fallback!r}"
        )
    # As in Pallet, a text that is not a duration means the default.
    seconds = parse_duration(found.call_timeout)
    return PlannerSettings(
        fallback="none" if found.planner_fallback == "none" else "built-in",
        namespaces=frozenset(found.planner_namespaces) or None,
        addresses=found.planner_addresses,
        call_seconds=seconds if seconds is not None and seconds > 0 else CALL_SECONDS,
    )
