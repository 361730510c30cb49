"""Rewards as the data of a ConfigMap: a readable line for each value, and the time up to which they count.

    nodes/node-1 0.590490 2026-08-01T10:00:00.000Z
    types/web 0.590490 2026-08-01T10:00:00.000Z
    pairs/web/node-1 0.590490 2026-08-01T10:00:00.000Z

The values include all outcomes from before `until`. Values that make no difference are not written.
"""

import math
import re
from collections.abc import Mapping

from longshore.agents.reward.table import BEST, Pair, Rewards, Value
from longshore.api.names import NAME_PATTERN
from longshore.api.timestamps import format_timestamp, parse_timestamp

REWARDS = "rewards"
UNTIL = "until"
# The API server accepts no objects of more than 1 MiB.
_MOST_BYTES = 900_000
# Above this, a value with six digits equals the best.
_GOOD = BEST - 5e-7

_PATH = re.compile(
    rf"(?:nodes/(?P<node>{NAME_PATTERN})|types/(?P<type>{NAME_PATTERN})|pairs/(?P<of>{NAME_PATTERN})/(?P<on>{NAME_PATTERN}))"
)


def encoded(rewards: Rewards, *, now: float) -> dict[str, str]:
    """Return the data, with the newest values last. If there are too many, the oldest are left out."""
    lines: list[str] = []
    size = 0
    for pair, value in reversed(list(rewards)):
        if not _matters(rewards, pair, now):
            continue
        line = f"{_path(pair)} {value.value:.6f} {format_timestamp(value.time, 'milliseconds')}\n"
        size += len(line)
        if size > _MOST_BYTES:
            break
        lines.append(line)
    return {UNTIL: format_timestamp(now, "milliseconds"), REWARDS: "".join(reversed(lines))}


def decoded(data: Mapping[str, str]) -> tuple[dict[Pair, Value], float]:
    """Return the values, and the time up to which they include outcomes. Raises ValueError."""
    if not data:
        return {}, -math.inf
    if not data.keys() >= {REWARDS, UNTIL}:
        raise ValueError(f"{REWARDS} or {UNTIL} is missing")
    values = {}
    for number, line in enumerate(data[REWARDS].splitlines(), 1):
        words = line.split(" ")
        path = _PATH.fullmatch(words[0])
        if len(words) != 3 or path is None:
            raise ValueError(f"line {number} is not a reward: {line[:80]!r}")
        value = float(words[1])
        if not 0 <= value <= BEST:
            raise ValueError(f"line {number}: {value} is not between 0 and 1")
        pair = Pair(path["type"] or path["of"] or "", path["node"] or path["on"] or "")
        values[pair] = Value(value, _time(words[2]))
    return values, _time(data[UNTIL])


def _matters(rewards: Rewards, pair: Pair, now: float) -> bool:
    """Whether the value is worse than the best, or that of a pair that does well where others do not."""
    of = [pair]
    if pair.type and pair.node:
        of += [Pair(pair.type, ""), Pair("", pair.node)]
    values = (rewards.at(each, now) for each in of)
    return any(value is not None and value < _GOOD for value in values)


def _path(pair: Pair) -> str:
    if not pair.type:
        return f"nodes/{pair.node}"
    return f"pairs/{pair.type}/{pair.node}" if pair.node else f"types/{pair.type}"


def _time(text: str) -> float:
    at = parse_timestamp(text)
    if math.isnan(at):
        raise ValueError(f"{text[:80]!r} is not a time with a time zone")
    return at
