"""The profiles of one process, made of a configuration and the registered plugins."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from longshore.api import Pod
from longshore.framework import Code, Handle, Plugin, Status, WakeOn
from longshore.framework.configuration import Configuration, ProfileConfiguration
from longshore.framework.points import PreEnqueue
from longshore.framework.profile import Profile, points_of
from longshore.plugins import Factory


def make_profile(
    configuration: Configuration,
    profile: ProfileConfiguration,
    registry: Mapping[str, Factory],
    handle: Handle,
) -> Profile:
    """One object for each plugin, whatever number of points it is enabled at.

    A configuration has kube-scheduler's plugins at kube-scheduler's points; ours may not need all of them.
    """
    made: dict[str, Plugin] = {}
    for enabled in profile.points.values():
        for plugin in enabled:
            if plugin.name not in made and plugin.name in registry:
                made[plugin.name] = registry[plugin.name](profile.args.get(plugin.name), handle)
    return Profile.of(
        profile.scheduler_name,
        {
            point: [
                (made[p.name], p.weight)
                for p in enabled
                if p.name in made and point in points_of(made[p.name])
            ]
            for point, enabled in profile.points.items()
        },
        percentage_of_nodes_to_score=profile.percentage_of_nodes_to_score,
        tie_break=configuration.longshore.tie_break,
        seed=configuration.longshore.seed,
    )


class Profiles:
    """What the queue asks of the plugins, by the pod's scheduler name."""

    def __init__(self, profiles: Mapping[str, Profile]) -> None:
        self._profiles = profiles
        first = next(iter(profiles.values()))
        if first.queue_sort is None:
            raise ValueError("a profile needs a QueueSort plugin")
        self.sort_key: Callable[[Pod, float], Any] = first.queue_sort.sort_key

    def pre_enqueue(self, pod: Pod, first: str) -> Status | None:
        """The refusal of the first plugin that keeps the pod out; `first` is asked before the others."""
        plugins: Sequence[PreEnqueue] = self._profiles[pod.spec.scheduler_name].pre_enqueue
        if first:
            plugins = sorted(plugins, key=lambda plugin: bool(plugin.name != first))
        for plugin in plugins:
            try:
                status = plugin.pre_enqueue(pod)
            except Exception as error:  # whatever a plugin does, only this pod is kept out
                return Status(Code.ERROR, (repr(error),), plugin.name)
            if status is not None and status.code is not Code.SUCCESS:
                return msgspec.structs.replace(status, plugin=plugin.name)
        return None

    def wakes(self, pod: Pod, plugin: str) -> Sequence[WakeOn] | None:
        return self._profiles[pod.spec.scheduler_name].wakes.get(plugin)
