"""Conditions of triggers and plans, by the conventions of the Kubernetes API."""

import math
from collections.abc import Iterable

from longshore.api.pod_set import Condition
from longshore.api.timestamps import format_timestamp, parse_timestamp


def seconds_of(text: str | None) -> float | None:
    """Return the seconds since 1970 of an RFC 3339 time, or None if the text is not one."""
    seconds = parse_timestamp(text)
    return None if math.isnan(seconds) else seconds


def condition(kind: str, holds: bool, reason: str, message: str = "", *, generation: int = 0) -> Condition:
    """Return a condition without its time; `merged` adds that."""
    return Condition(kind, "True" if holds else "False", reason, message, observed_generation=generation)


def merged(wanted: Iterable[Condition], there: Iterable[Condition], *, wall: float) -> tuple[Condition, ...]:
    """Return the wanted conditions, each with the time at which its status last changed."""
    known = {each.type: each for each in there}
    return tuple(
        Condition(
            each.type,
            each.status,
            each.reason,
            each.message,
            old.last_transition_time
            if (old := known.get(each.type)) is not None and old.status == each.status
            else format_timestamp(wall),
            each.observed_generation,
        )
        for each in wanted
    )
