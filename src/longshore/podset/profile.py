"""The profile that holds and plans sets: the default plugins, with PodSetPlanner where it has a say.

Nobody is evicted for a set: what does not fit is left out of the plan, and waits.
"""

from collections.abc import Mapping

import msgspec

from longshore.api.podset import SCHEDULER_NAME
from longshore.framework.configuration import EnabledPlugin, ProfileConfiguration, default_configuration
from longshore.podset.arguments import NAME

_PREEMPTION = "DefaultPreemption"


def podset_profile(
    args: Mapping[str, object] | None = None, *, scheduler_name: str = SCHEDULER_NAME
) -> ProfileConfiguration:
    (profile,) = default_configuration(scheduler_name).profiles
    ours = EnabledPlugin(NAME)
    points = {
        point: tuple(each for each in enabled if each.name != _PREEMPTION)
        for point, enabled in profile.points.items()
    }
    points["preEnqueue"] = (*points["preEnqueue"], ours)
    points["preFilter"] = (ours, *points["preFilter"])
    points["reserve"] = (*points["reserve"], ours)
    points["postFilter"] = points["permit"] = (ours,)
    return msgspec.structs.replace(profile, points=points, args={**profile.args, NAME: dict(args or {})})


def holds_sets(profile: ProfileConfiguration) -> bool:
    """Whether the plugin has a say in it."""
    return any(plugin.name == NAME for plugins in profile.points.values() for plugin in plugins)
