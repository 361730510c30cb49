"""Histograms that cost next to nothing to fill: values are sorted into their buckets later."""

import threading
from collections.abc import Callable
from itertools import accumulate

import numpy as np
from prometheus_client.utils import floatToGoString

# So many values wait to be sorted before their writer has to do it.
_MOST_WAITING = 4096


def exponential(first: float, factor: float, count: int) -> tuple[float, ...]:
    """Bounds of buckets, each by `factor` above the one before."""
    return tuple(accumulate([factor] * (count - 1), lambda bound, by: bound * by, initial=first))


class Histogram:
    """Filled by one thread and read by others. `observe` takes a value, and is as quick as `list.append`."""

    __slots__ = ("_counts", "_lock", "_total", "_waiting", "bounds", "observe")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self._waiting: list[float] = []
        self.observe: Callable[[float], None] = self._waiting.append
        self._lock = threading.Lock()
        # The last one is for what is above all bounds.
        self._counts = np.zeros(len(bounds) + 1, np.int64)
        self._total = 0.0

    def tidy(self) -> None:
        """To be called by the writer now and then, lest the values grow without end while nobody reads."""
        if len(self._waiting) > _MOST_WAITING:
            self.read()

    def read(self) -> tuple[list[int], float]:
        """The number of values in each bucket, and their sum."""
        with self._lock:
            values = self._waiting[:]
            del self._waiting[: len(values)]
            if values:
                buckets = np.searchsorted(self.bounds, values)
                self._counts += np.bincount(buckets, minlength=len(self._counts))
                self._total += sum(values)
            return self._counts.tolist(), self._total

    @property
    def count(self) -> int:
        return sum(self.read()[0])

    def cumulative(self) -> tuple[list[tuple[str, float]], float]:
        """As Prometheus wants it: each bucket counts the values of those below it too."""
        counts, total = self.read()
        names = [*map(floatToGoString, self.bounds), "+Inf"]
        return list(zip(names, accumulate(counts), strict=True)), total
