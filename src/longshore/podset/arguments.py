"""What a configuration may say to the plugin: Pallet's own arguments, and ours.

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
    # Pallet's: how long a planner may take.
    call_timeout: str = ""
    # Pallet's too, and of no account here.
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
            f"arguments of {NAME}: plannerFallback is built-in or none, not {found.planner_fallback!r}"
        )
    # As Pallet has it: what is no duration counts as the default.
    seconds = parse_duration(found.call_timeout)
    return PlannerSettings(
        fallback="none" if found.planner_fallback == "none" else "built-in",
        namespaces=frozenset(found.planner_namespaces) or None,
        addresses=found.planner_addresses,
        call_seconds=seconds if seconds is not None and seconds > 0 else CALL_SECONDS,
    )
