"""Times as Kubernetes reads and writes them, in RFC 3339; in Python they are seconds since 1970."""

import math
from datetime import UTC, datetime
from typing import Literal

# 9999-12-31T23:59:59Z, the last time that RFC 3339 can express.
_LAST = 253_402_300_799


def parse_timestamp(text: str | None) -> float:
    """Return the time in seconds since 1970, or NaN if the text is not a time with a time zone."""
    try:
        at = datetime.fromisoformat(text or "")
        return math.nan if at.tzinfo is None else at.timestamp()
    except (ValueError, OverflowError):
        return math.nan


def format_timestamp(
    seconds: float, precision: Literal["seconds", "milliseconds", "microseconds"] = "seconds"
) -> str:
    """Return the time in UTC, truncated to the precision."""
    at = datetime.fromtimestamp(min(seconds, _LAST), UTC).replace(tzinfo=None)
    return f"{at.isoformat(timespec=precision)}Z"
