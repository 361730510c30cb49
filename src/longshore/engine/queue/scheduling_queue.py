"""The scheduling queue: which pods wait for a node, and which of them is tried next.

A pod is *active* (tried as soon as possible), in *backoff* (tried after a while), *unschedulable* (tried when
something happens that may help), *gated* (not tried at all) or *in flight* (being tried or bound). Whatever
happens while a pod is in flight is kept: its newest version, and the events, which count if it is rejected.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count

from longshore.api import Pod
from longshore.engine.queue.backoff import BackoffPods
from longshore.engine.queue.cluster_events import pod_updates
from longshore.engine.queue.entry import NO_PLUGINS, Place, QueueEntry, QueuePlugins
from longshore.engine.queue.heap import EntryHeap
from longshore.engine.queue.in_flight_events import InFlightEvents
from longshore.engine.queue.queueing_hints import QueueingStrategy, kind_of
from longshore.engine.queue.unschedulable import UnschedulablePods
from longshore.framework import Action, ClusterEvent, Code, Resource

__all__ = ["Place", "QueueEntry", "QueuePlugins", "SchedulingQueue"]

# The names that metrics use for what brings pods from one place to another.
_NEW_POD = ClusterEvent(Resource.UNSCHEDULED_POD, Action.ADD).label
_FAILED = "ScheduleAttemptFailure"
_BACKOFF_OVER = "BackoffComplete"
_TAKEN_EARLY = "PopFromBackoffQ"
_FORCED = "ForceActivate"
_HELD = "Held"
_OVERDUE = ClusterEvent(Resource.WILDCARD, Action.ALL, custom_label="UnschedulableTimeout")


class SchedulingQueue:
    """`observe` is called with the place and the reason each time a pod comes to a place."""

    def __init__(
        self,
        plugins: QueuePlugins,
        *,
        initial_backoff: float = 1.0,
        max_backoff: float = 10.0,
        max_unschedulable_seconds: float = 300.0,
        observe: Callable[[str, str], None] = lambda _place, _why: None,
    ) -> None:
        self._plugins = plugins
        self.observe = observe
        self._entries: dict[str, QueueEntry] = {}
        self._active = EntryHeap()
        self._backoff = BackoffPods(initial=initial_backoff, longest=max_backoff)
        self._unschedulable = UnschedulablePods(plugins, longest=max_unschedulable_seconds)
        self._in_flight = InFlightEvents()
        self._tickets = count(1)

    def find(self, pod: Pod) -> QueueEntry | None:
        """Return the entry of the pod with this UID, if it is still for us to schedule."""
        entry = self._entries.get(pod.key)
        if entry is None or entry.withdrawn or entry.pod.metadata.uid != pod.metadata.uid:
            return None
        return entry

    def holds(self, pod: Pod) -> bool:
        """Whether the pod with this UID is here, even if it was withdrawn while in flight."""
        entry = self._entries.get(pod.key)
        return entry is not None and entry.pod.metadata.uid == pod.metadata.uid

    def waiting(self) -> Iterator[QueueEntry]:
        """Return the pods that are not in flight, in the order in which they came."""
        return (entry for entry in self._entries.values() if entry.place is not Place.IN_FLIGHT)

    def snapshot(self) -> list[QueueEntry]:
        """Return all pods, also those in flight. It copies in one step, so another thread may call it."""
        return list(self._entries.values())

    def counts(self) -> Mapping[str, int]:
        """Return how many pods are in each place, except in flight."""
        found = Counter(entry.place for entry in self._entries.values())
        return {place.value: found[place] for place in Place if place is not Place.IN_FLIGHT}

    def put(self, pod: Pod, *, now: float) -> None:
        """Take in a pod that needs a node: it is new, or this is its newest version."""
        key = pod.key
        entry = self._entries.get(key)
        if entry is not None and entry.pod.metadata.uid == pod.metadata.uid:
            self._renew(entry, pod, now=now)
            return
        if entry is not None:
            self._discard(entry)
        entry = self._entries[key] = QueueEntry(pod, now, now)
        self._let_in(entry, _NEW_POD, now=now)

    def remove_predecessor(self, pod: Pod) -> None:
        """Drop a pod of the same name with another UID: this one exists, so that one no longer does."""
        entry = self._entries.get(pod.key)
        if entry is not None and entry.pod.metadata.uid != pod.metadata.uid:
            self._discard(entry)

    def withdraw(self, pod: Pod) -> None:
        """Drop a pod that no longer needs a node from us: it is gone, bound, ended or another scheduler's."""
        entry = self.find(pod)
        if entry is None:
            return
        if entry.place is Place.IN_FLIGHT:
            entry.withdrawn = True
        else:
            self._discard(entry)

    def pop(self) -> QueueEntry | None:
        """Return the next pod to try; it is in flight until `settle` or `fail`.

        Backoff gives way to other pods. If there are none, a rejected pod is tried before its backoff ends.
        """
        entry = self._active.pop()
        if entry is None:
            entry = self._backoff.pop_early()
            if entry is None:
                return None
            self.observe("active", _TAKEN_EARLY)
        entry.place = Place.IN_FLIGHT
        entry.attempts += 1
        self._in_flight.begin(entry)
        return entry

    def done_scheduling(self, entry: QueueEntry) -> None:
        """The pod is being bound: events that happen from now on do not matter if that fails."""
        self._in_flight.end(entry)

    def settle(self, entry: QueueEntry) -> None:
        """The pod in flight is bound or gone: drop it."""
        self._discard(entry)

    def fail(
        self,
        entry: QueueEntry,
        *,
        now: float,
        rejectors: frozenset[str] = NO_PLUGINS,
        pending: frozenset[str] = NO_PLUGINS,
    ) -> None:
        """The attempt failed: these plugins rejected the pod, or there was an error if none are given."""
        if entry.place is not Place.IN_FLIGHT or self._entries.get(entry.pod.key) is not entry:
            return
        if entry.withdrawn:
            self._discard(entry)
            return
        entry.rejectors, entry.pending = rejectors | pending, pending
        if entry.rejectors:
            entry.rejections += 1
            entry.errors = 0
        else:
            entry.errors += 1
        entry.timestamp = now
        strategy = self._missed(entry)
        self._in_flight.end(entry)
        if strategy is QueueingStrategy.SKIP:
            self._set_aside(entry, _FAILED)
        else:
            self._let_in(entry, _FAILED, now=now, at_once=strategy is QueueingStrategy.IMMEDIATELY)

    def event(self, event: ClusterEvent, *, now: float, among: Callable[[Pod], bool] | None = None) -> None:
        """Wake the pods that the event may help; only those for which `among` is true, if it is given."""
        for entry, strategy in self._unschedulable.helped(event):
            if among is None or among(entry.pod):
                self._wake(entry, strategy, event, now=now)
        self._in_flight.note(event)

    def activate(self, pods: Iterable[Pod], *, now: float) -> None:
        """Try these pods again at once, unless they are gated; those in flight after their attempt."""
        for pod in pods:
            entry = self.find(pod)
            if entry is None:
                continue
            if entry.place is Place.BACKOFF:
                self._push_active(entry, _FORCED)
            elif entry.cause is not None:
                if entry.gated_by:
                    # Pods that are let in together are tried in the order given.
                    entry.timestamp = now
                self._let_in(entry, _FORCED, now=now, at_once=True)
            elif entry in self._in_flight:
                forced = ClusterEvent(Resource.WILDCARD, Action.ALL, new=pod, custom_label=_FORCED)
                self._in_flight.note(forced)

    def hold(self, pods: Iterable[Pod]) -> None:
        """Ask PreEnqueue again about those of these pods that would be tried, and gate the refused ones."""
        for pod in pods:
            entry = self.find(pod)
            if entry is not None and entry.place in (Place.ACTIVE, Place.BACKOFF):
                self._gate(entry, _HELD)

    def flush(self, *, now: float) -> None:
        """Activate the pods whose backoff is over, and wake those that waited for an event for too long."""
        for entry in self._backoff.over(now=now):
            self._push_active(entry, _BACKOFF_OVER)
        overdue = self._unschedulable.overdue(now=now)
        for entry in overdue:
            self._wake(entry, QueueingStrategy.AFTER_BACKOFF, _OVERDUE, now=now)
        if overdue:
            self._in_flight.note(_OVERDUE)

    @property
    def has_active(self) -> bool:
        """Whether `pop` would return a pod."""
        return self._active.first() is not None or self._backoff.has_early

    @property
    def next_due(self) -> float | None:
        """When `flush` is due."""
        times = (self._backoff.next_over, self._unschedulable.next_overdue)
        return min((at for at in times if at is not None), default=None)

    def _renew(self, entry: QueueEntry, pod: Pod, *, now: float) -> None:
        old = entry.pod
        entry.renew(pod)
        if pod is old or (pod.metadata.resource_version == old.metadata.resource_version != ""):
            return
        if entry.place is Place.ACTIVE or entry.place is Place.BACKOFF:
            sort_key = self._plugins.sort_key(pod, entry.timestamp)
            if sort_key != entry.sort_key:
                entry.sort_key = sort_key
                entry.ticket = next(self._tickets)
                if entry.place is Place.ACTIVE:
                    self._active.push(sort_key, entry)
                else:
                    self._backoff.push(entry)
        elif entry in self._in_flight:
            for event in _own_events(old, pod):
                self._in_flight.note(event)
        elif entry.cause is not None:
            self._unschedulable.renewed(entry)
            self._wake_by_own_change(entry, old, now=now)

    def _wake(
        self, entry: QueueEntry, strategy: QueueingStrategy, event: ClusterEvent, *, now: float
    ) -> None:
        self._unschedulable.remove(entry)
        self._let_in(entry, event.label, now=now, at_once=strategy is QueueingStrategy.IMMEDIATELY)

    def _wake_by_own_change(self, entry: QueueEntry, old: Pod, *, now: float) -> None:
        for event in _own_events(old, entry.pod):
            if entry.cause is None:
                return
            strategy = entry.cause.hints(event, kind_of(event)).strategy(entry.pod, event)
            if strategy is not QueueingStrategy.SKIP:
                self._let_in(entry, event.label, now=now, at_once=strategy is QueueingStrategy.IMMEDIATELY)

    def _missed(self, entry: QueueEntry) -> QueueingStrategy:
        """Return what the events during the attempt mean, now that the plugins that rejected it are known."""
        if not entry.rejectors or entry not in self._in_flight:
            return QueueingStrategy.AFTER_BACKOFF
        cause = self._unschedulable.cause(entry)
        best = QueueingStrategy.SKIP
        for event in self._in_flight.events(entry):
            strategy = cause.hints(event, kind_of(event)).strategy(entry.pod, event)
            if strategy is QueueingStrategy.IMMEDIATELY:
                return strategy
            if strategy is QueueingStrategy.AFTER_BACKOFF:
                best = strategy
                if not entry.pending:
                    break
        return best

    def _let_in(self, entry: QueueEntry, why: str, *, now: float, at_once: bool = False) -> None:
        """Move the pod to the active ones, or into backoff if some is left; unless it is gated."""
        if self._gate(entry, why):
            return
        if not entry.attempts:
            entry.added = now
        self._unschedulable.remove(entry)
        if at_once or not self._backoff.holds_back(entry, now=now):
            self._push_active(entry, why)
        else:
            entry.place = Place.BACKOFF
            entry.sort_key = self._plugins.sort_key(entry.pod, entry.timestamp)
            entry.ticket = next(self._tickets)
            self._backoff.push(entry)
            self.observe("backoff", why)

    def _gate(self, entry: QueueEntry, why: str) -> bool:
        """Ask the PreEnqueue plugins; return whether one of them keeps the pod out."""
        refused = self._plugins.pre_enqueue(entry.pod, entry.gated_by)
        if refused is None or refused.code is Code.SUCCESS:
            entry.gated_by = ""
            return False
        entry.ticket = 0
        entry.gated_by = refused.plugin
        entry.rejectors |= {refused.plugin}
        self._set_aside(entry, why)
        return True

    def _push_active(self, entry: QueueEntry, why: str) -> None:
        entry.place = Place.ACTIVE
        entry.sort_key = self._plugins.sort_key(entry.pod, entry.timestamp)
        entry.ticket = next(self._tickets)
        self._active.push(entry.sort_key, entry)
        self.observe("active", why)

    def _set_aside(self, entry: QueueEntry, why: str) -> None:
        entry.place = Place.GATED if entry.gated_by else Place.UNSCHEDULABLE
        if entry.cause is None:
            self.observe(entry.place.value, why)
        self._unschedulable.remove(entry)
        self._unschedulable.add(entry)

    def _discard(self, entry: QueueEntry) -> None:
        entry.ticket = 0
        self._unschedulable.remove(entry)
        self._in_flight.end(entry)
        key = entry.pod.key
        if self._entries.get(key) is entry:
            del self._entries[key]


def _own_events(old: Pod, new: Pod) -> Iterator[ClusterEvent]:
    return (ClusterEvent(Resource.UNSCHEDULED_POD, action, old, new) for action in pod_updates(old, new))
