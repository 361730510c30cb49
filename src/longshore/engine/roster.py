"""The plugins of a profile, told apart by what they look at and by the pods that they concern.

Few combinations occur, so each is worked out once: a new shape of pods finds its plugins listed.
"""

from collections.abc import Callable, Sequence
from typing import Any

from longshore.cluster import PodInfo
from longshore.engine.failure import PluginFailure
from longshore.engine.rawscores import EvenScores
from longshore.framework.profile import Profile, Slot, everyone


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


class _Point:
    """The plugins of Filter, or of Score, with those of the point before it."""

    def __init__(self, pre: Sequence[Any], slots: Sequence[Slot]) -> None:
        local = {slot.name for slot in slots if slot.local}
        self._slots = slots
        self._pre = [(plugin, plugin.name in local) for plugin in pre]
        choosy = {slot.name: slot.concerns for slot in slots if slot.concerns is not everyone}
        # Some have a say before the point alone.
        choosy |= {plugin.name: plugin.concerns for plugin in pre if hasattr(plugin, "concerns")}
        self._choosy = tuple(choosy.items())
        # By what the choosy ones say: few combinations occur.
        self._asked: dict[tuple[bool, ...], Asked] = {}

    def about(self, pod: PodInfo) -> Asked:
        concerned = tuple([_concerns(name, concerns, pod) for name, concerns in self._choosy])
        asked = self._asked.get(concerned)
        if asked is None:
            pairs = zip(self._choosy, concerned, strict=True)
            skipped = frozenset(name for (name, _), concerns in pairs if not concerns)
            pre = [(plugin, local) for plugin, local in self._pre if plugin.name not in skipped]
            slots = [slot for slot in self._slots if slot.name not in skipped]
            asked = self._asked[concerned] = Asked(pre, slots, skipped)
        return asked


class Roster:
    """The plugins of a profile as shapes need them, looked at once."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.filters = _Point(profile.pre_filters, profile.filters)
        self.scores = _Point(profile.pre_scores, profile.scores)
        self.even_scores = EvenScores()
        self._later: dict[frozenset[str], _Later] = {}

    def later(self, unconcerned: frozenset[str]) -> "_Later":
        """The plugins of the points after the choice, without those that the pod does not concern."""
        later = self._later.get(unconcerned)
        if later is None:
            later = self._later[unconcerned] = _Later(self.profile, unconcerned)
        return later


class _Later:
    def __init__(self, profile: Profile, unconcerned: frozenset[str]) -> None:
        self.reserves = tuple(p for p in profile.reserves if p.name not in unconcerned)
        self.permits = tuple(p for p in profile.permits if p.name not in unconcerned)
        self.pre_binds = tuple(p for p in profile.pre_binds if p.name not in unconcerned)


def _concerns(name: str, concerns: Callable[[PodInfo], bool], pod: PodInfo) -> bool:
    try:
        return concerns(pod)
    except Exception as error:  # whatever a plugin does, only this attempt fails
        raise PluginFailure(name, "PreFilter", repr(error)) from error
