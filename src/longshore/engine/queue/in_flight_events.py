"""What happens while pods are being tried, so that none of it is lost to those that are rejected in the end.

All flights share one list of events, and each remembers where in it its own begin. What came before the
oldest flight is dropped.
"""

from collections import OrderedDict

from longshore.engine.queue.entry import Entry
from longshore.framework import ClusterEvent


class Flights:
    def __init__(self) -> None:
        # The oldest first. (A plain dict would be slow to find its first item after many deletions.)
        self._entries: OrderedDict[Entry, None] = OrderedDict()
        self._events: list[ClusterEvent] = []
        self._dropped = 0

    def __contains__(self, entry: Entry) -> bool:
        return entry in self._entries

    def begin(self, entry: Entry) -> None:
        entry.noted = self._dropped + len(self._events)
        self._entries[entry] = None

    def end(self, entry: Entry) -> None:
        """No more events need be noted for it. Said twice, it is the same."""
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

    def events(self, entry: Entry) -> list[ClusterEvent]:
        """What has happened since its flight began."""
        return self._events[entry.noted - self._dropped :]

    @property
    def noted(self) -> int:
        """How many events are kept."""
        return len(self._events)
