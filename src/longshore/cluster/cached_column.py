"""A column that someone works out of the rows, kept until rows change and then worked out for those alone."""

from collections.abc import Callable
from typing import Any

from longshore.cluster.nodes import Nodes

# More changed rows than this are worked out together with all others.
_FEW = 16


class Kept:
    """`work_out` gives one element for each node, or the one of a single node: it uses operators only."""

    def __init__(self, work_out: Callable[[Nodes], Any]) -> None:
        self._work_out = work_out
        self._cluster: Any = None
        self._position = -1
        self._column: Any = None

    def of(self, nodes: Nodes) -> Any:
        """The column for all nodes of the cluster. Not to be written to."""
        journal = nodes.cluster.journal
        if self._cluster is not nodes.cluster:
            self._cluster, self._position = nodes.cluster, -1
        if self._position != journal.position:
            rows = journal.rows_since(self._position, at_most=_FEW)
            if rows is None:
                self._column = self._work_out(nodes)
            else:
                for row in rows:
                    self._column[row] = self._work_out(nodes.cluster.one_node(row))
            self._position = journal.position
        return self._column
