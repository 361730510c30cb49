"""Nodes of the cluster as plugins see them.

The quantities of `Nodes` are arrays with one element for each node. The quantities of `OneNode`, a single
node, are plain numbers, and it can also show the node as it would be with other pods on it. Code that uses
only operators (`+`, `//`, `<=`, `&`, …) works with both.
"""

from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from longshore.api import Node
from longshore.cluster.arrays import Bools, Ints, Rows
from longshore.cluster.divisors import Offer, OfferOfOne
from longshore.cluster.pod_info import PodInfo
from longshore.cluster.ports import HostPort, clash, host_ports

if TYPE_CHECKING:
    from longshore.cluster.state import ClusterState


class _Picked:
    """Some rows of the columns; each column is selected when it is used."""

    __slots__ = ("_columns", "_rows")

    def __init__(self, columns: Ints, rows: Ints) -> None:
        self._columns = columns
        self._rows = rows

    def __getitem__(self, column: int) -> Ints:
        picked: Ints = self._columns[column][self._rows]
        return picked

    def __len__(self) -> int:
        return len(self._columns)


# Indexed by the column of a resource. The result is an array for many nodes, and a number for one.
Columns = Ints | list[int] | _Picked | Any


class Nodes:
    """Rows of the cluster. A row may have no node (see `cluster.known`): its results are ignored."""

    def __init__(self, cluster: "ClusterState", rows: Rows) -> None:
        self.cluster = cluster
        # The index into the columns of the cluster: `nodes.take(column)` is `column[nodes.rows]`.
        self.rows = rows

    def take(self, column: Any) -> Any:
        """Return the elements of a column of the cluster that belong to these nodes."""
        return column[self.rows]

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def numbers(self) -> Ints:
        """The row of each of these nodes."""
        return np.arange(len(self.cluster.known))[self.rows]

    @property
    def names(self) -> list[str]:
        """The names of these nodes; empty for a row that is not in use."""
        return [self.cluster.node_name(row) for row in self.numbers.tolist()]

    @property
    def allocatable(self) -> Columns:
        """`allocatable[column]` is what the nodes offer."""
        return self._pick(self.cluster.allocatable)

    @property
    def requested(self) -> Columns:
        """`requested[column]` is what the pods on the nodes request; `requested[PODS]` is their number."""
        return self._pick(self.cluster.requested)

    @property
    def nonzero_requested(self) -> Columns:
        """The requests for cpu and memory, in this order, as scoring counts them.

        A container without a request counts with a default amount.
        """
        return self._pick(self.cluster.nonzero_requested)

    def free(self, resource: str) -> Any:
        """Return how much of a resource is left, such as `cpu` (in thousandths) or `example.com/gpu`."""
        column = self.cluster.column(resource)
        return 0 if column is None else self.allocatable[column] - self.requested[column]

    def offer(self, column: int) -> Offer | OfferOfOne:
        """Return what the nodes offer of a resource, prepared for division."""
        if isinstance(self.rows, slice):
            return self.cluster.offers.of(self.cluster, column)
        return Offer(np.asarray(self.allocatable[column]))

    def _pick(self, columns: Ints) -> Columns:
        rows = self.rows
        return columns[:, rows] if isinstance(rows, slice) else _Picked(columns, rows)  # type: ignore[arg-type]

    def ports_clash(self, wanted: Collection[HostPort]) -> Bools | bool:
        """Whether at least one of the wanted host ports is in use."""
        return self.cluster.ports.clashes(wanted, len(self.cluster.known))[self.rows]


class SelectedNodes(Nodes):
    """The rows that a mask selects. The list of rows is computed on first use."""

    def __init__(self, cluster: "ClusterState", mask: Bools) -> None:
        self.cluster = cluster
        self.mask = mask

    @cached_property
    def rows(self) -> Rows:  # type: ignore[override]
        return np.flatnonzero(self.mask)


class OneNode(Nodes):
    """A single node with the pods on it, or as it would be with other pods."""

    def __init__(self, cluster: "ClusterState", row: int) -> None:
        super().__init__(cluster, row)
        self.row = row
        self._pods: list[PodInfo] | None = None
        self._allocatable, self._requested, self._nonzero = cluster.amounts(row)

    @property
    def name(self) -> str:
        return self.cluster.node_name(self.row)

    @property
    def node(self) -> Node:
        node = self.cluster.node(self.row)
        if node is None:
            raise ValueError(f"row {self.row} has no node")
        return node

    @property
    def labels(self) -> dict[str, str]:
        return self.node.metadata.labels

    @property
    def pods(self) -> list[PodInfo]:
        if self._pods is None:
            self._pods = list(self.cluster.pods_on(self.row))
        return self._pods

    @property
    def numbers(self) -> Ints:
        return np.array([self.row])

    @property
    def allocatable(self) -> list[int]:
        return self._allocatable

    @property
    def requested(self) -> list[int]:
        return self._requested

    @property
    def nonzero_requested(self) -> list[int]:
        return self._nonzero

    def offer(self, column: int) -> OfferOfOne:
        return OfferOfOne(self._allocatable[column])

    def ports_clash(self, wanted: Collection[HostPort]) -> bool:
        return clash(wanted, (port for info in self.pods for port in host_ports(info.pod)))

    def add(self, info: PodInfo) -> None:
        """Show the node as it would be with this pod added."""
        self._change(info, 1)
        self.pods.append(info)

    def remove(self, info: PodInfo) -> None:
        """Show the node as it would be without this pod."""
        self._change(info, -1)
        uid = info.pod.metadata.uid
        self._pods = [other for other in self.pods if other.pod.metadata.uid != uid]

    def as_nodes(self) -> Nodes:
        """Return this node, with the changes made to it, as arrays of one element."""
        return _ArrayOfOne(self)

    def copy(self) -> "OneNode":
        """Return a copy, with the changes made so far, that can be changed separately."""
        other = OneNode(self.cluster, self.row)
        other._pods = list(self.pods)
        other._requested = list(self._requested)
        other._nonzero = list(self._nonzero)
        return other

    def _change(self, info: PodInfo, sign: int) -> None:
        requested, nonzero = self._requested, self._nonzero
        for resource, amount in info.requests.items():
            column = self.cluster.column(resource)
            # No node offers a resource that has no column, so a pod that requests it fits on no node.
            if column is not None:
                requested[column] += sign * amount
        for place, amount in enumerate(info.nonzero):
            nonzero[place] += sign * amount


class _ArrayOfOne(Nodes):
    def __init__(self, one: OneNode) -> None:
        super().__init__(one.cluster, np.array([one.row]))
        self._one = one

    @property
    def requested(self) -> Columns:
        return np.array(self._one.requested)[:, np.newaxis]

    @property
    def nonzero_requested(self) -> Columns:
        return np.array(self._one.nonzero_requested)[:, np.newaxis]

    def ports_clash(self, wanted: Collection[HostPort]) -> Bools:
        return np.array([self._one.ports_clash(wanted)])
