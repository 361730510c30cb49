"""Taints as classes: nodes with equal taints are one, so a pod's tolerations are asked once for each."""

from collections.abc import Callable

import numpy as np

from longshore.api import Taint
from longshore.cluster.arrays import Ids, Ints, Rows

# The class of nodes without taints; rows without a node are in it too.
UNTAINTED = 0


class TaintClasses:
    def __init__(self) -> None:
        self._classes: Ids = np.zeros(0, np.int32)
        self._taints: list[tuple[Taint, ...]] = [()]
        self._numbers: dict[tuple[Taint, ...], int] = {(): UNTAINTED}

    def __bool__(self) -> bool:
        """Whether any node has, or had, taints."""
        return len(self._taints) > 1

    def count(self, of: Callable[[tuple[Taint, ...]], int], rows: Rows) -> Ints:
        """`of(taints)` for each row, asked once for each distinct list of taints."""
        return np.fromiter(map(of, self._taints), np.int64, len(self._taints))[self._classes[rows]]

    # What changes it.

    def put(self, row: int, taints: tuple[Taint, ...]) -> None:
        number = self._numbers.get(taints)
        if number is None:
            number = self._numbers[taints] = len(self._taints)
            self._taints.append(taints)
        self._classes[row] = number

    def resize(self, size: int) -> None:
        self._classes = np.concatenate([self._classes, np.zeros(size - len(self._classes), np.int32)])
