"""Wait for a state of the world, and show what was there instead when it does not come."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def eventually(
    observe: Callable[[], T],
    accepts: Callable[[T], Any] = bool,
    *,
    what: str = "accepted",
    within: float = 20.0,
    pause: float = 0.1,
) -> T:
    """Observe until the observation is accepted, and return it; on timeout show the last one."""
    deadline = time.monotonic() + within
    while not accepts(found := observe()):
        assert time.monotonic() < deadline, _complaint(what, within, found)
        time.sleep(pause)
    return found


async def eventually_async(
    observe: Callable[[], T],
    accepts: Callable[[T], Any] = bool,
    *,
    what: str = "accepted",
    within: float = 20.0,
    pause: float = 0.01,
) -> T:
    """Do the same without blocking the event loop between two observations."""
    deadline = time.monotonic() + within
    while not accepts(found := observe()):
        assert time.monotonic() < deadline, _complaint(what, within, found)
        await asyncio.sleep(pause)
    return found


def _complaint(what: str, within: float, found: object) -> str:
    return f"not {what} after {within:g} s; found: {found!r}"
