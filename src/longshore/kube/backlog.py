"""Work that may wait for more urgent work, but not for long.

While others are busy, few tasks run at a time, and more of them the longer the first one has waited. So
urgent work goes first, but no task is delayed by more than a few seconds.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine

# How many tasks run at a time while others are busy, if the first one has waited for less than these seconds.
_SHARES = ((1.0, 4), (3.0, 16))
MOST_AT_ONCE = 48


class Backlog:
    """Tasks that are started in order. They must not raise."""

    def __init__(self, *, others_busy: Callable[[], bool] = lambda: False) -> None:
        self._others_busy = others_busy
        self._waiting: deque[tuple[float, Callable[[], Coroutine[None, None, None]]]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """The number of tasks that have not ended."""
        return len(self._waiting) + len(self._tasks)

    @property
    def delay(self) -> float:
        """How long the first task that has not started has waited, in seconds."""
        return _now() - self._waiting[0][0] if self._waiting else 0.0

    def add(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        self._waiting.append((_now(), work))
        self._begin()

    async def done(self) -> None:
        """Wait until all tasks have ended."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _begin(self) -> None:
        while self._waiting and len(self._tasks) < self._at_once:
            _, work = self._waiting.popleft()
            task = asyncio.create_task(work())
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._begin()

    @property
    def _at_once(self) -> int:
        if not self._others_busy():
            return MOST_AT_ONCE
        delay = self.delay
        return next((number for seconds, number in _SHARES if delay < seconds), MOST_AT_ONCE)


def _now() -> float:
    return asyncio.get_running_loop().time()
