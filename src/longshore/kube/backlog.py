"""Work that may wait for more urgent work, but not for long.

While others are busy few pieces are done at a time, and the more the longer the first of them has waited:
what is urgent goes ahead, and all the same nothing is put off for more than some seconds.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine

# Among busy others: having waited for less than so many seconds, so many pieces are done at a time.
_SHARES = ((1.0, 4), (3.0, 16))
MOST_AT_ONCE = 48


class Backlog:
    """Pieces of work, begun in their order. They do not raise."""

    def __init__(self, *, others_busy: Callable[[], bool] = lambda: False) -> None:
        self._others_busy = others_busy
        self._waiting: deque[tuple[float, Callable[[], Coroutine[None, None, None]]]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """How many have not been done."""
        return len(self._waiting) + len(self._tasks)

    @property
    def delay(self) -> float:
        """For how many seconds the first of those has waited that have not begun."""
        return _now() - self._waiting[0][0] if self._waiting else 0.0

    def add(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        self._waiting.append((_now(), work))
        self._begin()

    async def done(self) -> None:
        """Wait until nothing is left."""
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
