"""The scheduler if no configuration is given: the default profile, and that of pod sets."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longshore.framework.setup import Setup


def set_up(
    config: str | None,
    *,
    plugins: Sequence[str] = (),
    scheduler_name: str | None = None,
    planner_args: Mapping[str, object] | None = None,
) -> "Setup":
    """Of a file, or of the two profiles; `planner_args` are for the plugin of the second."""
    from dataclasses import replace as replaced

    from msgspec.structs import replace

    from longshore.framework import setup
    from longshore.framework.registry import own_plugins
    from longshore.podset.arguments import NAME
    from longshore.podset.profile import podset_profile

    found = setup.set_up(config, plugins=plugins, scheduler_name=scheduler_name or "longshore")
    if config is not None:
        return found
    sets = podset_profile(planner_args)
    if any(profile.scheduler_name == sets.scheduler_name for profile in found.configuration.profiles):
        return found
    given = [plugin for plugin in found.plugins.values() if plugin.source in plugins]
    (sets,) = setup.enable(replace(found.configuration, profiles=(sets,)), given).profiles
    profiles = (*found.configuration.profiles, sets)
    return replaced(
        found,
        configuration=replace(found.configuration, profiles=profiles),
        plugins={**found.plugins, NAME: own_plugins(NAME)[NAME]},
    )
