"""The pods that wait for a node.

A pod is *active* (to be tried, the most important and then the longest waiting first), in *backoff* (to be
tried when its time has come), *unschedulable* (to be tried when room may have been made), or *in flight*:
being tried, or its bind is under way. What happens during a flight is not lost: the pod's newest version is
kept, and room made meanwhile keeps it from being set aside as unschedulable.
"""

import enum
import heapq
from dataclasses import dataclass
from itertools import count

from longshore.api import Pod

FIRST_BACKOFF = 1.0
MAX_BACKOFF = 10.0
_DOUBLINGS = 4  # more of them would pass MAX_BACKOFF


class Place(enum.Enum):
    ACTIVE = enum.auto()
    BACKOFF = enum.auto()
    UNSCHEDULABLE = enum.auto()
    IN_FLIGHT = enum.auto()


@dataclass(eq=False, slots=True)
class Entry:
    """A waiting pod in its newest version, and where it waits."""

    pod: Pod
    # When it came in, or when its last attempt failed.
    timestamp: float
    place: Place = Place.ACTIVE
    failures: int = 0
    # Number of the heap item that stands for this entry; items with another number are leftovers.
    ticket: int = 0
    # How often pods had been woken when its flight began.
    woken: int = 0
    # It stopped being ours to schedule during its flight.
    withdrawn: bool = False

    @property
    def ready_at(self) -> float:
        """When its backoff is over."""
        if not self.failures:
            return self.timestamp
        return self.timestamp + min(MAX_BACKOFF, FIRST_BACKOFF * (1 << min(self.failures - 1, _DOUBLINGS)))


class Queue:
    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        # Insertion order is kept, so waking is as deterministic as all else.
        self._unschedulable: dict[str, Entry] = {}
        self._active: list[tuple[int, float, int, Entry]] = []
        self._backoff: list[tuple[float, int, Entry]] = []
        self._tickets = count(1)
        self._woken = 0

    def find(self, pod: Pod) -> Entry | None:
        """The entry of this very pod, while it is ours to schedule."""
        entry = self._entries.get(pod.key)
        return entry if entry is not None and not entry.withdrawn and self.holds(pod) else None

    def holds(self, pod: Pod) -> bool:
        """Whether this very pod is here, be it only to end a flight after it was withdrawn."""
        entry = self._entries.get(pod.key)
        return entry is not None and entry.pod.metadata.uid == pod.metadata.uid

    def remove_predecessor(self, pod: Pod) -> None:
        """The pod exists, so one of the same name with another UID no longer does, told or not."""
        entry = self._entries.get(pod.key)
        if entry is not None and entry.pod.metadata.uid != pod.metadata.uid:
            self._discard(entry)

    def put(self, pod: Pod, *, now: float) -> None:
        """The pod waits for a node: it is new, or this is its newest version."""
        self.remove_predecessor(pod)
        entry = self._entries.get(pod.key)
        if entry is None:
            entry = self._entries[pod.key] = Entry(pod, now)
            self._activate(entry)
            return
        changed = entry.pod.spec != pod.spec or entry.pod.metadata.labels != pod.metadata.labels
        entry.pod = pod
        entry.withdrawn = False
        if changed and entry.place is Place.UNSCHEDULABLE:
            self._requeue(entry, now=now)
        elif changed and entry.place is Place.ACTIVE:
            self._activate(entry)  # its priority may be another one
        elif changed and entry.place is Place.IN_FLIGHT:
            entry.woken = -1  # what failed was an older version

    def withdraw(self, pod: Pod) -> None:
        """The pod no longer waits for a node of ours: gone, bound, ended or held back."""
        entry = self.find(pod)
        if entry is None:
            return
        if entry.place is Place.IN_FLIGHT:
            entry.withdrawn = True
        else:
            self._discard(entry)

    def pop(self) -> Entry | None:
        """The next pod to try; it is in flight until `settle`, `back_off` or `set_aside`."""
        while self._active:
            *_, ticket, entry = heapq.heappop(self._active)
            if entry.ticket == ticket:
                entry.place = Place.IN_FLIGHT
                entry.woken = self._woken
                return entry
        return None

    def settle(self, entry: Entry) -> None:
        """The flight is over, and so is the wait."""
        self._discard(entry)

    def back_off(self, entry: Entry, *, now: float) -> None:
        """The flight failed in a way that time may cure."""
        if self._landed(entry, now=now):
            self._push_backoff(entry)

    def set_aside(self, entry: Entry, *, now: float) -> None:
        """No node has room: wait for some to be made, unless it was made during the flight."""
        if self._landed(entry, now=now):
            if entry.woken == self._woken:
                entry.place = Place.UNSCHEDULABLE
                self._unschedulable[entry.pod.key] = entry
            else:
                self._push_backoff(entry)

    def wake(self, *, now: float) -> None:
        """Room may have been made: try the unschedulable pods again, each when its backoff is over."""
        self._woken += 1
        waiting = list(self._unschedulable.values())
        for entry in waiting:
            self._requeue(entry, now=now)

    def flush(self, *, now: float) -> None:
        """Activate the pods whose backoff is over."""
        while self._backoff and self._backoff[0][0] <= now:
            _, ticket, entry = heapq.heappop(self._backoff)
            if entry.ticket == ticket:
                self._activate(entry)

    @property
    def has_active(self) -> bool:
        while self._active and self._active[0][3].ticket != self._active[0][2]:
            heapq.heappop(self._active)
        return bool(self._active)

    @property
    def next_ready(self) -> float | None:
        """When the next backoff is over."""
        while self._backoff and self._backoff[0][2].ticket != self._backoff[0][1]:
            heapq.heappop(self._backoff)
        return self._backoff[0][0] if self._backoff else None

    def _landed(self, entry: Entry, *, now: float) -> bool:
        """End a failed flight; whether the pod still waits."""
        if self._entries.get(entry.pod.key) is not entry:
            return False
        if entry.withdrawn:
            self._discard(entry)
            return False
        entry.failures += 1
        entry.timestamp = now
        return True

    def _discard(self, entry: Entry) -> None:
        entry.ticket = 0
        if self._entries.get(entry.pod.key) is entry:
            del self._entries[entry.pod.key]
            self._unschedulable.pop(entry.pod.key, None)

    def _requeue(self, entry: Entry, *, now: float) -> None:
        self._unschedulable.pop(entry.pod.key, None)
        if entry.ready_at > now:
            self._push_backoff(entry)
        else:
            self._activate(entry)

    def _activate(self, entry: Entry) -> None:
        entry.place = Place.ACTIVE
        entry.ticket = next(self._tickets)
        heapq.heappush(self._active, (-entry.pod.spec.priority, entry.timestamp, entry.ticket, entry))

    def _push_backoff(self, entry: Entry) -> None:
        entry.place = Place.BACKOFF
        entry.ticket = next(self._tickets)
        heapq.heappush(self._backoff, (entry.ready_at, entry.ticket, entry))
