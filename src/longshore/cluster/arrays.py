"""The types of the arrays that serve as columns, with one element for each row."""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

# A selection of rows: all of them, some, or a single one. Indexing a column with it gives a view, an array
# with as many elements, or a plain number.
Rows = slice | Ints | int
