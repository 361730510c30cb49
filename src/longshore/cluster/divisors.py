"""The amounts of a resource that nodes offer, prepared for division.

Resource scores divide by these amounts in every attempt, but the amounts change only when a node does. For
all rows they are prepared once and kept as floats, since dividing arrays by floats is several times faster.
"""

from typing import TYPE_CHECKING

import numpy as np

from longshore.api import Node
from longshore.cluster.arrays import Floats, Ints

if TYPE_CHECKING:
    from longshore.cluster.state import ClusterState

# If the whole is at most 2^46, a percentage that is not an integer is at least 1 / 2^46 away from one. The
# nearest float is at most 1 / 2^47 away from the percentage, so rounding down gives the exact result.
_EXACT = 2**46


class Offer:
    """What many nodes offer of one resource. `everywhere`: all of them offer some."""

    __slots__ = ("_divisor", "_exact", "amount", "everywhere")

    def __init__(self, amount: Ints) -> None:
        self.amount = amount
        self.everywhere = bool(amount.all())
        self._divisor: Floats = amount.astype(np.float64) if self.everywhere else np.maximum(amount, 1.0)
        self._exact = bool(amount.max(initial=0) <= _EXACT)

    def share(self, part: Ints) -> Floats:
        """Return the part as a fraction of the amount; 0 where both are 0."""
        return part / self._divisor

    def percentage(self, part: Ints) -> Ints:
        """Return the part as a percentage of the amount, rounded down; 0 where both are 0."""
        if self._exact:
            return (part * 100.0 / self._divisor).astype(np.int64)
        return part * 100 // np.maximum(self.amount, 1)


class OfferOfOne:
    """What a single node offers of one resource, as a plain number."""

    __slots__ = ("amount",)

    def __init__(self, amount: int) -> None:
        self.amount = amount

    @property
    def everywhere(self) -> bool:
        return self.amount > 0

    def share(self, part: int) -> float:
        return part / (self.amount or 1)

    def percentage(self, part: int) -> int:
        return part * 100 // (self.amount or 1)


class Offers:
    """The offers of all rows, by column, cached until a node changes."""

    def __init__(self) -> None:
        self._version = -1
        self._kept: dict[int, Offer] = {}

    def of(self, cluster: "ClusterState", column: int) -> Offer:
        version = cluster.version(Node)
        if version != self._version:
            self._kept.clear()
            self._version = version
        offer = self._kept.get(column)
        if offer is None:
            offer = self._kept[column] = Offer(cluster.allocatable[column])
        return offer
