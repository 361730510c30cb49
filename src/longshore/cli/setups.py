"""The scheduler as commands set it up: of a file, or with the default profile and that of pod sets."""

from collections.abc import Mapping, Sequence
from dataclasses import replace as replaced
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longshore.config.setup import Setup


def set_up(
    config: str | None,
    *,
    plugins: Sequence[str] = (),
    scheduler_name: str | None = None,
    planner_args: Mapping[str, object] | None = None,
) -> "Setup":
    """Of a file, or of the two profiles; `planner_args` are for the plugin of the second."""
    from msgspec.structs import replace

    from longshore.config import setup
    from longshore.config.registry import own_plugins
    from longshore.podset.arguments import NAME
    from longshore.podset.profile import podset_profile

    found = setup.set_up(config, plugins=plugins, scheduler_name=scheduler_name or "longshore")
    if config is not None:
        return _with_sets_in_order(found, scheduler_name)
    sets = podset_profile(planner_args)
    given = [plugin for plugin in found.plugins.values() if plugin.source in plugins]
    (sets,) = setup.enable(replace(found.configuration, profiles=(sets,)), given).profiles
    # Who asks for the name of the second has no other profile.
    others = [each for each in found.configuration.profiles if each.scheduler_name != sets.scheduler_name]
    return replaced(
        found,
        configuration=replace(found.configuration, profiles=(*others, sets)),
        plugins={**found.plugins, NAME: own_plugins(NAME)[NAME]},
    )


def _with_sets_in_order(found: "Setup", scheduler_name: str | None) -> "Setup":
    """The plugin of pod sets works at all of its points or not at all; Pallet's file has it at some."""
    from msgspec.structs import replace

    from longshore.api.pod_set import SCHEDULER_NAME
    from longshore.podset.arguments import NAME
    from longshore.podset.profile import completed, holds_sets, missing_points

    given = found.configuration.profiles
    profiles, warnings = list(given), list(found.warnings)
    for place, profile in enumerate(given):
        name = scheduler_name if scheduler_name and len(given) == 1 else profile.scheduler_name
        missing = ", ".join(missing_points(profile))
        if not holds_sets(profile) and name == SCHEDULER_NAME:
            warnings.append(
                f"profile {name}: pods of sets are scheduled at once, nobody holds them or plans for them; "
                f"enable {NAME} in it, under multiPoint"
            )
        elif holds_sets(profile) and missing:
            warnings.append(f"profile {name}: {NAME} is needed at {missing} as well, and was put there")
            profiles[place] = completed(profile)
    configuration = replace(found.configuration, profiles=tuple(profiles))
    return replaced(found, configuration=configuration, warnings=tuple(warnings))
