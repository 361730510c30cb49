"""How long to wait before the next try: longer each time, never in step with other clients."""

import asyncio
import random


class Backoff:
    """Doubles from `first` to `most` seconds; each wait is drawn from the upper half, so none is zero."""

    def __init__(self, *, first: float = 0.2, most: float = 30.0) -> None:
        self._first = first
        self._most = most
        self._next = first

    def wait(self, at_least: float | None = None) -> float:
        """Seconds to wait now. What the server asked for is never cut short, only spread a little."""
        if at_least:
            return at_least * random.uniform(1.0, 1.25)
        full, self._next = self._next, min(self._next * 2, self._most)
        return random.uniform(full / 2, full)

    def reset(self) -> None:
        self._next = self._first


async def sleep_unless(stop: asyncio.Event, seconds: float) -> None:
    """Sleep, or return at once when `stop` is set."""
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        pass
