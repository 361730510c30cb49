"""The profiles of one process, made of a configuration and the registered plugins."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from longshore.api import Pod
from longshore.config import Configuration, ProfileConfiguration
from longshore.engine.plugin_failure import PLUGIN_ERRORS, PluginFailure
from longshore.framework import Action, Code, Handle, Plugin, Resource, Status, WakeOn
from longshore.framework.extension_points import PRE_ENQUEUE, QUEUE_SORT, points_of
from longshore.framework.points import PreEnqueue
from longshore.framework.profile import Profile
from longshore.plugins import Factory

# Why the engine itself rejects a pod: its spec cannot be read, or there is no node at all.
UNREADABLE = "PodInfo"
WITHOUT_NODES = "NoNodes"
_NUMBERS = frozenset({int, float})
_OWN: Mapping[str, Sequence[WakeOn]] = {
    UNREADABLE: (),
    WITHOUT_NODES: (WakeOn(Resource.NODE, Action.ADD),),
}


def make_profile(
    configuration: Configuration,
    profile: ProfileConfiguration,
    registry: Mapping[str, Factory],
    handle: Handle,
) -> Profile:
    """Make each plugin once, however many extension points it is enabled at.

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


class _Rank:
    """A key of a QueueSort plugin that is not made of numbers. Keys that do not compare are equal."""

    __slots__ = ("_key",)

    def __init__(self, key: Any) -> None:
        self._key = key

    def __lt__(self, other: object) -> bool:
        return self._compares(lambda key: self._key < key, other)

    def __gt__(self, other: object) -> bool:
        return self._compares(lambda key: self._key > key, other)

    def __eq__(self, other: object) -> bool:
        return self._compares(lambda key: self._key == key, other)

    def _compares(self, how: Callable[[Any], Any], other: object) -> bool:
        try:
            return bool(how(other._key if isinstance(other, _Rank) else other))
        except PLUGIN_ERRORS:  # a plugin's mistake must not stop the queue
            return False

    __hash__ = None  # type: ignore[assignment]


class Profiles:
    """Asks plugins on behalf of the queue. The pod's scheduler name determines the profile.

    `tell` is called when a plugin failed for a pod.
    """

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        tell: Callable[[Pod, Status], None] = lambda _pod, _status: None,
    ) -> None:
        self._profiles = profiles
        self._tell = tell
        first = next(iter(profiles.values()))
        if not (sorts := first.at(QUEUE_SORT)):
            raise ValueError("a profile needs a QueueSort plugin")
        self._queue_sort = sorts[0]

    def sort_key(self, pod: Pod, since: float) -> Any:
        try:
            key = self._queue_sort.sort_key(pod, since)
        except PLUGIN_ERRORS as error:  # as above
            self._tell(pod, PluginFailure(self._queue_sort.name, "QueueSort", repr(error)).status)
            return _Rank(None)
        # Tuples of numbers always compare, and faster by themselves.
        return key if type(key) is tuple and _NUMBERS.issuperset(map(type, key)) else _Rank(key)

    def pre_enqueue(self, pod: Pod, first: str) -> Status | None:
        """Return the refusal of the first plugin that keeps the pod out; `first` is asked first."""
        plugins: Sequence[PreEnqueue] = self._profiles[pod.spec.scheduler_name].at(PRE_ENQUEUE)
        if first:
            plugins = sorted(plugins, key=lambda plugin: bool(plugin.name != first))
        for plugin in plugins:
            try:
                status = plugin.pre_enqueue(pod)
                if status is not None and status.code is not Code.SUCCESS:
                    return msgspec.structs.replace(status, plugin=plugin.name)
            except PLUGIN_ERRORS as error:  # a plugin's mistake keeps out only this pod
                failure = PluginFailure(plugin.name, "PreEnqueue", repr(error)).status
                self._tell(pod, failure)
                return failure
        return None

    def wakes(self, pod: Pod, plugin: str) -> Sequence[WakeOn] | None:
        own = _OWN.get(plugin)
        return self._profiles[pod.spec.scheduler_name].wakes.get(plugin) if own is None else own
