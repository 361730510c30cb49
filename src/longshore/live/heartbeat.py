"""Tells other threads whether the event loop is still running."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

_BEAT_SECONDS = 1.0
# An event loop that has not run anything for this long is considered dead.
_DEAF_SECONDS = 20.0


class Heartbeat:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = clock()

    @asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        """Note every second that the event loop runs."""
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
        """Return what is wrong, or an empty string."""
        seconds = self._clock() - self._last
        return f"the event loop has not run for {seconds:.0f} s" if seconds > _DEAF_SECONDS else ""
