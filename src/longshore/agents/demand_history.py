"""The requests of past pods: the mean of each resource, and of the product of each pair of resources.

The first hundred pods have equal weight. After that each new pod weighs a hundredth, and old ones fade.
"""

import numpy as np

from longshore.cluster.arrays import Floats

_LONGEST = 100


class DemandHistory:
    def __init__(self, resources: int) -> None:
        self._count = 0
        self.mean: Floats = np.zeros(resources)
        self.second: Floats = np.zeros((resources, resources))

    def add(self, demand: Floats) -> None:
        self._count = min(self._count + 1, _LONGEST)
        weight = 1 / self._count
        self.mean = (1 - weight) * self.mean + weight * demand
        self.second = (1 - weight) * self.second + weight * np.outer(demand, demand)
