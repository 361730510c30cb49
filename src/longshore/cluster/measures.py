"""Measurements of the nodes as columns, with one element for each row: NaN where the value is not known.

A measure has a name such as `cpu/mean`. Amounts are what is used, not what is free, in the units of the
resource's column: cpu in thousandths, memory in bytes. A value comes with the time at which it was measured.
A value without a time never expires.

A measurement does not show pods that came after it. Those count with their requests (`unseen`) until a later
measurement shows them. Most measurements are means over a period, in which a new pod shows gradually, so its
request counts less and less until `settle` seconds have passed.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from longshore.api import Node
from longshore.cluster.arrays import Bools, Floats, Ints
from longshore.cluster.resources import CPU, MEMORY

if TYPE_CHECKING:
    from longshore.cluster.nodes import Nodes
    from longshore.cluster.state import ClusterState

# A value, and when it was taken in seconds since 1970; NaN if that is not known.
Measured = tuple[float, float]
# Reads measures from a node object: all that the reader knows, with NaN for those that it does not find.
NodeReader = Callable[[Node], Mapping[str, Measured]]

# Percentiles of the observed usage, by their names in measures, such as `cpu/p95`.
PERCENTILES = {"p50": 50, "p90": 90, "p95": 95, "p99": 99}

MAX_AGE = 300.0
# The time until a new pod shows at all: it has to start, and measurements are taken at intervals.
SETTLE = 30.0

_UNKNOWN = float("nan")
# Values are limited to this, more than any node has. Larger numbers would overflow in calculations.
_HUGE = 2.0**63
# More than all pods of a node can request: with it, nothing is unseen.
_ALL = np.int64(2**62)
_RESOURCES = {"cpu": CPU, "memory": MEMORY}
_COUNTED = tuple(_RESOURCES.values())


class Measures:
    """The measures of one cluster. Rows whose values change are reported to its journal as changed nodes."""

    def __init__(self, cluster: "ClusterState") -> None:
        self._cluster = cluster
        self._places: dict[str, int] = {}
        self._size = 0
        self._values: Floats = np.full((0, 0), _UNKNOWN)
        self._times: Floats = np.full((0, 0), _UNKNOWN)
        # What the pods of each row requested at the last measurement, the time of it, and how much of their
        # requests the measurements show.
        self._asked: Ints = np.zeros((len(_COUNTED), 0), np.int64)
        self._asked_at: Floats = np.full(0, _UNKNOWN)
        self._seen: Ints = np.full((len(_COUNTED), 0), _ALL)
        self._readers: list[NodeReader] = []
        # The time of the last `put`: a node that changes comes without a time.
        self._now = _UNKNOWN
        # In seconds: the age at which values expire, and how long a new pod takes to show in full.
        self.max_age = MAX_AGE
        self.settle = SETTLE

    def resize(self, size: int) -> None:
        """Make room for `size` rows."""
        more = size - self._size
        self._size = size
        self._values = np.pad(self._values, ((0, 0), (0, more)), constant_values=_UNKNOWN)
        self._times = np.pad(self._times, ((0, 0), (0, more)), constant_values=_UNKNOWN)
        self._asked = np.pad(self._asked, ((0, 0), (0, more)))
        self._asked_at = np.pad(self._asked_at, (0, more), constant_values=_UNKNOWN)
        self._seen = np.pad(self._seen, ((0, 0), (0, more)), constant_values=_ALL)

    def __bool__(self) -> bool:
        return bool(self._places)

    @property
    def names(self) -> list[str]:
        return list(self._places)

    def value(self, name: str, nodes: "Nodes") -> Any:
        """Return the value for each of the nodes: NaN where it is not known or has expired."""
        return self._column(self._values, name, nodes)

    def time(self, name: str, nodes: "Nodes") -> Any:
        """Return when the value was measured, even if it has expired: NaN if it came without a time."""
        return self._column(self._times, name, nodes)

    def _column(self, table: Floats, name: str, nodes: "Nodes") -> Any:
        place = self._places.get(name)
        if isinstance(nodes.rows, int):
            return _UNKNOWN if place is None else table.item(place, nodes.rows)
        return np.full(len(nodes), _UNKNOWN) if place is None else nodes.take(table[place])

    def unseen(self, nodes: "Nodes", column: int) -> Any:
        """Return the requests for cpu or memory of pods that the measurements do not show yet."""
        place, rows = _COUNTED.index(column), nodes.rows
        seen = self._seen.item(place, rows) if isinstance(rows, int) else nodes.take(self._seen[place])
        missing = nodes.requested[column] - seen
        return missing * (missing > 0)

    def read_nodes(self, reader: NodeReader) -> None:
        """Read measures from all nodes, now and whenever one changes. Adding a reader twice is fine."""
        if reader in self._readers:
            return
        self._readers.append(reader)
        found: dict[str, list[tuple[int, Measured]]] = {}
        for row in np.flatnonzero(self._cluster.known).tolist():
            node = self._cluster.node(row)
            if node is not None:
                for name, measured in reader(node).items():
                    found.setdefault(name, []).append((row, measured))
        self._put(found, self._now)

    # Updates.

    def node_changed(self, row: int, node: Node) -> None:
        """Read the measures from a node that is new or has changed."""
        for reader in self._readers:
            self._put({name: [(row, measured)] for name, measured in reader(node).items()}, self._now)

    def node_gone(self, row: int) -> None:
        self._values[:, row] = self._times[:, row] = self._asked_at[row] = _UNKNOWN
        self._seen[:, row] = _ALL

    def pod_gone(self, row: int, requests: Mapping[str, int]) -> None:
        """Subtract the requests of a pod that is gone, so that a new pod does not count as measured instead.

        The pod is assumed to be part of the last measurement. If it was not, some pods count twice for a
        while.
        """
        for place, resource in enumerate(_RESOURCES):
            left = self._asked.item(place, row) - requests.get(resource, 0)
            self._asked[place, row] = max(left, 0)

    def put(self, values: Mapping[str, Mapping[str, Measured]], *, now: float) -> int:
        """Store values by measure and node. Return how many rows changed, because of new or expired values.

        Unknown nodes are ignored. NaN and infinite values count as not known.
        """
        self._now = now
        rows = {
            name: [
                (row, measured)
                for node, measured in by_node.items()
                if (row := self._cluster.row(node)) is not None
            ]
            for name, by_node in values.items()
        }
        return len(self._put(rows, now)) + len(self._grow_old(now))

    def _put(self, values: Mapping[str, Iterable[tuple[int, Measured]]], now: float) -> Ints:
        self._make_room(values)
        changed: Bools = np.zeros(self._size, np.bool_)
        for name, found_there in values.items():
            entries = list(found_there)
            if not entries:
                continue
            rows = np.array([row for row, _ in entries])
            found, times = np.array([measured for _, measured in entries], np.float64).T
            # A time far in the future is rejected too: such a value would take too long to expire.
            of_this_time = ~(np.abs(now - times) > self.max_age)
            found = np.where(np.isfinite(found) & of_this_time, found, _UNKNOWN)
            found = np.clip(found, -_HUGE, _HUGE)
            place = self._places[name]
            before = self._values[place, rows]
            changed[rows] |= (found != before) & ~(np.isnan(found) & np.isnan(before))
            self._values[place, rows] = found
            self._times[place, rows] = times
            if name.endswith("/mean"):
                known = ~np.isnan(found)
                taken = np.where(times > now, now, times)
                changed[rows[known]] |= self._cover(rows[known], taken[known], now)
        return self._tell(np.flatnonzero(changed))

    def _cover(self, rows: Ints, times: Floats, now: float) -> Bools:
        """Update what the measurements show: the pods that were there at a previous one, if long ago."""
        timed = ~np.isnan(times)
        gap = times - self._asked_at[rows]
        first = timed & np.isnan(gap)
        later = timed & (gap >= min(self.settle, SETTLE))
        asked = self._cluster.requested[list(_COUNTED)][:, rows]
        there, before = self._asked[:, rows], self._seen[:, rows]
        if self.settle > SETTLE:
            # On average, this is the delay of a mean over that period.
            share = np.where(later, np.minimum(gap / (self.settle / 2), 1.0), 0.0)
            there = np.where(share < 1, before + np.ceil((there - before) * share).astype(np.int64), there)
        seen = np.where(later, there, np.where(first, asked, before))
        seen = np.where(timed, np.minimum(seen, asked), _ALL)
        move = first | later
        self._asked[:, rows] = np.where(move, asked, self._asked[:, rows])
        # Between the measurement and its arrival here, more pods may have come.
        self._asked_at[rows] = np.where(move, np.fmax(times, now), self._asked_at[rows])
        self._seen[:, rows] = seen
        changed: Bools = (seen != before).any(axis=0)
        return changed

    def _grow_old(self, now: float) -> Ints:
        """Forget values that are too old, and values from the future.

        The latter were read before the first `put` told the time, or before the clock was set back.
        """
        old = (np.abs(now - self._times) > self.max_age) & ~np.isnan(self._values)
        self._values[old] = _UNKNOWN
        self._asked_at[self._asked_at > now] = _UNKNOWN
        return self._tell(np.flatnonzero(old.any(axis=0)))

    def _tell(self, rows: Ints) -> Ints:
        for row in rows.tolist():
            self._cluster.journal.node_changed(row)
        return rows

    def _make_room(self, names: Iterable[str]) -> None:
        for name in names:
            self._places.setdefault(name, len(self._places))
        more = len(self._places) - len(self._values)
        if more:
            self._values = np.pad(self._values, ((0, more), (0, 0)), constant_values=_UNKNOWN)
            self._times = np.pad(self._times, ((0, more), (0, 0)), constant_values=_UNKNOWN)
