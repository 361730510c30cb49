"""Pods that are promised a node: room was made for them there, and they are to be tried on it first."""

from collections.abc import Callable, Collection

from longshore.cluster.podinfo import PodInfo


class Nominations:
    """`changed` is called with the name of a node whose nominations are others now."""

    def __init__(self, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self._nodes: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def on(self, node: str) -> Collection[PodInfo]:
        return self._by_node.get(node, {}).values()

    def node_of(self, uid: str) -> str | None:
        return self._nodes.get(uid)

    def nodes(self) -> Collection[str]:
        return self._by_node.keys()

    def add(self, info: PodInfo, node: str) -> None:
        """The pod is nominated to the node, and to no other any more."""
        uid = info.pod.metadata.uid
        self.remove(uid)
        self._nodes[uid] = node
        self._by_node.setdefault(node, {})[uid] = info
        self._changed(node)

    def remove(self, uid: str) -> None:
        node = self._nodes.pop(uid, None)
        if node is None:
            return
        pods = self._by_node[node]
        del pods[uid]
        if not pods:
            del self._by_node[node]
        self._changed(node)
