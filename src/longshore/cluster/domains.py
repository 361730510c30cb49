"""The rows grouped by topology domain, to sum up counts by row into counts by domain.

The counts of only some nodes may be included, but every node with the topology key is in a domain and gets
its sum.
"""

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from longshore.cluster.arrays import Bools, Floats, Ints, Rows
from longshore.cluster.labels import ABSENT

if TYPE_CHECKING:
    from longshore.cluster.state import ClusterState

Numbers = TypeVar("Numbers", Ints, Floats)

# The most `Domains` that are cached; beyond the limit the cache is emptied.
_SHARED = 256


class Domains:
    """The domains of a topology key, numbered from 0. Valid until a node changes (`cluster.version(Node)`).

    `ids[row]` is the number of the row's domain, or `outside` if the row has no node or its node lacks the
    key. `complete`: every node has the key.
    """

    __slots__ = ("_counting", "_populated", "complete", "ids", "key", "outside")

    def __init__(self, cluster: "ClusterState", key: str, counting: Bools | None = None) -> None:
        """Number the domains. `counting` is true for the rows whose counts are included; None is all."""
        column = cluster.labels.column(key)[: len(cluster.known)]
        # Values that nodes no longer have get no number.
        in_use = np.zeros(cluster.labels.domains(key) + 1, np.bool_)
        in_use[column] = True
        in_use[ABSENT] = False
        self.outside = int(np.count_nonzero(in_use))
        numbers = np.where(in_use, np.cumsum(in_use) - 1, self.outside)
        self.key = key
        self.ids: Ints = numbers[column]
        self.complete = int(np.count_nonzero(column != ABSENT)) == cluster.node_count
        self._counting = self.ids if counting is None else np.where(counting, self.ids, self.outside)
        # The domains with at least one row that is included; None if that is all of them.
        self._populated: Ints | None = None
        populated = np.bincount(self._counting, minlength=self.outside + 1)[:-1] > 0
        if not populated.all():
            self._populated = np.flatnonzero(populated)

    @property
    def populated(self) -> int:
        """The number of domains with at least one row that is included."""
        return self.outside if self._populated is None else len(self._populated)

    def counts(self, row: int) -> bool:
        return bool(self._counting[row] != self.outside)

    def sums(self, by_row: Ints) -> Ints:
        """Return the sum of each domain. The last element is 0; it belongs to `outside`."""
        ids = self._counting
        sums: Ints = np.bincount(ids, by_row[: len(ids)], self.outside + 1).astype(np.int64)
        sums[-1] = 0
        return sums

    def lowest(self, sums: Ints) -> int:
        """Return the smallest sum of a populated domain, or 0 if there are none."""
        if not self.populated:
            return 0
        return int((sums[:-1] if self._populated is None else sums[self._populated]).min())

    def at(self, sums: Numbers, rows: Rows) -> Numbers:
        """Return, for each of the rows, the sum of its domain."""
        return sums.take(self.ids[rows])

    def lacking(self, rows: Rows) -> Bools:
        """Return true for the rows whose node lacks the key."""
        return self.ids[rows] == self.outside  # type: ignore[no-any-return]


class DomainTable:
    """A cache of `Domains`, shared by everything that asks for the same key and the same rows."""

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
        """Empty the cache, because a node has changed."""
        self._domains.clear()
