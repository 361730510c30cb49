"""The plugins of a profile, told apart by what they look at and by the pods that they concern.

Few combinations occur, so each is worked out once: a new shape of pods finds its plugins listed.
"""

from collections.abc import Callable, Sequence
from typing import Any

from longshore.cluster import PodInfo
from longshore.engine.decision.raw_scores import EvenScores
from longshore.engine.plugin_failure import PLUGIN_ERRORS, PluginFailure
from longshore.framework.profile import Profile, Slot


class Asked:
    """The plugins of a point that have to do with a pod, told apart by what they look at."""

    def __init__(self, pre: list[tuple[Any, bool]], slots: list[Slot], skipped: frozenset[str]) -> None:
        self.pre = pre
        self.skipped = skipped
        self._slots = slots
        self._without: dict[str, Asked] = {}
        self.of_node = tuple(slot for slot in slots if slot.local and not slot.counts_pods)
        self.of_pods = tuple(slot for slot in slots if slot.counts_pods)
        self.summed = tuple(slot for slot in slots if slot.local and not slot.normalizes)
        self.normalized = tuple(slot for slot in slots if slot.local and slot.normalizes)
        # Plain ones last: they are asked about what the others have left.
        self.other = tuple(sorted((slot for slot in slots if not slot.local), key=lambda slot: slot.plain))

    def without(self, name: str) -> "Asked":
        rest = self._without.get(name)
        if rest is None:
            slots = [slot for slot in self._slots if slot.name != name]
            rest = self._without[name] = Asked(self.pre, slots, self.skipped | {name})
        return rest


class Concerned:
    """The plugins of a profile without those that some pods do not concern, from PreFilter to PreBind."""

    def __init__(self, profile: Profile, unconcerned: frozenset[str]) -> None:
        self._unconcerned = unconcerned
        self.filters = self._asked(profile.pre_filters, profile.filters)
        self.scores = self._asked(profile.pre_scores, profile.scores)
        self.reserves = tuple(p for p in profile.reserves if p.name not in unconcerned)
        self.permits = tuple(p for p in profile.permits if p.name not in unconcerned)
        self.pre_binds = tuple(p for p in profile.pre_binds if p.name not in unconcerned)

    def _asked(self, pre: Sequence[Any], slots: Sequence[Slot]) -> Asked:
        """Of Filter, or of Score, with those of the point before it."""
        local = {slot.name for slot in slots if slot.local}
        return Asked(
            [(plugin, plugin.name in local) for plugin in pre if plugin.name not in self._unconcerned],
            [slot for slot in slots if slot.name not in self._unconcerned],
            self._unconcerned,
        )


class Roster:
    """The plugins of a profile as shapes need them, looked at once."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.even_scores = EvenScores()
        plugins = (
            *profile.pre_filters,
            *(slot.plugin for slot in profile.filters),
            *profile.pre_scores,
            *(slot.plugin for slot in profile.scores),
            *profile.reserves,
            *profile.permits,
            *profile.pre_binds,
        )
        choosy = {plugin.name: plugin.concerns for plugin in plugins if hasattr(plugin, "concerns")}
        self._choosy = tuple(choosy.items())
        # By what the choosy ones say: few combinations occur.
        self._concerned: dict[tuple[bool, ...], Concerned] = {}

    def about(self, pod: PodInfo) -> Concerned:
        """Those that have to do with such a pod. Raises PluginFailure."""
        says = tuple([_concerns(name, concerns, pod) for name, concerns in self._choosy])
        concerned = self._concerned.get(says)
        if concerned is None:
            names = frozenset(name for (name, _), yes in zip(self._choosy, says, strict=True) if not yes)
            concerned = self._concerned[says] = Concerned(self.profile, names)
        return concerned


def _concerns(name: str, concerns: Callable[[PodInfo], bool], pod: PodInfo) -> bool:
    try:
        return bool(concerns(pod))
    except PLUGIN_ERRORS as error:  # whatever a plugin does, only this attempt fails
        raise PluginFailure(name, "PreFilter", repr(error)) from error
