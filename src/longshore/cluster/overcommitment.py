"""How much more than their requests the pods of each row may use: the sum of limits minus requests.

Only plugins that care about overcommitment read it, so nothing is counted until one of them asks for it.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from longshore.api import Container, InvalidQuantity, Pod
from longshore.cluster.arrays import Ints
from longshore.cluster.placed_pod import PlacedPod
from longshore.cluster.pod_info import PodInfo
from longshore.cluster.resources import CPU, MEMORY, column_amount, thousandths

if TYPE_CHECKING:
    from longshore.cluster.nodes import Nodes

_COUNTED = {CPU: "cpu", MEMORY: "memory"}
_PLACES = {column: place for place, column in enumerate(_COUNTED)}

Beyond = tuple[int, ...]


class LimitTable:
    """The sums by row. `kept`: whether they are being counted."""

    def __init__(self) -> None:
        self.kept = False
        self._sums: Ints = np.zeros((len(_COUNTED), 0), np.int64)
        # What was counted, by row and pod: a change that affects only the limits is not counted again. While
        # a pod changes it has two entries, because its new version is added before the old one is removed.
        self._counted: dict[tuple[int, str], list[Beyond]] = {}

    def resize(self, size: int) -> None:
        self._sums = np.pad(self._sums, ((0, 0), (0, size - self._sums.shape[1])))

    def keep(self, there: Iterable[PlacedPod]) -> None:
        """Start to count, beginning with the pods that are already placed."""
        if not self.kept:
            self.kept = True
            for placed in there:
                self.count(placed, 1)

    def count(self, placed: PlacedPod, sign: int) -> None:
        """Count a pod that was added to its row (sign 1) or removed from it (sign -1)."""
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
        """Return the sums for cpu or memory. Added to `requested` they are the limits of the pods."""
        return nodes.take(self._sums[_PLACES[column]])


def beyond_requests(info: PodInfo) -> Beyond:
    """Return how much more cpu and memory than requested the pod may use; 0 for a resource with no limit."""
    limits = _limits(info.pod)
    return tuple(
        max(0, column_amount(resource, limits.get(resource, 0)) - info.requests.get(resource, 0))
        for resource in _COUNTED.values()
    )


def _limits(pod: Pod) -> Mapping[str, int]:
    """Return the limits in thousandths, counted like requests. A container without a limit adds nothing."""
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
    """Return the amounts in thousandths. An invalid quantity is ignored."""
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
