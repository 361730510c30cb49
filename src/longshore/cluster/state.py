"""The cluster as rows of numbers: what each node offers, and what the pods on it request.

A row belongs to a node's name rather than to the node. A pod may be bound to a node that is not known yet, or
not known any longer. Its row then has no node, so no pod is scheduled there, and the requests count as soon
as the node appears. A row is given to another name once it has neither a node nor pods, so nothing may depend
on the order of rows, except the choice among nodes with equal scores.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import TypeVar

import numpy as np

from longshore.api import Namespace, Node, Pod
from longshore.api.meta import ApiObject
from longshore.cluster.arrays import Bools, Ints
from longshore.cluster.capacities import Capacities
from longshore.cluster.divisors import Offers
from longshore.cluster.domains import DomainTable
from longshore.cluster.images import ImageTable
from longshore.cluster.journal import Journal
from longshore.cluster.labels import LabelColumns
from longshore.cluster.measures import Measures
from longshore.cluster.node_tree import NodeTree
from longshore.cluster.nodes import Nodes, OneNode
from longshore.cluster.nominations import Nominations
from longshore.cluster.objects import ObjectStore
from longshore.cluster.overcommitment import LimitTable
from longshore.cluster.placed_pod import PlacedPod
from longshore.cluster.pod_counts import PodCounts
from longshore.cluster.pod_info import PodInfo, asks_alike
from longshore.cluster.ports import PortTable
from longshore.cluster.resources import FIXED_COLUMNS, PODS, allocatable_amounts
from longshore.cluster.row_names import RowNames
from longshore.cluster.taints import TaintClasses

T = TypeVar("T", bound=ApiObject)

_FIRST_ROWS = 64
_FIRST_COLUMNS = 8


class ClusterState:
    """The nodes, the pods on them, and the pods that are assumed to be on them while they are being bound.

    The key of a pod is `namespace/name`, since the API server has one such pod at a time. The UID
    distinguishes a pod from a later one with the same name. All methods accept events in any order, and
    repeated ones.
    """

    def __init__(self) -> None:
        self._columns = {name: column for column, name in enumerate(FIXED_COLUMNS)}
        self._allocatable: Ints = np.zeros((_FIRST_COLUMNS, _FIRST_ROWS), np.int64)
        self._requested: Ints = np.zeros((_FIRST_COLUMNS, _FIRST_ROWS), np.int64)
        self._nonzero: Ints = np.zeros((2, _FIRST_ROWS), np.int64)
        self._known: Bools = np.zeros(_FIRST_ROWS, np.bool_)
        self._unschedulable: Bools = np.zeros(_FIRST_ROWS, np.bool_)
        self._rows = RowNames()
        self._nodes: list[Node | None] = []
        self._placed: dict[str, PlacedPod] = {}
        self._pods_on: list[dict[str, PodInfo]] = []
        self._objects = ObjectStore()
        self._node_count = 0
        self.journal = Journal()
        self.offers = Offers()
        self.labels = LabelColumns(lambda: ((row, node.metadata.labels) for row, node in self._with_node()))
        self.taints = TaintClasses()
        self.tree = NodeTree()
        self.images = ImageTable(lambda: ((row, node.status.images) for row, node in self._with_node()))
        self.ports = PortTable()
        self._claim_users: Counter[str] = Counter()
        self.pod_counts = PodCounts()
        self.domains = DomainTable(self)
        self.nominations = Nominations(self._nomination_changed)
        self.measures = Measures(self)
        self.capacities = Capacities()
        self.limits = LimitTable()
        self._all_nodes = Nodes(self, slice(0, 0))
        self._resize_parts(_FIRST_ROWS)

    # What plugins and the engine read. Arrays have one element for each row. Do not write to them.

    @property
    def allocatable(self) -> Ints:
        """`allocatable[column]` is what the nodes offer; 0 in rows without a node."""
        return self._allocatable[:, : len(self._rows)]

    @property
    def requested(self) -> Ints:
        """`requested[column]` is what the pods of each row request; `requested[PODS]` is their number."""
        return self._requested[:, : len(self._rows)]

    @property
    def nonzero_requested(self) -> Ints:
        """The requests for cpu and memory, in this order, as scoring counts them.

        A container without a request counts with a default amount.
        """
        return self._nonzero[:, : len(self._rows)]

    def amounts(self, row: int) -> tuple[list[int], list[int], list[int]]:
        """Return `allocatable`, `requested`, and `nonzero_requested` of a single row as plain numbers."""
        # Indexed directly, not through the properties: this is the hot path of every placement.
        return (
            self._allocatable[:, row].tolist(),
            self._requested[:, row].tolist(),
            self._nonzero[:, row].tolist(),
        )

    @property
    def known(self) -> Bools:
        """Whether each row has a node. Rows without one do not count."""
        return self._known[: len(self._rows)]

    @property
    def unschedulable(self) -> Bools:
        """Whether the node of each row is cordoned."""
        return self._unschedulable[: len(self._rows)]

    @property
    def name_rank(self) -> Ints:
        """The position of each row's name in the sorted list of names."""
        return self._rows.rank

    @property
    def node_count(self) -> int:
        return self._node_count

    @property
    def pod_count(self) -> int:
        """The number of pods on nodes, including the assumed ones."""
        return len(self._placed)

    @property
    def assumed_count(self) -> int:
        # Copied in one step, because the thread that serves metrics may call this.
        return sum(placed.assumed for placed in list(self._placed.values()))

    def column(self, resource: str) -> int | None:
        """Return the column of the resource, or None if no node has offered it or placed pod requested it."""
        return self._columns.get(resource)

    @property
    def resource_names(self) -> list[str]:
        """The resource of each column."""
        return list(self._columns)

    def all_nodes(self) -> Nodes:
        """Return all rows, as the same object until rows are added; `known` tells which have a node."""
        return self._all_nodes

    def some_nodes(self, rows: Ints) -> Nodes:
        return Nodes(self, rows)

    def one_node(self, row: int) -> OneNode:
        return OneNode(self, row)

    def node_name(self, row: int) -> str:
        return self._rows.names[row]

    def row(self, node: str) -> int | None:
        return self._rows.find(node)

    def node(self, row: int) -> Node | None:
        return self._nodes[row]

    def node_of(self, pod: Pod) -> str | None:
        """Return the name of the node that the pod is on, or is assumed to be on."""
        placed = self._find(pod)
        return None if placed is None else self._rows.names[placed.row]

    def is_assumed(self, pod: Pod) -> bool:
        placed = self._find(pod)
        return placed is not None and placed.assumed

    def pods(self) -> Iterator[Pod]:
        """Return all pods on nodes, including the assumed ones."""
        return (placed.info.pod for placed in self._placed.values())

    def pods_on(self, row: int) -> Collection[PodInfo]:
        return self._pods_on[row].values()

    def pod(self, key: str) -> Pod | None:
        """Return the pod with this `namespace/name`, if it is on a node or assumed to be on one."""
        placed = self._placed.get(key)
        return None if placed is None else placed.info.pod

    def claim_in_use(self, key: str) -> bool:
        """Whether a pod on a node uses the PersistentVolumeClaim with this `namespace/name`."""
        return key in self._claim_users

    def get(self, kind: type[T], key: str) -> T | None:
        """Return an object of another kind by its `namespace/name`, or by its name if it has no namespace."""
        return self._objects.get(kind, key)

    def objects(self, kind: type[T]) -> Collection[T]:
        return self._objects.all(kind)

    def version(self, kind: type[ApiObject]) -> int:
        """Return a number that grows with every change to an object of this kind, for use by caches.

        For `Node` it grows with every change to a node that matters to scheduling, and when rows are added.
        """
        return self._objects.version(kind)

    def changed_since(self, kind: type[ApiObject], version: int) -> list[str] | None:
        """Return the keys of the objects that changed after the version, or None if it is too long ago."""
        return self._objects.changed_since(kind, version)

    # Updates.

    def add_node(self, node: Node) -> None:
        """Add a node, or update the one with the same name."""
        row = self._row_for(node.metadata.name)
        old = self._nodes[row]
        self._nodes[row] = node
        if old is None:
            self._known[row] = True
            self._node_count += 1
        elif same_for_scheduling(old, node):
            if old.metadata.annotations != node.metadata.annotations:
                self.measures.node_changed(row, node)
            return
        amounts = allocatable_amounts(node.status.allocatable)
        columns = [self._intern(resource) for resource in amounts]
        self._allocatable[:, row] = 0
        self._allocatable[columns, row] = list(amounts.values())
        self._unschedulable[row] = node.spec.unschedulable
        self.labels.put(row, node.metadata.name, node.metadata.labels)
        self.taints.put(row, node.spec.taints)
        self.tree.put(row, node.metadata.labels)
        self.images.put(row, node.status.images)
        self.capacities.put(row, node.status)
        self.measures.node_changed(row, node)
        self._node_changed(row)

    def remove_node(self, name: str) -> None:
        """Remove a node. If pods are left on it, they keep the row until they are gone."""
        row = self._rows.find(name)
        if row is None or self._nodes[row] is None:
            return
        self._nodes[row] = None
        self._known[row] = self._unschedulable[row] = False
        self._allocatable[:, row] = 0
        self._node_count -= 1
        self.labels.remove(row, name)
        self.taints.put(row, ())
        self.tree.remove(row)
        self.images.put(row, ())
        self.capacities.put(row, None)
        self.measures.node_gone(row)
        self._node_changed(row)
        self._free_if_empty(row)

    def add_pod(self, pod: Pod) -> None:
        """Add or update a pod that the watch reports.

        An assumed pod is confirmed, or moved to its real node. A pod that has ended or is not bound is
        removed.
        """
        if pod.terminal or not pod.spec.node_name:
            self.remove_pod(pod)
            return
        placed = self._find(pod)
        if placed is not None and asks_alike(placed.info.pod, pod):
            info = placed.info.about(pod)
        else:
            info = PodInfo.of(pod)
        self._place(info, self._row_for(pod.spec.node_name), assumed=False)

    def remove_pod(self, pod: Pod) -> None:
        """Remove a pod that is gone or has ended. A later pod with the same name is not affected."""
        placed = self._find(pod)
        if placed is not None:
            if self.measures and not placed.assumed:
                self.measures.pod_gone(placed.row, placed.info.requests)
            del self._placed[pod.key]
            self._take_out(placed)

    def remove_predecessor(self, pod: Pod) -> None:
        """Remove an earlier pod with the same name and another UID: it cannot exist any longer."""
        placed = self._placed.get(pod.key)
        if placed is not None and placed.info.pod.metadata.uid != pod.metadata.uid:
            self.remove_pod(placed.info.pod)

    def assume(self, info: PodInfo, node: str) -> None:
        """Count the pod on the node before the API server has confirmed the binding."""
        self._place(info, self._row_for(node), assumed=True)

    def forget(self, pod: Pod) -> None:
        """Remove an assumed pod because its bind failed. A pod that the watch has confirmed stays."""
        if self.is_assumed(pod):
            self.remove_pod(pod)

    def keep_limits(self) -> None:
        """Count `limits` from now on. Plugins that read them call this."""
        self.limits.keep(self._placed.values())

    def put(self, kind: type[T], old: T | None, new: T | None) -> None:
        """Store an object of another kind that is new, has changed, or is gone."""
        self._objects.put(kind, old, new)
        if kind is Namespace and (changed := new or old) is not None:
            self.pod_counts.put_namespace(changed.metadata.name, None if new is None else new.metadata.labels)

    def _find(self, pod: Pod) -> PlacedPod | None:
        placed = self._placed.get(pod.key)
        return placed if placed is not None and placed.info.pod.metadata.uid == pod.metadata.uid else None

    def _place(self, info: PodInfo, row: int, *, assumed: bool) -> None:
        key = info.pod.key
        placed = PlacedPod.of(info, row, assumed=assumed)
        before = self._placed.get(key)
        self._placed[key] = placed
        if before is not None and before.counts_like(placed):
            self._pods_on[row][key] = info
            return
        # The new one is counted first: a row that becomes empty may be given to another name.
        self._count(placed, 1)
        if before is not None:
            self._take_out(before)
        self._pods_on[row][key] = info

    def _take_out(self, placed: PlacedPod) -> None:
        self._count(placed, -1)
        self._pods_on[placed.row].pop(placed.info.pod.key, None)
        self._free_if_empty(placed.row)

    def _count(self, placed: PlacedPod, sign: int) -> None:
        info, row = placed.info, placed.row
        for resource, amount in info.requests.items():
            # On a line of its own, because it may replace the array.
            column = self._intern(resource)
            self._requested[column, row] += sign * amount
        cpu, memory = info.nonzero
        self._nonzero[0, row] += sign * cpu
        self._nonzero[1, row] += sign * memory
        if placed.ports:
            (self.ports.add if sign > 0 else self.ports.remove)(placed.ports, row)
        for claim in placed.claims:
            self._claim_users[claim] += sign
            if not self._claim_users[claim]:
                del self._claim_users[claim]
        (self.pod_counts.add if sign > 0 else self.pod_counts.remove)(info.pod, placed.terms, row)
        if self.limits.kept:
            self.limits.count(placed, sign)
        self.journal.pods_changed(row)

    def _node_changed(self, row: int) -> None:
        self._nodes_differ()
        self.journal.node_changed(row)

    def _nodes_differ(self) -> None:
        self._objects.touch(Node)
        self.domains.forget()

    def _nomination_changed(self, node: str) -> None:
        row = self._rows.find(node)
        if row is not None:
            self.journal.pods_changed(row)

    def _intern(self, resource: str) -> int:
        column = self._columns.setdefault(resource, len(self._columns))
        if column == len(self._allocatable):
            self._allocatable = np.concatenate([self._allocatable, np.zeros_like(self._allocatable)])
            self._requested = np.concatenate([self._requested, np.zeros_like(self._requested)])
        return column

    def _row_for(self, name: str) -> int:
        row = self._rows.take(name)
        if row == len(self._nodes):
            self._nodes.append(None)
            self._pods_on.append({})
            self._all_nodes = Nodes(self, slice(0, len(self._nodes)))
            self._nodes_differ()
            self.journal.everything_changed()
            if row == len(self._known):
                self._double_rows()
        return row

    def _double_rows(self) -> None:
        for field in ("_allocatable", "_requested", "_nonzero", "_known", "_unschedulable"):
            array = getattr(self, field)
            setattr(self, field, np.concatenate([array, np.zeros_like(array)], axis=-1))
        self._resize_parts(len(self._known))

    def _resize_parts(self, size: int) -> None:
        for part in (
            self.labels,
            self.taints,
            self.images,
            self.pod_counts,
            self.measures,
            self.capacities,
            self.limits,
        ):
            part.resize(size)

    def _free_if_empty(self, row: int) -> None:
        if self._nodes[row] is None and self._requested[PODS, row] == 0:
            self._rows.free(row)

    def _with_node(self) -> Iterable[tuple[int, Node]]:
        return ((row, node) for row, node in enumerate(self._nodes) if node is not None)


def same_for_scheduling(a: Node, b: Node) -> bool:
    return a.spec == b.spec and a.status == b.status and a.metadata.labels == b.metadata.labels
