"""Rows by the domain of a topology key that their node is in: what is counted by row, summed up by domain.

Only some nodes may count, but every node with the key is in a domain and can be told its sum.
"""

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from longshore.cluster.arrays import Bools, Floats, Ints, Rows
from longshore.cluster.labels import ABSENT

if TYPE_CHECKING:
    from longshore.cluster.state import ClusterState

Numbers = TypeVar("Numbers", Ints, Floats)

# Domains kept to be shared; past the limit all are forgotten and made again when asked for.
_SHARED = 256


class Domains:
    """The domains of a key, numbered from 0, as they are until a node changes (`cluster.version(Node)`).

    `ids[row]` is the number of the row's domain, and `outside` for a row whose node lacks the key or that has
    no node. `complete`: no node lacks it.
    """

    __slots__ = ("_counting", "_populated", "complete", "ids", "key", "outside")

    def __init__(self, cluster: "ClusterState", key: str, counting: Bools | None = None) -> None:
        """`counting`: the rows that count, if not all of those with the key do."""
        column = cluster.labels.column(key)[: len(cluster.known)]
        # Values that no node has any more get no number.
        in_use = np.zeros(cluster.labels.domains(key) + 1, np.bool_)
        in_use[column] = True
        in_use[ABSENT] = False
        self.outside = int(np.count_nonzero(in_use))
        numbers = np.where(in_use, np.cumsum(in_use) - 1, self.outside)
        self.key = key
        self.ids: Ints = numbers[column]
        self.complete = int(np.count_nonzero(column != ABSENT)) == cluster.node_count
        self._counting = self.ids if counting is None else np.where(counting, self.ids, self.outside)
        # The domains with at least one row that counts; None if that is all of them.
        self._populated: Ints | None = None
        populated = np.bincount(self._counting, minlength=self.outside + 1)[:-1] > 0
        if not populated.all():
            self._populated = np.flatnonzero(populated)

    @property
    def populated(self) -> int:
        """How many domains have a row that counts."""
        return self.outside if self._populated is None else len(self._populated)

    def counts(self, row: int) -> bool:
        return bool(self._counting[row] != self.outside)

    def sums(self, by_row: Ints) -> Ints:
        """The sum of each domain, and 0 as the last element, which stands for `outside`."""
        ids = self._counting
        sums: Ints = np.bincount(ids, by_row[: len(ids)], self.outside + 1).astype(np.int64)
        sums[-1] = 0
        return sums

    def lowest(self, sums: Ints) -> int:
        """The smallest sum of a populated domain; 0 if there is none."""
        if not self.populated:
            return 0
        return int((sums[:-1] if self._populated is None else sums[self._populated]).min())

    def at(self, sums: Numbers, rows: Rows) -> Numbers:
        """The sum of the domain that each of the rows is in."""
        return sums.take(self.ids[rows])

    def lacking(self, rows: Rows) -> Bools:
        """Where the key is absent."""
        return self.ids[rows] == self.outside  # type: ignore[no-any-return]


class DomainTable:
    """The domains that someone asked for; who asks for the same ones shares them."""

    def __init__(self, cluster: "ClusterState") -> None:
        self._cluster = cluster
        self._domains: dict[tuple[str, bytes | None], Domains] = {}

    def of(self, key: str, counting: Bools | None = None) -> Domains:
        wanted = (key, None if counting is None else counting.tobytes())
        domains = self._domains.get(wanted)
        if domains is None:
            if len(self._domains) >= _SHARED:
                self._domains.clear()
            domains = self._domains[wanted] = Domains(self._cluster, key, counting)
        return domains

    def forget(self) -> None:
        """A node has changed."""
        self._domains.clear()
