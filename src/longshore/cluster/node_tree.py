"""The order in which nodes are examined when not all of them are: one node from each zone in turn."""

from collections.abc import Mapping
from itertools import chain, zip_longest

import numpy as np

from longshore.cluster.arrays import Ints

_REGION = "topology.kubernetes.io/region"
_ZONE = "topology.kubernetes.io/zone"


class NodeTree:
    """The rows by zone: zones in the order of their first node, and nodes in the order in which they came."""

    def __init__(self) -> None:
        self._zones: dict[tuple[str, str], dict[int, None]] = {}
        self._zone_of: dict[int, tuple[str, str]] = {}
        self._order: Ints | None = None

    @property
    def order(self) -> Ints:
        if self._order is None:
            turns = zip_longest(*self._zones.values())
            rows = (row for row in chain.from_iterable(turns) if row is not None)
            self._order = np.fromiter(rows, np.int64)
        return self._order

    def put(self, row: int, labels: Mapping[str, str]) -> None:
        zone = (labels.get(_REGION, ""), labels.get(_ZONE, ""))
        if self._zone_of.get(row) == zone:
            return
        self.remove(row)
        self._zone_of[row] = zone
        self._zones.setdefault(zone, {})[row] = None

    def remove(self, row: int) -> None:
        zone = self._zone_of.pop(row, None)
        if zone is not None:
            rows = self._zones[zone]
            del rows[row]
            if not rows:
                del self._zones[zone]
        self._order = None
