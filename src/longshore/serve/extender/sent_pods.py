"""The pods of nodes that come with requests. A kube-scheduler sends nodes without them; our own watch knows
them, and nodes of the same name are taken to have them.
"""

from longshore.cluster import ClusterState


class SentPods:
    """`watched` is the cluster of our own watch, `sent` the nodes that came with requests."""

    def __init__(self, watched: ClusterState, sent: ClusterState) -> None:
        self._watched = watched
        self._sent = sent
        self._position = watched.journal.position
        # By row of the watched cluster. Rows are given to other names.
        self._names: dict[int, str] = {}
        if watched.limits.kept:
            sent.keep_limits()

    def catch_up(self) -> None:
        """Nodes that were sent before have the pods that they have by now."""
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
        """The node of this name has the pods that the watch knows, also if it is yet to come."""
        there, here = self._watched.row(name), self._sent.row(name)
        if there is not None:
            self._names[there] = name
        pods = {} if there is None else {info.pod.key: info for info in self._watched.pods_on(there)}
        before = {} if here is None else {info.pod.key: info for info in self._sent.pods_on(here)}
        for key in before.keys() - pods.keys():
            if here is not None and self._sent.measures:
                # Of assumed pods, as all are here, the cluster would not tell.
                self._sent.measures.pod_gone(here, before[key].requests)
            self._sent.remove_pod(before[key].pod)
        for key, info in pods.items():
            if before.get(key) is not info:
                # Not `add_pod`: what was worked out about the pod is shared.
                self._sent.assume(info, name)
