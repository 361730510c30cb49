"""Virtual time: what is going to happen, in order. Time jumps from one action to the next."""

import heapq
from collections.abc import Callable
from itertools import count


class Agenda:
    """Actions of one time are run in the order in which they were added."""

    def __init__(self) -> None:
        self.now = 0.0
        self._actions: list[tuple[float, int, Callable[[], object]]] = []
        self._order = count()

    def __bool__(self) -> bool:
        return bool(self._actions)

    @property
    def next_due(self) -> float | None:
        return self._actions[0][0] if self._actions else None

    def at(self, time: float, action: Callable[[], object]) -> None:
        heapq.heappush(self._actions, (time, next(self._order), action))

    def after(self, seconds: float, action: Callable[[], object]) -> None:
        self.at(self.now + seconds, action)

    def go_on_to(self, time: float) -> None:
        """Let time pass, never backward, and run everything that is due then."""
        self.now = max(self.now, time)
        while self._actions and self._actions[0][0] <= self.now:
            heapq.heappop(self._actions)[2]()
