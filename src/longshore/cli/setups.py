"""The setup of the scheduler: from a file, or the default profile and the profile of pod sets."""

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
    """Return the setup in the file, or that of the two profiles if it is None.

    `planner_args` are the arguments of PodSetPlanner in the profile of pod sets.
    """
    from msgspec.structs import replace

    from longshore.config import setup
    from longshore.config.registry import own_plugins
    from longshore.podset.arguments import NAME
    from longshore.podset.profile import podset_profile

    found = setup.set_up(config, plugins=plugins, scheduler_name=scheduler_name or "longshore")
    if config is not None:
        return _with_complete_pod_set_profiles(found, scheduler_name)
    sets = podset_profile(planner_args)
    given = [plugin for plugin in found.plugins.values() if plugin.source in plugins]
    (sets,) = setup.enable(replace(found.configuration, profiles=(sets,)), given).profiles
    # A scheduler that is named like the profile of pod sets has only that profile.
    others = [each for each in found.configuration.profiles if each.scheduler_name != sets.scheduler_name]
    return replaced(
        found,
        configuration=replace(found.configuration, profiles=(*others, sets)),
        plugins={**found.plugins, NAME: own_plugins(NAME)[NAME]},
    )


def _with_complete_pod_set_profiles(found: "Setup", scheduler_name: str | None) -> "Setup":
    """Enable PodSetPlanner at all of its points if a file, such as Pallet's, enables it only at some."""
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
                f"profile {name}: pods of sets are not held or planned, but scheduled at once; "
                f"enable {NAME} in the profile, under multiPoint"
            )
        elif holds_sets(profile) and missing:
            warnings.append(f"profile {name}: {NAME} must also be enabled at {missing}; it was enabled there")
            profiles[place] = completed(profile)
    configuration = replace(found.configuration, profiles=tuple(profiles))
    return replaced(found, configuration=configuration, warnings=tuple(warnings))
