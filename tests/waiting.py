"""Wait for a state of the world, and show what was there instead when it does not come."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

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


@overload
async def eventually_async(
    observe: Callable[[], Awaitable[T]],
    accepts: Callable[[T], Any] = ...,
    *,
    what: str = ...,
    within: float = ...,
    pause: float = ...,
) -> T: ...
@overload
async def eventually_async(
    observe: Callable[[], T],
    accepts: Callable[[T], Any] = ...,
    *,
    what: str = ...,
    within: float = ...,
    pause: float = ...,
) -> T: ...
async def eventually_async(
    observe: Callable[[], Any],
    accepts: Callable[[Any], Any] = bool,
    *,
    what: str = "accepted",
    within: float = 20.0,
    pause: float = 0.01,
) -> Any:
    """Do the same without blocking the event loop between two observations."""
    deadline = time.monotonic() + within
    while True:
        found = observe()
        if inspect.isawaitable(found):
            found = await found
        if accepts(found):
            return found
        assert time.monotonic() < deadline, _complaint(what, within, found)
        await asyncio.sleep(pause)


def _complaint(what: str, within: float, found: object) -> str:
    return f"not {what} after {within:g} s; found: {found!r}"
