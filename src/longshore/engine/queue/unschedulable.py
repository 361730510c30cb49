"""Pods that wait for an event, rejected by plugins or gated. They are grouped by what keeps them waiting.

Ten thousand pods that the same plugins rejected have one cause: whether an event concerns any of them is a
single question. If they have the same shape, so is whether the event helps them.
"""

from collections.abc import Hashable
from itertools import count
from math import floor

from longshore.engine.queue.entry import QueueEntry, QueuePlugins
from longshore.engine.queue.queueing_hints import (
    NO_HINTS,
    WILDCARD_HINTS,
    DecidingHints,
    EventKind,
    QueueingStrategy,
    effective_wakes,
    hints,
    hints_by_shape,
    kind_of,
)
from longshore.framework import ClusterEvent, Resource

# How often kube-scheduler looks for pods that have waited for too long, in seconds.
SWEEP_SECONDS = 30.0


class Cause:
    """What keeps pods from being scheduled: the plugins that rejected them, and the one that gates them."""

    def __init__(self, plugins: QueuePlugins, entry: QueueEntry) -> None:
        wakes = {name: effective_wakes(plugins.wakes(entry.pod, name)) for name in sorted(entry.rejectors)}
        self._pending = [wakes[name] for name in wakes if name in entry.pending]
        self._others = [wakes[name] for name in wakes if name not in entry.pending]
        self._gate = wakes.get(entry.gated_by)
        self._hints: dict[EventKind, DecidingHints] = {}
        self._concerned: dict[EventKind, bool] = {}
        # By the key of their shape. A pod that was never tried has none, so it is in a group of its own.
        self._alike: dict[Hashable, dict[QueueEntry, None]] = {}

    def __bool__(self) -> bool:
        """Whether any pod waits because of it."""
        return bool(self._alike)

    def add(self, entry: QueueEntry) -> None:
        entry.group = entry if entry.shape_key is None else entry.shape_key
        self._alike.setdefault(entry.group, {})[entry] = None

    def remove(self, entry: QueueEntry) -> None:
        alike = self._alike[entry.group]
        del alike[entry]
        if not alike:
            del self._alike[entry.group]
        entry.group = None

    def helped(self, event: ClusterEvent, kind: EventKind) -> list[tuple[QueueEntry, QueueingStrategy]]:
        """Return the pods that the event helps, in the order in which they came."""
        deciding = self.hints(event, kind)
        found: list[tuple[QueueEntry, QueueingStrategy]] = []
        for alike in self._alike.values():
            if deciding.by_shape:
                strategy = deciding.strategy(next(reversed(alike)).pod, event)
                if strategy is not QueueingStrategy.SKIP:
                    found += [(entry, strategy) for entry in alike]
            else:
                strategies = ((entry, deciding.strategy(entry.pod, event)) for entry in alike)
                found += [pair for pair in strategies if pair[1] is not QueueingStrategy.SKIP]
        if len(self._alike) > 1:
            found.sort(key=lambda pair: pair[0].came)
        return found

    def hints(self, event: ClusterEvent, kind: EventKind) -> DecidingHints:
        """Return the hints that decide about such an event."""
        found = self._hints.get(kind)
        if found is None:
            found = self._hints[kind] = self._find_hints(event)
        return found

    def concerned(self, event: ClusterEvent, kind: EventKind) -> bool:
        """Whether such an event may help any of the pods. The plugin that gates them has to wake on it."""
        found = self._concerned.get(kind)
        if found is None:
            # A wildcard event is no reason to ask a gate again.
            gate_wakes = self._gate is None or (
                event.resource is not Resource.WILDCARD and bool(hints(self._gate, event))
            )
            found = self._concerned[kind] = gate_wakes and self.hints(event, kind) != NO_HINTS
        return found

    def _find_hints(self, event: ClusterEvent) -> DecidingHints:
        if event.resource is Resource.WILDCARD:
            return WILDCARD_HINTS
        return DecidingHints(
            tuple(hint for wakes in self._pending for hint in hints(wakes, event)),
            tuple(hint for wakes in self._others for hint in hints(wakes, event)),
            # The answer about a change of a waiting pod differs between that pod and the others of its shape.
            event.resource is not Resource.UNSCHEDULED_POD
            and all(hints_by_shape(wakes, event) for wakes in (*self._pending, *self._others)),
        )


class UnschedulablePods:
    """All pods that wait for an event."""

    def __init__(self, plugins: QueuePlugins, *, longest: float) -> None:
        """`longest`: after this many seconds a rejected pod is tried again without an event."""
        self._plugins = plugins
        self._longest = longest
        # All that ever were: profiles have few plugins, and their combinations recur.
        self._causes: dict[tuple[str, frozenset[str], frozenset[str], str], Cause] = {}
        self._present: dict[Cause, None] = {}
        self._came = count()
        # The rejected pods, by the time when they will have waited for too long.
        self._overdue: dict[float, dict[QueueEntry, None]] = {}

    def cause(self, entry: QueueEntry) -> Cause:
        key = (entry.pod.spec.scheduler_name, entry.rejectors, entry.pending, entry.gated_by)
        cause = self._causes.get(key)
        if cause is None:
            cause = self._causes[key] = Cause(self._plugins, entry)
        return cause

    def add(self, entry: QueueEntry) -> None:
        cause = entry.cause = self.cause(entry)
        # Keeps the order in which pods wake deterministic.
        entry.came = next(self._came)
        cause.add(entry)
        self._present[cause] = None
        if not entry.gated_by:
            # The first sweep that finds it here for longer than allowed.
            entry.overdue = (floor((entry.timestamp + self._longest) / SWEEP_SECONDS) + 1) * SWEEP_SECONDS
            self._overdue.setdefault(entry.overdue, {})[entry] = None

    def remove(self, entry: QueueEntry) -> None:
        """Remove the pod, if it is here."""
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

    def renewed(self, entry: QueueEntry) -> None:
        """Take in a newer version of the pod, which may have another shape."""
        if entry.cause is not None:
            entry.cause.remove(entry)
            entry.cause.add(entry)

    def helped(self, event: ClusterEvent) -> list[tuple[QueueEntry, QueueingStrategy]]:
        """Return the pods that the event helps."""
        kind = kind_of(event)
        return [
            pair
            for cause in self._present
            if cause.concerned(event, kind)
            for pair in cause.helped(event, kind)
        ]

    def overdue(self, *, now: float) -> list[QueueEntry]:
        """Return the rejected pods that have waited for too long."""
        times = sorted(time for time in self._overdue if time <= now)
        return [entry for time in times for entry in self._overdue[time]]

    @property
    def next_overdue(self) -> float | None:
        return min(self._overdue, default=None)
