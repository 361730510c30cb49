"""Histograms that are cheap to fill: values are sorted into buckets later."""

import threading
from collections.abc import Callable
from itertools import accumulate

import numpy as np
from prometheus_client.utils import floatToGoString

# The writer sorts the values itself when more than this many are waiting.
_MOST_WAITING = 4096


def exponential(first: float, factor: float, count: int) -> tuple[float, ...]:
    """Return bounds of buckets, each `factor` times the previous one."""
    return tuple(accumulate([factor] * (count - 1), lambda bound, by: bound * by, initial=first))


class Histogram:
    """A histogram that one thread fills and others read. `observe(value)` is as fast as `list.append`."""

    __slots__ = ("_counts", "_lock", "_total", "_waiting", "bounds", "observe")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self._waiting: list[float] = []
        self.observe: Callable[[float], None] = self._waiting.append
        self._lock = threading.Lock()
        # The last bucket counts values above all bounds.
        self._counts = np.zeros(len(bounds) + 1, np.int64)
        self._total = 0.0

    def tidy(self) -> None:
        """Sort waiting values if there are many. The writer calls this sometimes, to bound the memory."""
        if len(self._waiting) > _MOST_WAITING:
            self.read()

    def read(self) -> tuple[list[int], float]:
        """Return the number of values in each bucket, and the sum of the values."""
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
        """Return cumulative buckets and the sum, as Prometheus expects them."""
        counts, total = self.read()
        names = [*map(floatToGoString, self.bounds), "+Inf"]
        return list(zip(names, accumulate(counts), strict=True)), total
