"""Times as Kubernetes writes them: RFC 3339, always with their zone."""

import math
from datetime import datetime


def moment(text: str | None) -> float:
    """In seconds since 1970; NaN for what is no time, or is in no zone: whose clock would that be?"""
    try:
        at = datetime.fromisoformat(text or "")
        return math.nan if at.tzinfo is None else at.timestamp()
    except (ValueError, OverflowError):
        return math.nan
