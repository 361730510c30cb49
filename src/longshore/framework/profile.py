"""Which plugins decide, in which order and with which weight, and how a tie is broken."""

from typing import Literal

import msgspec

from longshore.framework.points import Filter, Score

TieBreak = Literal["random", "first"]


class WeightedScore(msgspec.Struct, frozen=True):
    plugin: Score
    weight: int = 1


class Profile(msgspec.Struct, frozen=True):
    scheduler_name: str
    filters: tuple[Filter, ...]
    scores: tuple[WeightedScore, ...]
    tie_break: TieBreak = "random"
    seed: int = 0
