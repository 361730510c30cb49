"""What was measured on the nodes, in columns: one element for each row, NaN where nothing is known.

A measure goes by a name such as `cpu/mean`. Amounts are in the units of the resource's column, cpu in
thousandths and memory in bytes, and are of what is used, not of what is free. Values come with the time they
were taken at, or without one, if whoever wrote them did not say; those never grow old.

What a measurement cannot show yet are pods that came after it. They count with their requests (`unseen`)
until a measurement that was taken after they were first there; and since most are means over a while, which
show a pod little by little, less and less of them counts until `settle` seconds are over.
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
# What a node says of itself: all measures that the reader knows, NaN for those that it does not find.
NodeReader = Callable[[Node], Mapping[str, Measured]]

# Of what was seen, by the names that they have in measures, as in `cpu/p95`.
PERCENTILES = {"p50": 50, "p90": 90, "p95": 95, "p99": 99}

MAX_AGE = 300.0
# Until a new pod shows at all: it starts, and is measured now and then.
SETTLE = 30.0

_UNKNOWN = float("nan")
# No node has so much of anything: with larger numbers arithmetic would overflow.
_HUGE = 2.0**63
# More than all pods of a node can ask for: nothing is unseen.
_ALL = np.int64(2**62)
_RESOURCES = {"cpu": CPU, "memory": MEMORY}
_COUNTED = tuple(_RESOURCES.values())


class Measures:
    """Of one cluster. Rows whose values changed are told to its journal as changed nodes."""

    def __init__(self, cluster: "ClusterState") -> None:
        self._cluster = cluster
        self._places: dict[str, int] = {}
        self._size = 0
        self._values: Floats = np.full((0, 0), _UNKNOWN)
        self._times: Floats = np.full((0, 0), _UNKNOWN)
        # What the pods of each row asked for when it was last measured, and when that was; and how much of
        # what they ask for is in the measurements.
        self._asked: Ints = np.zeros((len(_COUNTED), 0), np.int64)
        self._asked_at: Floats = np.full(0, _UNKNOWN)
        self._seen: Ints = np.full((len(_COUNTED), 0), _ALL)
        self._readers: list[NodeReader] = []
        # The latest time that anyone told: nodes that change bring none with them.
        self._now = _UNKNOWN
        # In seconds: values that are older are as good as none, and how long pods take to show in full.
        self.max_age = MAX_AGE
        self.settle = SETTLE

    def resize(self, size: int) -> None:
        """There are rows for so many nodes."""
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
        """Of each of the nodes; NaN where it is not known, or has grown too old."""
        return self._column(self._values, name, nodes)

    def time(self, name: str, nodes: "Nodes") -> Any:
        """When the value was taken, also if it is too old by now; NaN if it was never said."""
        return self._column(self._times, name, nodes)

    def _column(self, table: Floats, name: str, nodes: "Nodes") -> Any:
        place = self._places.get(name)
        if isinstance(nodes.rows, int):
            return _UNKNOWN if place is None else table.item(place, nodes.rows)
        return np.full(len(nodes), _UNKNOWN) if place is None else nodes.take(table[place])

    def unseen(self, nodes: "Nodes", column: int) -> Any:
        """What pods ask for that the measurements do not show yet; of cpu or memory."""
        place, rows = _COUNTED.index(column), nodes.rows
        seen = self._seen.item(place, rows) if isinstance(rows, int) else nodes.take(self._seen[place])
        missing = nodes.requested[column] - seen
        return missing * (missing > 0)

    def read_nodes(self, reader: NodeReader) -> None:
        """Have the nodes themselves read, those that are known and those to come; once by each reader."""
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

    # What changes it.

    def node_changed(self, row: int, node: Node) -> None:
        """A node is new or has changed: what it says of itself counts."""
        for reader in self._readers:
            self._put({name: [(row, measured)] for name, measured in reader(node).items()}, self._now)

    def node_gone(self, row: int) -> None:
        self._values[:, row] = self._times[:, row] = self._asked_at[row] = _UNKNOWN
        self._seen[:, row] = _ALL

    def pod_gone(self, row: int, requests: Mapping[str, int]) -> None:
        """What it asked for is not in the next measurement: another pod that asks for it must not hide there.

        It is taken to be one of those that were there at the last one. If not, pods count twice for a while.
        """
        for place, resource in enumerate(_RESOURCES):
            left = self._asked.item(place, row) - requests.get(resource, 0)
            self._asked[place, row] = max(left, 0)

    def put(self, values: Mapping[str, Mapping[str, Measured]], *, now: float) -> int:
        """Values by measure and node, at a time; the number of rows that changed by them, or by their age.

        Nodes that are not known are passed over, and so is what is no number or infinite: that is as good as
        nothing.
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
            # What is yet to come would be believed until then, and longer.
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
        """Measurements were taken: pods that were there at the one before, long enough ago, are in them."""
        timed = ~np.isnan(times)
        gap = times - self._asked_at[rows]
        first = timed & np.isnan(gap)
        later = timed & (gap >= min(self.settle, SETTLE))
        asked = self._cluster.requested[list(_COUNTED)][:, rows]
        there, before = self._asked[:, rows], self._seen[:, rows]
        if self.settle > SETTLE:
            # On the average as late as in a mean over that long.
            share = np.where(later, np.minimum(gap / (self.settle / 2), 1.0), 0.0)
            there = np.where(share < 1, before + np.ceil((there - before) * share).astype(np.int64), there)
        seen = np.where(later, there, np.where(first, asked, before))
        seen = np.where(timed, np.minimum(seen, asked), _ALL)
        move = first | later
        self._asked[:, rows] = np.where(move, asked, self._asked[:, rows])
        # Pods may have come after it was taken, until it was told.
        self._asked_at[rows] = np.where(move, np.fmax(times, now), self._asked_at[rows])
        self._seen[:, rows] = seen
        changed: Bools = (seen != before).any(axis=0)
        return changed

    def _grow_old(self, now: float) -> Ints:
        """Values whose time is too long ago are known no longer.

        Nor are those yet to come: they were read before anyone told the time, or the clock was set back.
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
