"""How much more than they ask for the pods of each row may use: the sum of their limits beyond requests.

Only those who mind overcommitment look at limits, so nothing is counted until one of them wants it kept.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from longshore.api import Container, InvalidQuantity, Pod
from longshore.cluster.arrays import Ints
from longshore.cluster.placed_pod import Placed
from longshore.cluster.pod_info import PodInfo
from longshore.cluster.resources import CPU, MEMORY, column_amount, thousandths

if TYPE_CHECKING:
    from longshore.cluster.nodes import Nodes

_COUNTED = {CPU: "cpu", MEMORY: "memory"}
_PLACES = {column: place for place, column in enumerate(_COUNTED)}

Beyond = tuple[int, ...]


class LimitTable:
    """`kept`: whether anybody looks at it."""

    def __init__(self) -> None:
        self.kept = False
        self._sums: Ints = np.zeros((len(_COUNTED), 0), np.int64)
        # What was counted, by row and pod: limits may have changed since without a word. For a moment there
        # are two of a pod that has changed, as the new one is counted before the old one leaves.
        self._counted: dict[tuple[int, str], list[Beyond]] = {}

    def resize(self, size: int) -> None:
        self._sums = np.pad(self._sums, ((0, 0), (0, size - self._sums.shape[1])))

    def keep(self, there: Iterable[Placed]) -> None:
        """Count from now on, beginning with the pods that are there."""
        if not self.kept:
            self.kept = True
            for placed in there:
                self.count(placed, 1)

    def count(self, placed: Placed, sign: int) -> None:
        """A pod has come to its row, or leaves it."""
        key = (placed.row, placed.info.pod.key)
        counted = self._counted.setdefault(key, [])
        if sign > 0:
            beyond = beyond_requests(placed.info)
            counted.append(beyond)
        else:
            beyond = counted.pop(0)
        self._sums[:, placed.row] += np.multiply(beyond, sign)
        if not counted:
            del self._counted[key]

    def beyond(self, nodes: "Nodes", column: int) -> Any:
        """Of cpu or memory. With `requested` it is the limits, each of them no less than the request."""
        return nodes.take(self._sums[_PLACES[column]])


def beyond_requests(info: PodInfo) -> Beyond:
    """What the pod may use of cpu and memory besides what it asks for; nothing if it has no limit."""
    limits = _limits(info.pod)
    return tuple(
        max(0, column_amount(resource, limits.get(resource, 0)) - info.requests.get(resource, 0))
        for resource in _COUNTED.values()
    )


def _limits(pod: Pod) -> Mapping[str, int]:
    """In thousandths, counted as requests are; a container without a limit adds nothing."""
    spec = pod.spec
    running = _sum(_amounts(each) for each in spec.containers)
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for each in spec.init_containers:
        starting = _sum((sidecars, _amounts(each)))
        peak = {r: max(peak.get(r, 0), amount) for r, amount in starting.items()}
        if each.restart_policy == "Always":
            running, sidecars = _sum((running, _amounts(each))), starting
    limits = {r: max(running.get(r, 0), peak.get(r, 0)) for r in running | peak}
    if spec.resources is not None:
        limits |= _read(spec.resources.limits)
    overhead = _read(spec.overhead)
    return {r: amount + overhead.get(r, 0) for r, amount in limits.items() if amount}


def _amounts(container: Container) -> dict[str, int]:
    return _read(container.resources.limits)


def _read(quantities: Mapping[str, str]) -> dict[str, int]:
    """What cannot be read counts as nothing."""
    amounts = {}
    for resource in _COUNTED.values():
        if resource in quantities:
            try:
                amounts[resource] = thousandths(quantities[resource])
            except InvalidQuantity:
                continue
    return amounts


def _sum(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for resource, amount in part.items():
            total[resource] = total.get(resource, 0) + amount
    return total
