"""The wait before the next try: longer each time, and random, so that clients do not retry together."""

import asyncio
import random


class JitteredBackoff:
    """Waits that double from `first` to `most` seconds. Each is drawn from the upper half, so none is 0."""

    def __init__(self, *, first: float = 0.2, most: float = 30.0) -> None:
        self._first = first
        self._most = most
        self._next = first

    def wait(self, at_least: float | None = None) -> float:
        """Return the seconds to wait now: never less than the server asked for, but up to a quarter more."""
        if at_least:
            return at_least * random.uniform(1.0, 1.25)
        full, self._next = self._next, min(self._next * 2, self._most)
        return random.uniform(full / 2, full)

    def reset(self) -> None:
        self._next = self._first


async def sleep_unless(stop: asyncio.Event, seconds: float) -> None:
    """Sleep, but return as soon as `stop` is set."""
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        pass
