"""The cluster as rows of numbers: what each node offers and what the pods on it ask for.

A row belongs to a node's name rather than to the node. Pods may be bound to a node that is not known yet, or
is known no longer: their row waits without a node, not schedulable, and what they ask for counts as soon as
the node appears. A row is given to another name when neither a node nor a pod is left in it, so nothing may
depend on the order of rows.
"""

import hashlib
from collections.abc import Iterator

import msgspec
import numpy as np
import numpy.typing as npt

from longshore.api import Node, Pod
from longshore.cluster.podinfo import PodInfo
from longshore.cluster.resources import FIXED_COLUMNS, PODS, allocatable_amounts

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Hashes = npt.NDArray[np.uint64]

_FIRST_ROWS = 64
_FIRST_COLUMNS = 8


class _Placed(msgspec.Struct, frozen=True, gc=False):
    """A pod that takes room in a row, with the very numbers that were added there."""

    info: PodInfo
    row: int
    assumed: bool


class ClusterState:
    """Nodes, the pods on them, and the pods assumed to be on them because their bind is under way.

    Pods go by `namespace/name`, of which the API server holds one at a time; the UID tells a pod from its
    successor of the same name. Every method takes what the watch may tell, in any order, and more than once.
    """

    def __init__(self) -> None:
        self._columns = {name: column for column, name in enumerate(FIXED_COLUMNS)}
        self._allocatable: Ints = np.zeros((_FIRST_COLUMNS, _FIRST_ROWS), np.int64)
        self._requested: Ints = np.zeros((_FIRST_COLUMNS, _FIRST_ROWS), np.int64)
        self._nonzero: Ints = np.zeros((2, _FIRST_ROWS), np.int64)
        self._known: Bools = np.zeros(_FIRST_ROWS, np.bool_)
        self._name_hash: Hashes = np.zeros(_FIRST_ROWS, np.uint64)
        self._name_rank: Ints | None = None
        self._rows: dict[str, int] = {}
        self._names: list[str] = []
        self._nodes: list[Node | None] = []
        self._free_rows: list[int] = []
        self._placed: dict[str, _Placed] = {}
        self._node_count = 0
        self._room_made = 0

    # What plugins and the engine read. Arrays have one element for each row, and are not to be written to.

    @property
    def allocatable(self) -> Ints:
        """`allocatable[column]`: what the nodes offer; 0 in rows without a node."""
        return self._allocatable[:, : len(self._names)]

    @property
    def requested(self) -> Ints:
        """`requested[column]`: what the pods of each row ask for; `requested[PODS]` is their number."""
        return self._requested[:, : len(self._names)]

    @property
    def nonzero_requested(self) -> Ints:
        """cpu and memory, in this order, as scoring sees them: a container that asks for none uses some."""
        return self._nonzero[:, : len(self._names)]

    @property
    def known(self) -> Bools:
        """Whether the row has a node: the rows that count."""
        return self._known[: len(self._names)]

    @property
    def name_hash(self) -> Hashes:
        """A number for each row that depends on the node's name alone."""
        return self._name_hash[: len(self._names)]

    @property
    def name_rank(self) -> Ints:
        """The place of each row's name among all names in order."""
        if self._name_rank is None:
            rank = np.empty(len(self._names), np.int64)
            rank[sorted(range(len(self._names)), key=self._names.__getitem__)] = np.arange(len(self._names))
            self._name_rank = rank
        return self._name_rank

    @property
    def node_count(self) -> int:
        return self._node_count

    @property
    def room_made(self) -> int:
        """Grows whenever a change may have made room for a pod that found none."""
        return self._room_made

    def column(self, resource: str) -> int | None:
        """The column of the resource; None when no node offers it and no placed pod asks for it."""
        return self._columns.get(resource)

    def node_name(self, row: int) -> str:
        return self._names[row]

    def row(self, node: str) -> int | None:
        return self._rows.get(node)

    def node_of(self, pod: Pod) -> str | None:
        """Where the pod is, or is assumed to be."""
        placed = self._find(pod)
        return None if placed is None else self._names[placed.row]

    def is_assumed(self, pod: Pod) -> bool:
        placed = self._find(pod)
        return placed is not None and placed.assumed

    def pods(self) -> Iterator[Pod]:
        """All pods that take room, the assumed ones too."""
        return (placed.info.pod for placed in self._placed.values())

    # What changes it.

    def add_node(self, node: Node) -> None:
        """A node is new or has changed."""
        row = self._row_for(node.metadata.name)
        old = self._nodes[row]
        self._nodes[row] = node
        if old is None:
            self._known[row] = True
            self._node_count += 1
        elif _same_for_scheduling(old, node):
            return
        amounts = allocatable_amounts(node.status.allocatable)
        columns = [self._intern(resource) for resource in amounts]
        self._allocatable[:, row] = 0
        self._allocatable[columns, row] = list(amounts.values())
        self._room_made += 1

    def remove_node(self, name: str) -> None:
        """A node is gone. Its pods, if any are left, keep the row until they go."""
        row = self._rows.get(name)
        if row is None or self._nodes[row] is None:
            return
        self._nodes[row] = None
        self._known[row] = False
        self._allocatable[:, row] = 0
        self._node_count -= 1
        self._free_if_empty(row)

    def add_pod(self, pod: Pod) -> None:
        """The watch tells of a bound pod: new, changed, on the node it was assumed on, or on another one."""
        if pod.terminal or not pod.spec.node_name:
            self.remove_pod(pod)
            return
        info = PodInfo.of(pod)
        row = self._row_for(pod.spec.node_name)
        placed = self._placed.get(pod.key)
        self._placed[pod.key] = _Placed(info, row, assumed=False)
        if placed is not None and placed.row == row and _same_amounts(placed.info, info):
            return
        self._count(info, row, 1)
        if placed is not None:
            self._take_out(placed)
            self._room_made += 1

    def remove_pod(self, pod: Pod) -> None:
        """The pod is gone or has ended; a successor of the same name is left alone."""
        placed = self._find(pod)
        if placed is not None:
            del self._placed[pod.key]
            self._take_out(placed)
            self._room_made += 1

    def remove_predecessor(self, pod: Pod) -> None:
        """The pod exists, so one of the same name with another UID no longer does, told or not."""
        placed = self._placed.get(pod.key)
        if placed is not None and placed.info.pod.metadata.uid != pod.metadata.uid:
            self.remove_pod(placed.info.pod)

    def assume(self, info: PodInfo, node: str) -> None:
        """Count the pod on the node before the API server has heard of it."""
        self.remove_pod(info.pod)
        row = self._row_for(node)
        self._placed[info.pod.key] = _Placed(info, row, assumed=True)
        self._count(info, row, 1)

    def forget(self, pod: Pod) -> None:
        """The bind of an assumed pod came to nothing. A pod that the watch has confirmed stays."""
        if self.is_assumed(pod):
            self.remove_pod(pod)

    def _find(self, pod: Pod) -> _Placed | None:
        placed = self._placed.get(pod.key)
        return placed if placed is not None and placed.info.pod.metadata.uid == pod.metadata.uid else None

    def _take_out(self, placed: _Placed) -> None:
        self._count(placed.info, placed.row, -1)
        self._free_if_empty(placed.row)

    def _count(self, info: PodInfo, row: int, sign: int) -> None:
        for resource, amount in info.requests.items():
            # Interned first: that may replace the array.
            column = self._intern(resource)
            self._requested[column, row] += sign * amount
        cpu, memory = info.nonzero
        self._nonzero[0, row] += sign * cpu
        self._nonzero[1, row] += sign * memory

    def _intern(self, resource: str) -> int:
        column = self._columns.setdefault(resource, len(self._columns))
        if column == len(self._allocatable):
            self._allocatable = np.concatenate([self._allocatable, np.zeros_like(self._allocatable)])
            self._requested = np.concatenate([self._requested, np.zeros_like(self._requested)])
        return column

    def _row_for(self, name: str) -> int:
        row = self._rows.get(name)
        if row is not None:
            return row
        if self._free_rows:
            row = self._free_rows.pop()
            self._names[row] = name
        else:
            row = len(self._names)
            self._names.append(name)
            self._nodes.append(None)
            if row == len(self._known):
                self._double_rows()
        self._rows[name] = row
        self._name_rank = None
        self._name_hash[row] = int.from_bytes(
            hashlib.blake2b(name.encode(), digest_size=8).digest(), "little"
        )
        return row

    def _double_rows(self) -> None:
        for field in ("_allocatable", "_requested", "_nonzero", "_known", "_name_hash"):
            array = getattr(self, field)
            setattr(self, field, np.concatenate([array, np.zeros_like(array)], axis=-1))

    def _free_if_empty(self, row: int) -> None:
        if self._nodes[row] is None and self._requested[PODS, row] == 0:
            del self._rows[self._names[row]]
            self._names[row] = ""
            self._name_rank = None
            self._free_rows.append(row)


def _same_for_scheduling(a: Node, b: Node) -> bool:
    return a.spec == b.spec and a.status == b.status and a.metadata.labels == b.metadata.labels


def _same_amounts(a: PodInfo, b: PodInfo) -> bool:
    return a.requests == b.requests and a.nonzero == b.nonzero
