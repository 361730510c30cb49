"""The nodes as they would be with the pods that are nominated to them."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from longshore.cluster.arrays import Bools, Ints
from longshore.cluster.nodes import Columns, Nodes
from longshore.cluster.nominations import NONZERO
from longshore.cluster.pod_info import PodInfo
from longshore.cluster.ports import HostPort, clash, host_ports


class NominatedNodes(Nodes):
    """The nodes that have nominated pods of at least a pod's priority, with these counted as if on the node.

    Only the requests and the host ports of nominated pods are included, not their affinity or spread.
    """

    def __init__(self, cluster: Any, pod: PodInfo) -> None:
        nominated = cluster.nominations.requests(pod.pod.spec.priority)
        row_of, count = cluster.row, len(nominated.places)
        rows = np.fromiter(
            (-1 if (row := row_of(name)) is None else row for name in nominated.places), np.int64, count
        )
        places = np.fromiter(nominated.places.values(), np.int64, count)
        present = (rows >= 0) & cluster.known[rows]
        super().__init__(cluster, rows[present])
        self._places = places[present]
        self._nominated = nominated
        self._pod = pod
        # The pod may itself be nominated. It does not have to leave room for itself.
        own = cluster.nominations.node_of(pod.pod.metadata.uid)
        row = None if own is None else cluster.row(own)
        self._own: Bools | None = None if row is None else self.rows == row

    def __len__(self) -> int:
        return len(self._places)

    @property
    def requested(self) -> Columns:
        return _WithNominated(self, self.cluster.requested, self.cluster.resource_names)

    @property
    def nonzero_requested(self) -> Columns:
        return _WithNominated(self, self.cluster.nonzero_requested, NONZERO)

    def added(self, resource: str) -> Ints | int:
        """Return the total that the nominated pods request on each node."""
        amounts = self._nominated.amounts(resource)
        if amounts is None:
            return 0
        picked: Ints = amounts[self._places]
        if self._own is not None:
            own = {**self._pod.requests, **dict(zip(NONZERO, self._pod.nonzero, strict=True))}
            picked = picked - self._own * own.get(resource, 0)
        return picked

    def ports_clash(self, wanted: Collection[HostPort]) -> Bools:
        return np.array([self._clashes(row, wanted) for row in np.asarray(self.rows).tolist()], np.bool_)

    def _clashes(self, row: int, wanted: Collection[HostPort]) -> bool:
        node = self.cluster.one_node(row)
        uid = self._pod.pod.metadata.uid
        nominated = [
            info.pod
            for info in self.cluster.nominations.on(node.name)
            if info.pod.spec.priority >= self._nominated.priority and info.pod.metadata.uid != uid
        ]
        return node.ports_clash(wanted) or clash(wanted, (p for pod in nominated for p in host_ports(pod)))


class _WithNominated:
    """Columns with the nominated pods included."""

    def __init__(self, nodes: NominatedNodes, columns: Ints, names: Sequence[str]) -> None:
        self._nodes = nodes
        self._columns = columns
        self._names = names

    def __getitem__(self, column: int) -> Ints:
        picked: Ints = self._columns[column][self._nodes.rows] + self._nodes.added(self._names[column])
        return picked

    def __len__(self) -> int:
        return len(self._columns)
