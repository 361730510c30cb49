"""The table of rewards: how well pods of a type did on a node, and how well nodes and types do in general.

A reward is between 0 and 1. A value is 1 without failures, and each outcome moves it a tenth of the way to
its own reward. Over time, values drift back to 1, halfway in each half-life, so that a repaired node is tried
again.
"""

import math
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

BEST = 1.0
_LEARNING = 0.1


class Pair(NamedTuple):
    """A type of pods and a node. An empty name stands for all of them."""

    type: str
    node: str


class Value(NamedTuple):
    """A value, and when it had it, in seconds since 1970."""

    value: float
    time: float


class Rewards:
    """The learned values, at most `most`: the least recently rewarded ones are dropped.

    With a `half_life` of 0, values do not drift.
    """

    def __init__(self, *, half_life: float, most: int) -> None:
        self.half_life = half_life
        self._most = most
        self._values: OrderedDict[Pair, Value] = OrderedDict()
        self._nodes_of: dict[str, dict[str, None]] = {}
        # The values that changed or were dropped, in order, and the number of older entries removed from
        # here.
        self._log: list[Pair] = []
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[tuple[Pair, Value]]:
        """Iterate over all values, the most recently rewarded ones last."""
        return iter(self._values.items())

    def get(self, pair: Pair) -> Value | None:
        """Return the stored value; `at` returns what it is at another time."""
        return self._values.get(pair)

    def at(self, pair: Pair, time: float) -> float | None:
        known = self._values.get(pair)
        return None if known is None else self._drifted(known, time)

    def nodes_of(self, type_: str) -> Iterable[str]:
        """Return the nodes on which pods of the type have been seen."""
        return self._nodes_of.get(type_, ())

    @property
    def position(self) -> int:
        """The position of a reader that has seen everything."""
        return self._dropped + len(self._log)

    def since(self, position: int) -> list[Pair] | None:
        """Return the values that changed or were dropped since the position; None if it is too long ago."""
        start = position - self._dropped
        return self._log[start:] if start >= 0 else None

    def reward(self, type_: str, node: str, reward: float, *, time: float) -> None:
        """Add the outcome of a pod of the type on the node."""
        for pair in (Pair(type_, node), Pair(type_, ""), Pair("", node)):
            known = self._values.get(pair, Value(BEST, time))
            # An outcome that is reported late counts at the time of the existing value.
            time_there = max(time, known.time)
            value = (1 - _LEARNING) * self._drifted(known, time_there) + _LEARNING * reward
            self._put(pair, Value(value, time_there))

    def load(self, values: Mapping[Pair, Value]) -> None:
        """Add stored values, in the order in which they were rewarded."""
        for pair, value in values.items():
            self._put(pair, value)

    def _put(self, pair: Pair, value: Value) -> None:
        self._values[pair] = value
        self._values.move_to_end(pair)
        self._note(pair)
        if pair.type and pair.node:
            self._nodes_of.setdefault(pair.type, {})[pair.node] = None
        while len(self._values) > self._most:
            self._forget(self._values.popitem(last=False)[0])

    def _note(self, pair: Pair) -> None:
        self._log.append(pair)
        if len(self._log) >= 2 * self._most:
            del self._log[: self._most]
            self._dropped += self._most

    def _forget(self, pair: Pair) -> None:
        self._note(pair)
        nodes = self._nodes_of.get(pair.type)
        if nodes is not None and pair.node:
            nodes.pop(pair.node, None)
            if not nodes:
                del self._nodes_of[pair.type]

    def _drifted(self, known: Value, time: float) -> float:
        if not self.half_life:
            return known.value
        age = max(0.0, time - known.time)
        return BEST - (BEST - known.value) * math.exp2(-age / self.half_life)
