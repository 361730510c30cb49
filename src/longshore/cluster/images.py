"""The container images on the nodes: the size of each image, and the number of nodes that have it."""

from collections.abc import Callable, Iterable

import numpy as np

from longshore.api import ContainerImage
from longshore.cluster.arrays import Ints

Images = tuple[ContainerImage, ...]

# The most images whose columns are cached; beyond the limit the cache is emptied.
_COLUMNS = 256


class ImageColumn:
    """One image: its size on each row, 0 where it is absent, and the number of nodes that have it."""

    __slots__ = ("nodes", "sizes")

    def __init__(self, size: int) -> None:
        self.sizes: Ints = np.zeros(size, np.int64)
        self.nodes = 0

    def put(self, row: int, size: int) -> None:
        self.nodes += int(size > 0) - int(self.sizes[row] > 0)
        self.sizes[row] = size


class ImageTable:
    """Columns for images, each created on first use. `rows` returns the current images of each row."""

    def __init__(self, rows: Callable[[], Iterable[tuple[int, Images]]]) -> None:
        self._rows = rows
        self._size = 0
        # Nodes set up alike share their list of images, whose sizes by name are computed once. The entry
        # holds the list, so that no other object can get its id.
        self._sizes: dict[int, tuple[Images, dict[str, int]]] = {}
        self._columns: dict[str, ImageColumn] = {}

    def find(self, image: str) -> ImageColumn:
        """Return the column of the image with this full name."""
        column = self._columns.get(image)
        if column is None:
            if len(self._columns) >= _COLUMNS:
                self._columns.clear()
            column = self._columns[image] = ImageColumn(self._size)
            for row, images in self._rows():
                if images:
                    column.put(row, self._by_name(images).get(image, 0))
        return column

    # Updates.

    def put(self, row: int, images: Images) -> None:
        by_name = self._by_name(images) if images and self._columns else {}
        for image, column in self._columns.items():
            column.put(row, by_name.get(image, 0))

    def resize(self, size: int) -> None:
        self._size = size
        for column in self._columns.values():
            column.sizes = np.concatenate([column.sizes, np.zeros(size - len(column.sizes), np.int64)])

    def _by_name(self, images: Images) -> dict[str, int]:
        known = self._sizes.get(id(images))
        if known is None:
            if len(self._sizes) > 2 * self._size:
                self._sizes.clear()
            # If a name occurs twice, the first one counts.
            by_name = {name: image.size_bytes for image in reversed(images) for name in image.names}
            known = self._sizes[id(images)] = (images, by_name)
        return known[1]
