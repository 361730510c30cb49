"""The kinds of arrays that columns are made of, each with one element for a row."""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

# Which rows are meant: all of them, some, or a single one. A column indexed by it gives a view, an array of
# as many elements, or a plain number.
Rows = slice | Ints | int
