"""Pods in a line: a heap in which one that has left, or now stands elsewhere, leaves a leftover behind."""

import heapq
from typing import Any

from longshore.engine.queue.entry import Entry


class Line:
    def __init__(self) -> None:
        self._heap: list[tuple[Any, int, Entry]] = []

    def push(self, key: Any, entry: Entry) -> None:
        """The entry's ticket has to be new: it tells its item from leftovers, and breaks ties."""
        heapq.heappush(self._heap, (key, entry.ticket, entry))

    def pop(self) -> Entry | None:
        heap = self._heap
        while heap:
            _, ticket, entry = heapq.heappop(heap)
            if entry.ticket == ticket:
                return entry
        return None

    def first(self) -> tuple[Any, Entry] | None:
        """The entry at the head, with its key."""
        heap = self._heap
        while heap:
            key, ticket, entry = heap[0]
            if entry.ticket == ticket:
                return key, entry
            heapq.heappop(heap)
        return None
