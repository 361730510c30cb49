"""Rewards as the data of a ConfigMap: a line for each value, for people to read, and until when they count.

    nodes/node-1 0.590490 2026-08-01T10:00:00.000Z
    types/web 0.590490 2026-08-01T10:00:00.000Z
    pairs/web/node-1 0.590490 2026-08-01T10:00:00.000Z

Outcomes from before `until` are in the values. What says no more than nothing at all would is not written.
"""

import math
import re
from collections.abc import Mapping

from longshore.agents.reward.table import BEST, Pair, Rewards, Value
from longshore.api.names import NAME_PATTERN
from longshore.api.timestamps import format_timestamp, parse_timestamp

REWARDS = "rewards"
UNTIL = "until"
# The API server takes no larger object than 1 MiB.
_MOST_BYTES = 900_000
# Closer to the best than six digits can tell.
_GOOD = BEST - 5e-7

_PATH = re.compile(
    rf"(?:nodes/(?P<node>{NAME_PATTERN})|types/(?P<type>{NAME_PATTERN})|pairs/(?P<of>{NAME_PATTERN})/(?P<on>{NAME_PATTERN}))"
)


def encoded(rewards: Rewards, *, now: float) -> dict[str, str]:
    """The newest come last; if there are too many, the oldest are left out."""
    lines: list[str] = []
    size = 0
    for pair, value in reversed(list(rewards)):
        if not _tells(rewards, pair, now):
            continue
        line = f"{_path(pair)} {value.value:.6f} {format_timestamp(value.time, 'milliseconds')}\n"
        size += len(line)
        if size > _MOST_BYTES:
            break
        lines.append(line)
    return {UNTIL: format_timestamp(now, "milliseconds"), REWARDS: "".join(reversed(lines))}


def decoded(data: Mapping[str, str]) -> tuple[dict[Pair, Value], float]:
    """The values, and until when outcomes are in them. Raises ValueError."""
    if not data:
        return {}, -math.inf
    if not data.keys() >= {REWARDS, UNTIL}:
        raise ValueError(f"{REWARDS} or {UNTIL} is missing in it")
    values = {}
    for number, line in enumerate(data[REWARDS].splitlines(), 1):
        words = line.split(" ")
        path = _PATH.fullmatch(words[0])
        if len(words) != 3 or path is None:
            raise ValueError(f"line {number} is no reward: {line[:80]!r}")
        value = float(words[1])
        if not 0 <= value <= BEST:
            raise ValueError(f"line {number}: {value} is not between 0 and 1")
        pair = Pair(path["type"] or path["of"] or "", path["node"] or path["on"] or "")
        values[pair] = Value(value, _time(words[2]))
    return values, _time(data[UNTIL])


def _tells(rewards: Rewards, pair: Pair, now: float) -> bool:
    """Whether it is not the best, or a pair that does well where others do not."""
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
        raise ValueError(f"{text[:80]!r} is no time with its zone")
    return at
