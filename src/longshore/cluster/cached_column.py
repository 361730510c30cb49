"""A column that is computed from the rows and cached.

After a change, only the changed rows are recomputed.
"""

from collections.abc import Callable
from typing import Any

from longshore.cluster.nodes import Nodes

# With more changed rows than this, the whole column is recomputed.
_FEW = 16


class CachedColumn:
    """A cached column.

    `work_out` returns one element for each of many nodes, or a number for a single one. It uses operators
    only, so that it works for both.
    """

    def __init__(self, work_out: Callable[[Nodes], Any]) -> None:
        self._work_out = work_out
        self._cluster: Any = None
        self._position = -1
        self._column: Any = None

    def of(self, nodes: Nodes) -> Any:
        """Return the column for all rows of the cluster. Do not write to it."""
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
