"""Runs `async def` plugins in virtual time: a sleep takes no real time, but its length is counted."""

import asyncio
import selectors
from collections.abc import Awaitable
from typing import Any


class _Jump(selectors.SelectSelector):
    """Moves the clock on to when the next timer is due, instead of waiting for something to happen."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout:
            self.now += timeout
        return super().select(0)


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self, clock: _Jump) -> None:
        self._clock = clock
        super().__init__(clock)

    def time(self) -> float:
        return self._clock.now


def run(awaitable: Awaitable[Any]) -> tuple[Any, float]:
    """Return the result and after how many seconds it came. Raises what the awaitable raises."""
    clock = _Jump()
    loop = _VirtualLoop(clock)
    # A simulation may itself run in an event loop, as in a notebook: that one stands still meanwhile.
    outer = asyncio._get_running_loop()
    asyncio._set_running_loop(None)

    async def wait() -> Any:
        return await awaitable

    try:
        return loop.run_until_complete(wait()), clock.now
    finally:
        loop.close()
        asyncio._set_running_loop(outer)
