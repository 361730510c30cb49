"""Classes of nodes with equal taints, so that a pod's tolerations are checked once for each class."""

from collections.abc import Callable

import numpy as np

from longshore.api import Taint
from longshore.cluster.arrays import Ids, Ints, Rows

# The class of nodes without taints. Rows without a node are in it too.
UNTAINTED = 0


class TaintClasses:
    def __init__(self) -> None:
        self._classes: Ids = np.zeros(0, np.int32)
        self._taints: list[tuple[Taint, ...]] = [()]
        self._numbers: dict[tuple[Taint, ...], int] = {(): UNTAINTED}

    def __bool__(self) -> bool:
        """Whether any node has taints, or ever had."""
        return len(self._taints) > 1

    def count(self, of: Callable[[tuple[Taint, ...]], int], rows: Rows) -> Ints:
        """Return `of(taints)` for each row. It is called once for each distinct list of taints."""
        return np.fromiter(map(of, self._taints), np.int64, len(self._taints))[self._classes[rows]]

    # Updates.

    def put(self, row: int, taints: tuple[Taint, ...]) -> None:
        number = self._numbers.get(taints)
        if number is None:
            number = self._numbers[taints] = len(self._taints)
            self._taints.append(taints)
        self._classes[row] = number

    def resize(self, size: int) -> None:
        self._classes = np.concatenate([self._classes, np.zeros(size - len(self._classes), np.int32)])
