"""Samples of what nodes use in a time window, with their mean, deviation and percentiles."""

from collections import deque
from collections.abc import Iterable

import numpy as np

from longshore.cluster.measures import PERCENTILES, Measured


class SlidingWindow:
    """The samples of one resource of one node. Only the times of samples count, not a clock."""

    def __init__(self, length: float, *, max_age: float) -> None:
        self._length = length
        # Values further in the future than this are not used anyway. Those less far in the future replace
        # true samples, but not for longer than a value is valid.
        self._most_ahead = min(length, max_age)
        self._samples: deque[Measured] = deque()

    def add(self, value: float, time: float) -> None:
        """Add a sample. Ignore it if it is not newer than the last one.

        If it is much older, the node's clock was ahead for a while, and the samples from then are dropped.
        """
        if self._samples and time < self._samples[-1][1] - self._most_ahead:
            while self._samples and self._samples[-1][1] > time:
                self._samples.pop()
        if self._samples and time <= self._samples[-1][1]:
            return
        self._samples.append((value, time))
        while self._samples[0][1] < time - self._length:
            self._samples.popleft()

    def statistics(self) -> dict[str, Measured]:
        """Return the mean, percentiles and, of two or more samples, `std`, at the newest sample's time."""
        if not self._samples:
            return {}
        values = np.array([value for value, _ in self._samples])
        percentiles = np.percentile(values, list(PERCENTILES.values()))
        found = {"mean": values.mean(), **dict(zip(PERCENTILES, percentiles, strict=True))}
        if len(values) > 1:
            found["std"] = values.std(ddof=1)
        return {name: (float(value), self._samples[-1][1]) for name, value in found.items()}


class SlidingWindows:
    """The samples of all nodes, by name and resource."""

    def __init__(self, length: float, *, max_age: float) -> None:
        self._length, self._max_age = length, max_age
        self._windows: dict[tuple[str, str], SlidingWindow] = {}

    def add(self, node: str, resource: str, value: float, time: float) -> None:
        window = SlidingWindow(self._length, max_age=self._max_age)
        self._windows.setdefault((node, resource), window).add(value, time)

    def keep(self, nodes: Iterable[str]) -> None:
        """Forget other nodes, because a new node with an old name is a different one."""
        kept = set(nodes)
        self._windows = {key: window for key, window in self._windows.items() if key[0] in kept}

    def statistics(self) -> dict[str, dict[str, Measured]]:
        """Return the statistics by measure and node."""
        found: dict[str, dict[str, Measured]] = {}
        for (node, resource), window in self._windows.items():
            for name, measured in window.statistics().items():
                found.setdefault(f"{resource}/{name}", {})[node] = measured
        return found
