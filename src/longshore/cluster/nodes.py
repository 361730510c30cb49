"""Some nodes of the cluster as plugins see them: every quantity with one element for each of them.

`Nodes` stands for many, and its quantities are arrays. `OneNode` stands for a single one: its quantities are
plain numbers, and it can show the node as it would be with other pods on it. Code that uses operators only
(`+`, `//`, `<=`, `&`, …) works on both alike.
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
    """Columns of which only some rows are wanted: each is picked when it is asked for."""

    __slots__ = ("_columns", "_rows")

    def __init__(self, columns: Ints, rows: Ints) -> None:
        self._columns = columns
        self._rows = rows

    def __getitem__(self, column: int) -> Ints:
        picked: Ints = self._columns[column][self._rows]
        return picked

    def __len__(self) -> int:
        return len(self._columns)


# Indexed by the column of a resource: an array for many nodes, a number for one.
Columns = Ints | list[int] | _Picked | Any


class Nodes:
    """Rows of the cluster. Some may have no node (`cluster.known` tells): answers about them are dropped."""

    def __init__(self, cluster: "ClusterState", rows: Rows) -> None:
        self.cluster = cluster
        # What columns of the cluster are indexed by: `nodes.take(column)` is `column[nodes.rows]`.
        self.rows = rows

    def take(self, column: Any) -> Any:
        """The part of a column of the cluster that is about these nodes."""
        return column[self.rows]

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def numbers(self) -> Ints:
        """The row of each of these nodes."""
        return np.arange(len(self.cluster.known))[self.rows]

    @property
    def names(self) -> list[str]:
        """The names of these nodes; empty for a row without one."""
        return [self.cluster.node_name(row) for row in self.numbers.tolist()]

    @property
    def allocatable(self) -> Columns:
        """`allocatable[column]`: what the nodes offer."""
        return self._pick(self.cluster.allocatable)

    @property
    def requested(self) -> Columns:
        """`requested[column]`: what the pods on the nodes ask for; `requested[PODS]` is their number."""
        return self._pick(self.cluster.requested)

    @property
    def nonzero_requested(self) -> Columns:
        """cpu and memory, in this order, as scoring sees them: a container that asks for none uses some."""
        return self._pick(self.cluster.nonzero_requested)

    def free(self, resource: str) -> Any:
        """What is left of a resource such as `cpu`, in thousandths, or `example.com/gpu`."""
        column = self.cluster.column(resource)
        return 0 if column is None else self.allocatable[column] - self.requested[column]

    def offer(self, column: int) -> Offer | OfferOfOne:
        """What the nodes offer of a resource, to divide by."""
        if isinstance(self.rows, slice):
            return self.cluster.offers.of(self.cluster, column)
        return Offer(np.asarray(self.allocatable[column]))

    def _pick(self, columns: Ints) -> Columns:
        rows = self.rows
        return columns[:, rows] if isinstance(rows, slice) else _Picked(columns, rows)  # type: ignore[arg-type]

    def ports_clash(self, wanted: Collection[HostPort]) -> Bools | bool:
        """Whether one of the wanted host ports is taken."""
        return self.cluster.ports.clashes(wanted, len(self.cluster.known))[self.rows]


class SelectedNodes(Nodes):
    """The rows that a mask selects. They are listed only if someone asks for them."""

    def __init__(self, cluster: "ClusterState", mask: Bools) -> None:
        self.cluster = cluster
        self.mask = mask

    @cached_property
    def rows(self) -> Rows:  # type: ignore[override]
        return np.flatnonzero(self.mask)


class OneNode(Nodes):
    """A single node, with the pods on it, or as it would be with others."""

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
        """Imagine one more pod on the node."""
        self._change(info, 1)
        self.pods.append(info)

    def remove(self, info: PodInfo) -> None:
        """Imagine the node without the pod."""
        self._change(info, -1)
        uid = info.pod.metadata.uid
        self._pods = [other for other in self.pods if other.pod.metadata.uid != uid]

    def as_nodes(self) -> Nodes:
        """The same, imagined pods included, for code that works on arrays: each has one element."""
        return _ArrayOfOne(self)

    def copy(self) -> "OneNode":
        """The same node, to imagine something else about."""
        other = OneNode(self.cluster, self.row)
        other._pods = list(self.pods)
        other._requested = list(self._requested)
        other._nonzero = list(self._nonzero)
        return other

    def _change(self, info: PodInfo, sign: int) -> None:
        requested, nonzero = self._requested, self._nonzero
        for resource, amount in info.requests.items():
            column = self.cluster.column(resource)
            # No node offers a resource that has no column, and a pod that asks for it fits nowhere.
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
