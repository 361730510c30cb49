"""The pods on nodes that are sent in requests.

kube-scheduler sends nodes without their pods, so the pods come from the node of the same name in our own
watch.
"""

from longshore.cluster import ClusterState


class SentPods:
    """Copies pods from the `watched` cluster to the nodes that were `sent` in requests."""

    def __init__(self, watched: ClusterState, sent: ClusterState) -> None:
        self._watched = watched
        self._sent = sent
        self._position = watched.journal.position
        # Node names by row of the watched cluster, because a row can be reused for another node.
        self._names: dict[int, str] = {}
        if watched.limits.kept:
            sent.keep_limits()

    def catch_up(self) -> None:
        """Update the pods of all nodes that were sent."""
        rows = self._watched.journal.rows_since(self._position)
        self._position = self._watched.journal.position
        if rows is None:
            names = set(self._sent.all_nodes().names)
        else:
            names = {self._names.get(row, "") for row in rows} | set(map(self._watched.node_name, rows))
        for name in names:
            if self._sent.row(name) is not None:
                self.put(name)

    def put(self, name: str) -> None:
        """Give the node with this name the pods that the watch knows, even before the node is sent."""
        watched_row, sent_row = self._watched.row(name), self._sent.row(name)
        if watched_row is not None:
            self._names[watched_row] = name
        pods = {} if watched_row is None else {i.pod.key: i for i in self._watched.pods_on(watched_row)}
        before = {} if sent_row is None else {i.pod.key: i for i in self._sent.pods_on(sent_row)}
        for key in before.keys() - pods.keys():
            if sent_row is not None and self._sent.measures:
                # The cluster does not report it, because all pods here are assumed.
                self._sent.measures.pod_gone(sent_row, before[key].requests)
            self._sent.remove_pod(before[key].pod)
        for key, info in pods.items():
            if before.get(key) is not info:
                # Not `add_pod`, so that the PodInfo is shared.
                self._sent.assume(info, name)
