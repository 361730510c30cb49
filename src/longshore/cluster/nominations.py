"""The pods that are nominated to a node: room was made for them there, and they are tried on it first."""

from collections.abc import Callable, Collection, Mapping

import numpy as np

from longshore.cluster.arrays import Ints
from longshore.cluster.pod_info import PodInfo

_FIRST_PLACES = 64
# Columns for the use that scoring assumes, in addition to those named after resources.
NONZERO = ("nonzero cpu", "nonzero memory")


class NominatedRequests:
    """The requests, by node, of the nominated pods with at least this priority.

    They are columns that are updated with the nominations, because many pods may be tried while many are
    nominated. `places` maps the name of a node to its index in the columns.
    """

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.places: dict[str, int] = {}
        self._columns: dict[str, Ints] = {}
        self._size = _FIRST_PLACES
        self._free: list[int] = []

    def amounts(self, resource: str) -> Ints | None:
        """Return the amount for each place, or None if no nominated pod requests the resource."""
        return self._columns.get(resource)

    def put(self, node: str, pods: Collection[PodInfo]) -> None:
        counting = [info for info in pods if info.pod.spec.priority >= self.priority]
        place = self.places.get(node)
        if not counting:
            if place is not None:
                del self.places[node]
                self._free.append(place)
            return
        if place is None:
            place = self.places[node] = self._free.pop() if self._free else len(self.places)
            if place >= self._size:
                self._grow()
        for column in self._columns.values():
            column[place] = 0
        for info in counting:
            for resource, amount in (*info.requests.items(), *zip(NONZERO, info.nonzero, strict=True)):
                if resource not in self._columns:
                    self._columns[resource] = np.zeros(self._size, np.int64)
                self._columns[resource][place] += amount

    def _grow(self) -> None:
        self._size *= 2
        self._columns = {
            resource: np.concatenate([column, np.zeros_like(column)])
            for resource, column in self._columns.items()
        }


class Nominations:
    """The nominated pods. `changed` is called with the name of a node whenever its nominations change."""

    def __init__(self, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self._nodes: dict[str, str] = {}
        self._requests: dict[int, NominatedRequests] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def on(self, node: str) -> Collection[PodInfo]:
        return self._by_node.get(node, _NO_PODS).values()

    def node_of(self, uid: str) -> str | None:
        return self._nodes.get(uid)

    def nodes(self) -> Collection[str]:
        return self._by_node.keys()

    def requests(self, priority: int) -> NominatedRequests:
        """Return the requests of the nominated pods that a pod of this priority must leave room for."""
        requests = self._requests.get(priority)
        if requests is None:
            if len(self._requests) >= _PRIORITIES:
                self._requests.clear()
            requests = self._requests[priority] = NominatedRequests(priority)
            for node in self._by_node:
                requests.put(node, self.on(node))
        return requests

    def add(self, info: PodInfo, node: str) -> None:
        """Nominate the pod to this node, instead of any other."""
        uid = info.pod.metadata.uid
        self.remove(uid)
        self._nodes[uid] = node
        self._by_node.setdefault(node, {})[uid] = info
        self._tell(node)

    def remove(self, uid: str) -> None:
        node = self._nodes.pop(uid, None)
        if node is None:
            return
        pods = self._by_node[node]
        del pods[uid]
        if not pods:
            del self._by_node[node]
        self._tell(node)

    def _tell(self, node: str) -> None:
        for requests in self._requests.values():
            requests.put(node, self.on(node))
        self._changed(node)


_NO_PODS: Mapping[str, PodInfo] = {}
# The most priorities whose requests are cached.
_PRIORITIES = 8
