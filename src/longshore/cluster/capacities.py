"""The capacity of the nodes in cpu and memory, which includes what they reserve for the system.

Measured usage is compared with the capacity; pods are placed by `allocatable`.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from longshore.api import NodeStatus
from longshore.cluster.arrays import Ints
from longshore.cluster.resources import CPU, MEMORY, allocatable_amounts

if TYPE_CHECKING:
    from longshore.cluster.nodes import Nodes

_COUNTED = {CPU: "cpu", MEMORY: "memory"}
_PLACES = {column: place for place, column in enumerate(_COUNTED)}


class Capacities:
    def __init__(self) -> None:
        self._amounts: Ints = np.zeros((len(_COUNTED), 0), np.int64)

    def resize(self, size: int) -> None:
        self._amounts = np.pad(self._amounts, ((0, 0), (0, size - self._amounts.shape[1])))

    def put(self, row: int, status: NodeStatus | None) -> None:
        """Set the capacity of a row. The status is None if the row no longer has a node."""
        amounts = {} if status is None else allocatable_amounts({**status.allocatable, **status.capacity})
        self._amounts[:, row] = [amounts.get(resource, 0) for resource in _COUNTED.values()]

    def of(self, nodes: "Nodes", column: int) -> Any:
        """Return the capacity in cpu or memory, or the allocatable amount if a node reports no capacity."""
        return nodes.take(self._amounts[_PLACES[column]])
