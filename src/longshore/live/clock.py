"""Keeps the engine's idea of wall-clock time right.

The engine's own clock never jumps. The wall clock may be set, or go on while a machine sleeps.
"""

import time

from longshore.engine import Engine

# Seconds; a smaller difference is left to the service that keeps the wall clock right.
_NOTICED = 0.1


def epoch() -> float:
    """Return what to add to the engine's time to get the wall-clock time."""
    return time.time() - time.monotonic()


def follow(engine: Engine) -> None:
    """Make the engine use the wall-clock time as it is now."""
    now = epoch()
    if abs(now - engine.epoch) > _NOTICED:
        engine.epoch = now
