"""The rows by node name. A row belongs to a name, and is given to another name once it is empty."""

import numpy as np

from longshore.cluster.arrays import Ints


class RowNames:
    def __init__(self) -> None:
        self.names: list[str] = []
        self._rows: dict[str, int] = {}
        self._free: list[int] = []
        self._rank: Ints | None = None

    def __len__(self) -> int:
        """The number of rows, free ones included."""
        return len(self.names)

    def find(self, name: str) -> int | None:
        return self._rows.get(name)

    def take(self, name: str) -> int:
        """Return the row of the name. A name without a row gets a free or a new one."""
        row = self._rows.get(name)
        if row is not None:
            return row
        if self._free:
            row = self._free.pop()
        else:
            row = len(self.names)
            self.names.append("")
        self.names[row] = name
        self._rows[name] = row
        self._rank = None
        return row

    def free(self, row: int) -> None:
        del self._rows[self.names[row]]
        self.names[row] = ""
        self._rank = None
        self._free.append(row)

    @property
    def rank(self) -> Ints:
        """The position of each row's name in the sorted list of names."""
        if self._rank is None:
            self._rank = np.empty(len(self.names), np.int64)
            order = sorted(range(len(self.names)), key=self.names.__getitem__)
            self._rank[order] = np.arange(len(self.names))
        return self._rank
