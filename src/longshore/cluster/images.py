"""Container images on the nodes: how large an image is where it is present, and on how many nodes that is."""

from collections.abc import Callable, Iterable

import numpy as np

from longshore.api import ContainerImage
from longshore.cluster.arrays import Ints

Images = tuple[ContainerImage, ...]

# Distinct images for which columns are kept; past the limit all are forgotten and made again when asked for.
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
    """Columns are made for the images that someone asks for; `rows` gives each row's images to begin with."""

    def __init__(self, rows: Callable[[], Iterable[tuple[int, Images]]]) -> None:
        self._rows = rows
        self._size = 0
        # Nodes built alike share their list of images: its sizes by name are worked out once. The list is
        # kept beside them, so that its id stays its own.
        self._sizes: dict[int, tuple[Images, dict[str, int]]] = {}
        self._columns: dict[str, ImageColumn] = {}

    def find(self, image: str) -> ImageColumn:
        """The image by its full name."""
        column = self._columns.get(image)
        if column is None:
            if len(self._columns) >= _COLUMNS:
                self._columns.clear()
            column = self._columns[image] = ImageColumn(self._size)
            for row, images in self._rows():
                if images:
                    column.put(row, self._by_name(images).get(image, 0))
        return column

    # What changes it.

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
            # Should a name come twice, the first one counts.
            by_name = {name: image.size_bytes for image in reversed(images) for name in image.names}
            known = self._sizes[id(images)] = (images, by_name)
        return known[1]
