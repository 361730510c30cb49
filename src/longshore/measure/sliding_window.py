"""Samples of what nodes use, as far as a window reaches back: their mean, deviation and percentiles."""

from collections import deque
from collections.abc import Iterable

import numpy as np

from longshore.cluster.measures import PERCENTILES, Measured


class SlidingWindow:
    """Of one resource of one node. Times are those of the samples: no clock is asked."""

    def __init__(self, length: float, *, max_age: float) -> None:
        self._length = length
        # What is further ahead than values may be old is believed by nobody. What is less far ahead counts in
        # place of the true samples, but for no longer than any value may.
        self._most_ahead = min(length, max_age)
        self._samples: deque[Measured] = deque()

    def add(self, value: float, time: float) -> None:
        """A sample; one that is not newer than the last was seen before, and is passed over.

        If it is far older, the clock was ahead for a while: what it told then is forgotten.
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
        """`mean` and percentiles, and `std` from two samples on; all of the time of the newest sample."""
        if not self._samples:
            return {}
        values = np.array([value for value, _ in self._samples])
        percentiles = np.percentile(values, list(PERCENTILES.values()))
        found = {"mean": values.mean(), **dict(zip(PERCENTILES, percentiles, strict=True))}
        if len(values) > 1:
            found["std"] = values.std(ddof=1)
        return {name: (float(value), self._samples[-1][1]) for name, value in found.items()}


class SlidingWindows:
    """Of all nodes, by name and resource."""

    def __init__(self, length: float, *, max_age: float) -> None:
        self._length, self._max_age = length, max_age
        self._windows: dict[tuple[str, str], SlidingWindow] = {}

    def add(self, node: str, resource: str, value: float, time: float) -> None:
        window = SlidingWindow(self._length, max_age=self._max_age)
        self._windows.setdefault((node, resource), window).add(value, time)

    def keep(self, nodes: Iterable[str]) -> None:
        """Forget nodes that are gone: one that comes back under the same name is another."""
        kept = set(nodes)
        self._windows = {key: window for key, window in self._windows.items() if key[0] in kept}

    def statistics(self) -> dict[str, dict[str, Measured]]:
        """By measure and node."""
        found: dict[str, dict[str, Measured]] = {}
        for (node, resource), window in self._windows.items():
            for name, measured in window.statistics().items():
                found.setdefault(f"{resource}/{name}", {})[node] = measured
        return found
