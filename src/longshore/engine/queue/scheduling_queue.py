"""The pods that wait for a node, and whose turn it is.

A pod is *active* (to be tried), in *backoff* (to be tried after a while), *unschedulable* (to be tried when
something happens that may help), *gated* (not to be tried at all) or *in flight* (being tried, or its bind is
under way). What happens during a flight is not lost: the pod's newest version is kept, and the events are
judged when it comes back.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count

from longshore.api import Pod
from longshore.engine.queue.backoff import Backoff
from longshore.engine.queue.cluster_events import pod_updates
from longshore.engine.queue.entry import NOBODY, Entry, Place, Profiles
from longshore.engine.queue.heap import Line
from longshore.engine.queue.in_flight_events import Flights
from longshore.engine.queue.queueing_hints import Verdict, kind_of
from longshore.engine.queue.unschedulable import SetAside
from longshore.framework import Action, ClusterEvent, Code, Resource

__all__ = ["Entry", "Place", "Profiles", "Queue"]

# What metrics call the ways from one place to another.
_NEW_POD = ClusterEvent(Resource.UNSCHEDULED_POD, Action.ADD).label
_FAILED = "ScheduleAttemptFailure"
_BACKOFF_OVER = "BackoffComplete"
_TAKEN_EARLY = "PopFromBackoffQ"
_FORCED = "ForceActivate"
_HELD = "Held"
_OVERDUE = ClusterEvent(Resource.WILDCARD, Action.ALL, custom_label="UnschedulableTimeout")


class Queue:
    """`observe` is told each time a pod comes to a place, and why."""

    def __init__(
        self,
        profiles: Profiles,
        *,
        initial_backoff: float = 1.0,
        max_backoff: float = 10.0,
        max_unschedulable_seconds: float = 300.0,
        observe: Callable[[str, str], None] = lambda _place, _why: None,
    ) -> None:
        self._profiles = profiles
        self.observe = observe
        self._entries: dict[str, Entry] = {}
        self._active = Line()
        self._backoff = Backoff(initial=initial_backoff, longest=max_backoff)
        self._aside = SetAside(profiles, longest=max_unschedulable_seconds)
        self._flights = Flights()
        self._tickets = count(1)

    def find(self, pod: Pod) -> Entry | None:
        """The entry of this very pod, while it is ours to schedule."""
        entry = self._entries.get(pod.key)
        if entry is None or entry.withdrawn or entry.pod.metadata.uid != pod.metadata.uid:
            return None
        return entry

    def holds(self, pod: Pod) -> bool:
        """Whether this very pod is here, be it only to end a flight after it was withdrawn."""
        entry = self._entries.get(pod.key)
        return entry is not None and entry.pod.metadata.uid == pod.metadata.uid

    def waiting(self) -> Iterator[Entry]:
        """All that are not in flight, in the order in which they came."""
        return (entry for entry in self._entries.values() if entry.place is not Place.IN_FLIGHT)

    def snapshot(self) -> list[Entry]:
        """All of them, those in flight too: copied in one step, so that another thread may ask."""
        return list(self._entries.values())

    def counts(self) -> Mapping[str, int]:
        """How many pods are in each place but in flight."""
        found = Counter(entry.place for entry in self._entries.values())
        return {place.value: found[place] for place in Place if place is not Place.IN_FLIGHT}

    def put(self, pod: Pod, *, now: float) -> None:
        """The pod waits for a node: it is new, or this is its newest version."""
        key = pod.key
        entry = self._entries.get(key)
        if entry is not None and entry.pod.metadata.uid == pod.metadata.uid:
            self._renew(entry, pod, now=now)
            return
        if entry is not None:
            self._discard(entry)
        entry = self._entries[key] = Entry(pod, now, now)
        self._let_in(entry, _NEW_POD, now=now)

    def remove_predecessor(self, pod: Pod) -> None:
        """The pod exists, so one of the same name with another UID no longer does, told or not."""
        entry = self._entries.get(pod.key)
        if entry is not None and entry.pod.metadata.uid != pod.metadata.uid:
            self._discard(entry)

    def withdraw(self, pod: Pod) -> None:
        """The pod no longer waits for a node of ours: gone, bound, ended or passed to another scheduler."""
        entry = self.find(pod)
        if entry is None:
            return
        if entry.place is Place.IN_FLIGHT:
            entry.withdrawn = True
        else:
            self._discard(entry)

    def pop(self) -> Entry | None:
        """The next pod to try; it is in flight until `settle` or `fail`.

        Backoff is for the good of others: when there are none, rejected pods need not sit it out.
        """
        entry = self._active.pop()
        if entry is None:
            entry = self._backoff.pop_early()
            if entry is None:
                return None
            self.observe("active", _TAKEN_EARLY)
        entry.place = Place.IN_FLIGHT
        entry.attempts += 1
        self._flights.begin(entry)
        return entry

    def done_scheduling(self, entry: Entry) -> None:
        """Binding has begun: whatever happens in the cluster now is not what may make it fail."""
        self._flights.end(entry)

    def settle(self, entry: Entry) -> None:
        """The flight is over, and so is the wait."""
        self._discard(entry)

    def fail(
        self,
        entry: Entry,
        *,
        now: float,
        rejectors: frozenset[str] = NOBODY,
        pending: frozenset[str] = NOBODY,
    ) -> None:
        """The attempt came to nothing: these plugins rejected the pod, or else there was an error."""
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
        verdict = self._in_hindsight(entry)
        self._flights.end(entry)
        if verdict is Verdict.STAY:
            self._set_aside(entry, _FAILED)
        else:
            self._let_in(entry, _FAILED, now=now, at_once=verdict is Verdict.AT_ONCE)

    def event(self, event: ClusterEvent, *, now: float, among: Callable[[Pod], bool] | None = None) -> None:
        """Something happened in the cluster: wake the pods that it may help; of these, only those `among`."""
        for entry, verdict in self._aside.helped(event):
            if among is None or among(entry.pod):
                self._wake(entry, verdict, event, now=now)
        self._flights.note(event)

    def activate(self, pods: Iterable[Pod], *, now: float) -> None:
        """Try these again at once, unless they are gated; those in flight when they come back."""
        for pod in pods:
            entry = self.find(pod)
            if entry is None:
                continue
            if entry.place is Place.BACKOFF:
                self._push_active(entry, _FORCED)
            elif entry.cause is not None:
                if entry.gated_by:
                    # Those let in together are tried in the order in which they were named.
                    entry.timestamp = now
                self._let_in(entry, _FORCED, now=now, at_once=True)
            elif entry in self._flights:
                forced = ClusterEvent(Resource.WILDCARD, Action.ALL, new=pod, custom_label=_FORCED)
                self._flights.note(forced)

    def hold(self, pods: Iterable[Pod]) -> None:
        """Ask again about those of these that are to be tried: who is not let in now is gated."""
        for pod in pods:
            entry = self.find(pod)
            if entry is not None and entry.place in (Place.ACTIVE, Place.BACKOFF):
                self._gate(entry, _HELD)

    def flush(self, *, now: float) -> None:
        """Activate the pods whose backoff is over, and wake those that have been set aside for too long."""
        for entry in self._backoff.over(now=now):
            self._push_active(entry, _BACKOFF_OVER)
        overdue = self._aside.overdue(now=now)
        for entry in overdue:
            self._wake(entry, Verdict.AFTER_BACKOFF, _OVERDUE, now=now)
        if overdue:
            self._flights.note(_OVERDUE)

    @property
    def has_active(self) -> bool:
        """Whether there is something to pop."""
        return self._active.first() is not None or self._backoff.has_early

    @property
    def next_due(self) -> float | None:
        """When there is something to flush."""
        times = (self._backoff.next_over, self._aside.next_overdue)
        return min((at for at in times if at is not None), default=None)

    def _renew(self, entry: Entry, pod: Pod, *, now: float) -> None:
        old = entry.pod
        entry.renew(pod)
        if pod is old or (pod.metadata.resource_version == old.metadata.resource_version != ""):
            return
        if entry.place is Place.ACTIVE or entry.place is Place.BACKOFF:
            sort_key = self._profiles.sort_key(pod, entry.timestamp)
            if sort_key != entry.sort_key:
                entry.sort_key = sort_key
                entry.ticket = next(self._tickets)
                if entry.place is Place.ACTIVE:
                    self._active.push(sort_key, entry)
                else:
                    self._backoff.push(entry)
        elif entry in self._flights:
            for event in _own_events(old, pod):
                self._flights.note(event)
        elif entry.cause is not None:
            self._aside.renewed(entry)
            self._wake_by_own_change(entry, old, now=now)

    def _wake(self, entry: Entry, verdict: Verdict, event: ClusterEvent, *, now: float) -> None:
        self._aside.remove(entry)
        self._let_in(entry, event.label, now=now, at_once=verdict is Verdict.AT_ONCE)

    def _wake_by_own_change(self, entry: Entry, old: Pod, *, now: float) -> None:
        for event in _own_events(old, entry.pod):
            if entry.cause is None:
                return
            verdict = entry.cause.say(event, kind_of(event)).verdict(entry.pod, event)
            if verdict is not Verdict.STAY:
                self._let_in(entry, event.label, now=now, at_once=verdict is Verdict.AT_ONCE)

    def _in_hindsight(self, entry: Entry) -> Verdict:
        """What the events during its flight mean for the pod, now that it is known who rejected it."""
        if not entry.rejectors or entry not in self._flights:
            return Verdict.AFTER_BACKOFF
        cause = self._aside.cause(entry)
        best = Verdict.STAY
        for event in self._flights.events(entry):
            verdict = cause.say(event, kind_of(event)).verdict(entry.pod, event)
            if verdict is Verdict.AT_ONCE or (verdict is Verdict.AFTER_BACKOFF and not entry.pending):
                return verdict
            if verdict is Verdict.AFTER_BACKOFF:
                best = verdict
        return best

    def _let_in(self, entry: Entry, why: str, *, now: float, at_once: bool = False) -> None:
        """To the active pods, or to those in backoff if it has to sit out some; unless it is gated."""
        if self._gate(entry, why):
            return
        if not entry.attempts:
            entry.added = now
        self._aside.remove(entry)
        if at_once or not self._backoff.holds_back(entry, now=now):
            self._push_active(entry, why)
        else:
            entry.place = Place.BACKOFF
            entry.sort_key = self._profiles.sort_key(entry.pod, entry.timestamp)
            entry.ticket = next(self._tickets)
            self._backoff.push(entry)
            self.observe("backoff", why)

    def _gate(self, entry: Entry, why: str) -> bool:
        """Whether a PreEnqueue plugin keeps it out."""
        refused = self._profiles.pre_enqueue(entry.pod, entry.gated_by)
        if refused is None or refused.code is Code.SUCCESS:
            entry.gated_by = ""
            return False
        entry.ticket = 0
        entry.gated_by = refused.plugin
        entry.rejectors |= {refused.plugin}
        self._set_aside(entry, why)
        return True

    def _push_active(self, entry: Entry, why: str) -> None:
        entry.place = Place.ACTIVE
        entry.sort_key = self._profiles.sort_key(entry.pod, entry.timestamp)
        entry.ticket = next(self._tickets)
        self._active.push(entry.sort_key, entry)
        self.observe("active", why)

    def _set_aside(self, entry: Entry, why: str) -> None:
        entry.place = Place.GATED if entry.gated_by else Place.UNSCHEDULABLE
        if entry.cause is None:
            self.observe(entry.place.value, why)
        self._aside.remove(entry)
        self._aside.add(entry)

    def _discard(self, entry: Entry) -> None:
        entry.ticket = 0
        self._aside.remove(entry)
        self._flights.end(entry)
        key = entry.pod.key
        if self._entries.get(key) is entry:
            del self._entries[key]


def _own_events(old: Pod, new: Pod) -> Iterator[ClusterEvent]:
    return (ClusterEvent(Resource.UNSCHEDULED_POD, action, old, new) for action in pod_updates(old, new))
