"""An index of the nodes by their pinning labels, updated from the cluster's journal of changed rows."""

from collections import OrderedDict
from collections.abc import Mapping

from longshore.cluster import ClusterState
from longshore.pin.labels import PREFIX

# The most keys without a node that are remembered for messages. Beyond the limit, the oldest are dropped.
_MOST_GONE = 10_000

Pins = Mapping[str, str]


class PinIndex:
    """The nodes of each key with the value of the label, as they were when `refresh` was last called."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._position = -1
        # The nodes by key, with the value of the label; and the node and its pins by row.
        self._nodes: dict[str, dict[str, str]] = {}
        self._rows: dict[int, tuple[str, Pins]] = {}
        self._gone: OrderedDict[str, str] = OrderedDict()

    def refresh(self) -> None:
        journal = self._cluster.journal
        if journal.position == self._position:
            return
        changed = journal.rows_since(self._position)
        self._position = journal.position
        if changed is None:
            rows = range(len(self._cluster.known))
            for row in self._rows.keys() - set(rows):
                self._take_out(row)
            for row in rows:
                self._look_at(row)
            return
        for row, node_changed in changed.items():
            if node_changed:
                self._look_at(row)

    def nodes(self, key: str) -> Pins:
        """Return the nodes with this label key, and the value of the label on each."""
        return self._nodes.get(key, {})

    def gone(self, key: str) -> str:
        """Return the last node with this label key, if it no longer exists and no other node has the key."""
        return self._gone.get(key, "")

    def _look_at(self, row: int) -> None:
        node = self._cluster.node(row)
        name, before = self._rows.get(row, ("", {}))
        if node is None:
            for key in before:
                if len(self._nodes[key]) == 1:
                    self._gone[key] = name
            while len(self._gone) > _MOST_GONE:
                self._gone.popitem(last=False)
            self._take_out(row)
            return
        pins = {key: value for key, value in node.metadata.labels.items() if key.startswith(PREFIX)}
        if pins == before and name == node.metadata.name:
            return
        self._take_out(row)
        if pins:
            self._rows[row] = (node.metadata.name, pins)
        for key, value in pins.items():
            self._nodes.setdefault(key, {})[node.metadata.name] = value
            self._gone.pop(key, None)

    def _take_out(self, row: int) -> None:
        name, pins = self._rows.pop(row, ("", {}))
        for key in pins:
            nodes = self._nodes[key]
            nodes.pop(name, None)
            if not nodes:
                del self._nodes[key]
