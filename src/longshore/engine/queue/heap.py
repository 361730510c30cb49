"""A heap of pods. A pod that has left, or has another key now, leaves an item behind, which is skipped."""

import heapq
from typing import Any

from longshore.engine.queue.entry import QueueEntry


class EntryHeap:
    def __init__(self) -> None:
        self._heap: list[tuple[Any, int, QueueEntry]] = []

    def push(self, key: Any, entry: QueueEntry) -> None:
        """Add the pod. Its ticket must be new: it marks the item as the valid one, and breaks ties."""
        heapq.heappush(self._heap, (key, entry.ticket, entry))

    def pop(self) -> QueueEntry | None:
        heap = self._heap
        while heap:
            _, ticket, entry = heapq.heappop(heap)
            if entry.ticket == ticket:
                return entry
        return None

    def first(self) -> tuple[Any, QueueEntry] | None:
        """Return the pod that `pop` would return, with its key."""
        heap = self._heap
        while heap:
            key, ticket, entry = heap[0]
            if entry.ticket == ticket:
                return key, entry
            heapq.heappop(heap)
        return None
