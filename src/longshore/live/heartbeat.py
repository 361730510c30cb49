"""Whether the event loop still has its turns, as seen from any other thread."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

_BEAT_SECONDS = 1.0
# Without a turn for so long, the event loop is as good as dead.
_DEAF_SECONDS = 20.0


class Heartbeat:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = clock()

    @asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        """Note every second that the event loop has had a turn."""
        heart = asyncio.create_task(self._beat())
        try:
            yield
        finally:
            heart.cancel()

    async def _beat(self) -> None:
        while True:
            self._last = self._clock()
            await asyncio.sleep(_BEAT_SECONDS)

    def silence(self) -> str:
        """What is wrong, or nothing."""
        seconds = self._clock() - self._last
        return f"the event loop has had no turn for {seconds:.0f} s" if seconds > _DEAF_SECONDS else ""
