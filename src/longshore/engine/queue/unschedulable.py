"""The pods that are set aside until something happens, sorted by what set them aside.

Ten thousand pods rejected by the same plugins are one cause: whether an event concerns any of them is a
single question. If they are alike, so is whether it helps them.
"""

from collections.abc import Hashable
from itertools import count
from math import floor

from longshore.engine.queue.entry import Entry, Profiles
from longshore.engine.queue.queueing_hints import (
    NOTHING_TO_SAY,
    WILDCARD_SAY,
    Kind,
    Say,
    Verdict,
    heard,
    hints,
    kind_of,
    say_by_shape,
)
from longshore.framework import ClusterEvent, Resource

# How often kube-scheduler looks for pods that have been set aside for too long, in seconds.
SWEEP_SECONDS = 30.0


class Cause:
    """What keeps pods from being scheduled: the plugins that rejected them, and the one that gates them."""

    def __init__(self, profiles: Profiles, entry: Entry) -> None:
        wakes = {name: heard(profiles.wakes(entry.pod, name)) for name in sorted(entry.rejectors)}
        self._pending = [wakes[name] for name in wakes if name in entry.pending]
        self._others = [wakes[name] for name in wakes if name not in entry.pending]
        self._gate = wakes.get(entry.gated_by)
        self._says: dict[Kind, Say] = {}
        self._concerned: dict[Kind, bool] = {}
        # By what pods that are alike have in common; one that was never tried is like no other.
        self._alike: dict[Hashable, dict[Entry, None]] = {}

    def __bool__(self) -> bool:
        """Whether any pod is set aside for it."""
        return bool(self._alike)

    def add(self, entry: Entry) -> None:
        entry.kin = entry if entry.shape_key is None else entry.shape_key
        self._alike.setdefault(entry.kin, {})[entry] = None

    def remove(self, entry: Entry) -> None:
        alike = self._alike[entry.kin]
        del alike[entry]
        if not alike:
            del self._alike[entry.kin]
        entry.kin = None

    def helped(self, event: ClusterEvent, kind: Kind) -> list[tuple[Entry, Verdict]]:
        """The pods that the event helps, in the order in which they came."""
        say = self.say(event, kind)
        found: list[tuple[Entry, Verdict]] = []
        for alike in self._alike.values():
            if say.by_shape:
                verdict = say.verdict(next(reversed(alike)).pod, event)
                if verdict is not Verdict.STAY:
                    found += [(entry, verdict) for entry in alike]
            else:
                verdicts = ((entry, say.verdict(entry.pod, event)) for entry in alike)
                found += [(entry, verdict) for entry, verdict in verdicts if verdict is not Verdict.STAY]
        if len(self._alike) > 1:
            found.sort(key=lambda pair: pair[0].came)
        return found

    def say(self, event: ClusterEvent, kind: Kind) -> Say:
        """Who decides about such an event."""
        found = self._says.get(kind)
        if found is None:
            found = self._says[kind] = self._who_decides(event)
        return found

    def concerned(self, event: ClusterEvent, kind: Kind) -> bool:
        """Whether such an event may help any of the pods. The plugin that gates them has to hear of it."""
        found = self._concerned.get(kind)
        if found is None:
            # What matters to all is no reason to ask a gate again.
            gate_hears = self._gate is None or (
                event.resource is not Resource.WILDCARD and bool(hints(self._gate, event))
            )
            found = self._concerned[kind] = gate_hears and self.say(event, kind) != NOTHING_TO_SAY
        return found

    def _who_decides(self, event: ClusterEvent) -> Say:
        if event.resource is Resource.WILDCARD:
            return WILDCARD_SAY
        return Say(
            tuple(hint for wakes in self._pending for hint in hints(wakes, event)),
            tuple(hint for wakes in self._others for hint in hints(wakes, event)),
            # A waiting pod is not asked about what it did itself by way of another one.
            event.resource is not Resource.UNSCHEDULED_POD
            and all(say_by_shape(wakes, event) for wakes in (*self._pending, *self._others)),
        )


class SetAside:
    """All pods that are set aside, rejected or gated."""

    def __init__(self, profiles: Profiles, *, longest: float) -> None:
        self._profiles = profiles
        self._longest = longest
        # All that have ever been: profiles have few plugins, and their combinations recur.
        self._causes: dict[tuple[str, frozenset[str], frozenset[str], str], Cause] = {}
        self._present: dict[Cause, None] = {}
        self._came = count()
        # The rejected ones, by when they have been here for too long.
        self._overdue: dict[float, dict[Entry, None]] = {}

    def cause(self, entry: Entry) -> Cause:
        key = (entry.pod.spec.scheduler_name, entry.rejectors, entry.pending, entry.gated_by)
        cause = self._causes.get(key)
        if cause is None:
            cause = self._causes[key] = Cause(self._profiles, entry)
        return cause

    def add(self, entry: Entry) -> None:
        cause = entry.cause = self.cause(entry)
        # So that waking is as deterministic as all else.
        entry.came = next(self._came)
        cause.add(entry)
        self._present[cause] = None
        if not entry.gated_by:
            # The first look at which it has been here for longer than allowed.
            entry.overdue = (floor((entry.timestamp + self._longest) / SWEEP_SECONDS) + 1) * SWEEP_SECONDS
            self._overdue.setdefault(entry.overdue, {})[entry] = None

    def remove(self, entry: Entry) -> None:
        """Also of one that is not here."""
        cause, entry.cause = entry.cause, None
        if cause is None:
            return
        cause.remove(entry)
        if not cause:
            del self._present[cause]
        if entry.overdue is not None:
            same_time = self._overdue[entry.overdue]
            del same_time[entry]
            if not same_time:
                del self._overdue[entry.overdue]
            entry.overdue = None

    def renewed(self, entry: Entry) -> None:
        """There is a newer version of the pod: it may be like others now."""
        if entry.cause is not None:
            entry.cause.remove(entry)
            entry.cause.add(entry)

    def helped(self, event: ClusterEvent) -> list[tuple[Entry, Verdict]]:
        """The pods that the event helps."""
        kind = kind_of(event)
        return [
            pair
            for cause in self._present
            if cause.concerned(event, kind)
            for pair in cause.helped(event, kind)
        ]

    def overdue(self, *, now: float) -> list[Entry]:
        """The rejected ones that have been here for too long."""
        times = sorted(time for time in self._overdue if time <= now)
        return [entry for time in times for entry in self._overdue[time]]

    @property
    def next_overdue(self) -> float | None:
        return min(self._overdue, default=None)
