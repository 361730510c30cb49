"""The profile that holds and plans sets: the default plugins and PodSetPlanner, without preemption.

No pod is evicted for a set: what does not fit is left out of the plan, and waits.
"""

from collections.abc import Mapping

import msgspec

from longshore.api.pod_set import SCHEDULER_NAME
from longshore.config import EnabledPlugin, ProfileConfiguration, default_configuration
from longshore.engine.decision.chooser import Chooser
from longshore.podset.arguments import NAME

_PREEMPTION = "DefaultPreemption"
_POINTS = ("preEnqueue", "preFilter", "postFilter", "reserve", "permit")
_BEFORE_OTHERS = ("preFilter", "postFilter")


def podset_profile(
    args: Mapping[str, object] | None = None, *, scheduler_name: str = SCHEDULER_NAME
) -> ProfileConfiguration:
    (profile,) = default_configuration(scheduler_name).profiles
    points = {
        point: tuple(each for each in enabled if each.name != _PREEMPTION)
        for point, enabled in profile.points.items()
    }
    profile = msgspec.structs.replace(profile, points={**points, "postFilter": ()})
    return completed(msgspec.structs.replace(profile, args={**profile.args, NAME: dict(args or {})}))


def missing_points(profile: ProfileConfiguration) -> tuple[str, ...]:
    """Return the points where the plugin is needed but not enabled."""
    return tuple(
        point for point in _POINTS if all(each.name != NAME for each in profile.points.get(point, ()))
    )


def completed(profile: ProfileConfiguration) -> ProfileConfiguration:
    """Return the profile with the plugin at all of its points: with only some, it holds pods forever."""
    points, ours = dict(profile.points), EnabledPlugin(NAME)
    for point in missing_points(profile):
        others = points.get(point, ())
        points[point] = (ours, *others) if point in _BEFORE_OTHERS else (*others, ours)
    return msgspec.structs.replace(profile, points=points)


def without_planner(profile: ProfileConfiguration) -> ProfileConfiguration:
    """Return the profile without the plugin: it decides where pods could go without a plan."""
    points = {
        point: tuple(plugin for plugin in enabled if plugin.name != NAME)
        for point, enabled in profile.points.items()
    }
    return msgspec.structs.replace(profile, points=points)


def holds_sets(profile: ProfileConfiguration) -> bool:
    """Whether the plugin is enabled."""
    return any(plugin.name == NAME for plugins in profile.points.values() for plugin in plugins)


def planning_chooser(chooser: Chooser) -> Chooser:
    """Return a chooser without PodSetPlanner, to plan the pods that the plugin holds."""
    return Chooser(chooser.profile.without(NAME), chooser.cluster)
