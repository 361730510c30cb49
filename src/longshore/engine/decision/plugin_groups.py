"""The plugins of a profile, grouped by what they look at and by the pods that they concern.

Few groups occur, so each is computed once, and a new shape of pods finds its plugins listed.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from longshore.cluster import PodInfo
from longshore.engine.decision.raw_scores import EvenScores
from longshore.engine.plugin_failure import PLUGIN_ERRORS, PluginFailure
from longshore.framework.extension_points import (
    PERMIT,
    POINTS,
    PRE_BIND,
    PRE_FILTER,
    PRE_SCORE,
    RESERVE,
)
from longshore.framework.points import Concerns, Plugin
from longshore.framework.profile import Profile, Slot

Named = TypeVar("Named", bound=Plugin)


class PointPlugins:
    """The plugins of a point that concern a pod, grouped by what they look at."""

    def __init__(self, pre: list[tuple[Any, bool]], slots: list[Slot], skipped: frozenset[str]) -> None:
        self.pre = pre
        self.skipped = skipped
        self._slots = slots
        self._without: dict[str, PointPlugins] = {}
        self.of_node = tuple(slot for slot in slots if slot.local and not slot.counts_pods)
        self.of_pods = tuple(slot for slot in slots if slot.counts_pods)
        self.summed = tuple(slot for slot in slots if slot.local and not slot.normalizes)
        self.normalized = tuple(slot for slot in slots if slot.local and slot.normalizes)
        # Plain plugins come last: they are called only for the nodes that the others leave.
        self.other = tuple(sorted((slot for slot in slots if not slot.local), key=lambda slot: slot.plain))

    def without(self, name: str) -> "PointPlugins":
        rest = self._without.get(name)
        if rest is None:
            slots = [slot for slot in self._slots if slot.name != name]
            rest = self._without[name] = PointPlugins(self.pre, slots, self.skipped | {name})
        return rest


class ConcernedPlugins:
    """The plugins of a profile that concern some pods, at the points where the others are skipped."""

    def __init__(self, profile: Profile, unconcerned: frozenset[str]) -> None:
        self._unconcerned = unconcerned
        self.filters = self._asked(profile.at(PRE_FILTER), profile.filters)
        self.scores = self._asked(profile.at(PRE_SCORE), profile.scores)
        self.reserves = self._left(profile.at(RESERVE))
        self.permits = self._left(profile.at(PERMIT))
        self.pre_binds = self._left(profile.at(PRE_BIND))

    def _left(self, plugins: Iterable[Named]) -> tuple[Named, ...]:
        return tuple(plugin for plugin in plugins if plugin.name not in self._unconcerned)

    def _asked(self, pre: Iterable[Plugin], slots: Iterable[Slot]) -> PointPlugins:
        """Group the plugins of Filter, or of Score, together with those of the point before it."""
        local = {slot.name for slot in slots if slot.local}
        return PointPlugins(
            [(plugin, plugin.name in local) for plugin in self._left(pre)],
            [slot for slot in slots if slot.name not in self._unconcerned],
            self._unconcerned,
        )


class PluginGroups:
    """The plugins of a profile as shapes need them."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.even_scores = EvenScores()
        plugins = [plugin for point in POINTS.values() if point.by_concern for plugin in profile.at(point)]
        self._choosy = tuple({p.name: p.concerns for p in plugins if isinstance(p, Concerns)}.items())
        # By the answers of the choosy plugins: few combinations occur.
        self._concerned: dict[tuple[bool, ...], ConcernedPlugins] = {}

    def about(self, pod: PodInfo) -> ConcernedPlugins:
        """Return the plugins that concern a pod. Raise PluginFailure if one of them cannot say."""
        says = tuple([_concerns(name, concerns, pod) for name, concerns in self._choosy])
        concerned = self._concerned.get(says)
        if concerned is None:
            names = frozenset(name for (name, _), yes in zip(self._choosy, says, strict=True) if not yes)
            concerned = self._concerned[says] = ConcernedPlugins(self.profile, names)
        return concerned


def _concerns(name: str, concerns: Callable[[PodInfo], bool], pod: PodInfo) -> bool:
    try:
        return bool(concerns(pod))
    except PLUGIN_ERRORS as error:  # a plugin's mistake fails only this attempt
        raise PluginFailure(name, "PreFilter", repr(error)) from error
