"""What nodes offer of one resource, as something to divide by.

Scores by resources divide by it time and again, while it changes only with a node: over all rows it is looked
at once, and kept as floats, by which arrays are divided several times more quickly.
"""

from typing import TYPE_CHECKING

import numpy as np

from longshore.api import Node
from longshore.cluster.arrays import Floats, Ints

if TYPE_CHECKING:
    from longshore.cluster.state import ClusterState

# A percentage that is no whole number is 1 / 2^46 away from one at least, if the whole is no more than 2^46;
# the nearest float is 1 / 2^47 away from the percentage at most, so rounding down gives the same.
_EXACT = 2**46


class Offer:
    """`amount` is an array for many nodes; `everywhere`: no node has 0 of it."""

    __slots__ = ("_divisor", "_exact", "amount", "everywhere")

    def __init__(self, amount: Ints) -> None:
        self.amount = amount
        self.everywhere = bool(amount.all())
        self._divisor: Floats = amount.astype(np.float64) if self.everywhere else np.maximum(amount, 1.0)
        self._exact = bool(amount.max(initial=0) <= _EXACT)

    def share(self, part: Ints) -> Floats:
        """0 where nothing is offered, if `part` is no more than `amount`; likewise below."""
        return part / self._divisor

    def percentage(self, part: Ints) -> Ints:
        """Rounded down."""
        if self._exact:
            return (part * 100.0 / self._divisor).astype(np.int64)
        return part * 100 // np.maximum(self.amount, 1)


class OfferOfOne:
    """The same for a single node, with plain numbers."""

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
    """Those of all rows, by column, until a node changes."""

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
