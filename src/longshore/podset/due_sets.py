"""Times at which sets are looked at again. If a set has several times, the earliest counts."""

import heapq

# Namespace and name of a set.
SetKey = tuple[str, str]


class DueSets:
    def __init__(self) -> None:
        self._times: dict[SetKey, float] = {}
        # May contain times that are outdated.
        self._heap: list[tuple[float, SetKey]] = []

    def put(self, key: SetKey, at: float) -> None:
        """Look at the set at this time, or earlier if an earlier time is known."""
        known = self._times.get(key)
        if known is None or at < known:
            self._times[key] = at
            heapq.heappush(self._heap, (at, key))

    @property
    def deadline(self) -> float | None:
        while self._heap and self._times.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> list[SetKey]:
        """Take the sets whose time has come off the agenda and return them."""
        found = []
        while (deadline := self.deadline) is not None and deadline <= now:
            key = heapq.heappop(self._heap)[1]
            del self._times[key]
            found.append(key)
        return found
