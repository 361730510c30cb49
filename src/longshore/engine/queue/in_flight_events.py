"""Events that happen while pods are being tried: a pod that is rejected in the end must not miss any of them.

All pods in flight share one list of events, and each remembers where in the list its attempt began. Events
from before the oldest attempt are dropped.
"""

from collections import OrderedDict

from longshore.engine.queue.entry import QueueEntry
from longshore.framework import ClusterEvent


class InFlightEvents:
    def __init__(self) -> None:
        # The oldest first. (A plain dict is slow to find its first item after many deletions.)
        self._entries: OrderedDict[QueueEntry, None] = OrderedDict()
        self._events: list[ClusterEvent] = []
        self._dropped = 0

    def __contains__(self, entry: QueueEntry) -> bool:
        return entry in self._entries

    def __len__(self) -> int:
        """Return how many events are kept."""
        return len(self._events)

    def begin(self, entry: QueueEntry) -> None:
        entry.noted = self._dropped + len(self._events)
        self._entries[entry] = None

    def end(self, entry: QueueEntry) -> None:
        """Keep no more events for the pod, if any are kept."""
        if entry not in self._entries:
            return
        del self._entries[entry]
        if self._events:
            oldest = next(iter(self._entries)).noted if self._entries else self._dropped + len(self._events)
            del self._events[: oldest - self._dropped]
            self._dropped = oldest

    def note(self, event: ClusterEvent) -> None:
        if self._entries:
            self._events.append(event)

    def events(self, entry: QueueEntry) -> list[ClusterEvent]:
        """Return what has happened since the pod's attempt began."""
        return self._events[entry.noted - self._dropped :]
