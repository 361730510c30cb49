"""The engine's clock never jumps. That of the wall may be set, or go on while a machine sleeps."""

import time

from longshore.engine import Engine

# Seconds: what is less is the work of whoever keeps the clock right.
_NOTICED = 0.1


def epoch() -> float:
    """What to add to the engine's time to get that of the wall."""
    return time.time() - time.monotonic()


def follow(engine: Engine) -> None:
    """Have the engine go by the wall's clock as it is now."""
    now = epoch()
    if abs(now - engine.epoch) > _NOTICED:
        engine.epoch = now
