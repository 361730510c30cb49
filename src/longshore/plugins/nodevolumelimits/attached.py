"""How many volumes each node has attached, in one column for each driver.

A row is computed again when its pods change, or a claim, a volume, an attachment, or a limit that it depends
on.
"""

from collections import Counter
from collections.abc import Iterable

import msgspec
import numpy as np

from longshore.api import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    VolumeAttachment,
)
from longshore.cluster import ClusterState
from longshore.cluster.arrays import Ints
from longshore.plugins.nodevolumelimits.volumes import Attached, UnusableVolume, behind, volumes_of

NO_LIMIT = int(np.iinfo(np.int64).max)

_KINDS = (PersistentVolumeClaim, PersistentVolume, StorageClass, VolumeAttachment, CSINode)


class Row(msgspec.Struct, frozen=True):
    """The volumes of a node that has limits. Nodes without limits are not examined."""

    limits: dict[str, int] = {}
    # The volumes that the pods on the node use.
    used: frozenset[Attached] = frozenset()
    # These, and the volumes that are attached according to the API server, even without a pod.
    held: frozenset[Attached] = frozenset()
    problem: str = ""

    def exceeded_by(self, wanted: frozenset[Attached]) -> bool:
        more, held = _by_driver(wanted - self.used), _by_driver(self.held)
        return any(
            held[driver] + more[driver] > limit for driver, limit in self.limits.items() if more[driver]
        )


_NOTHING = Row()


class AttachedVolumes:
    def __init__(self) -> None:
        self._start_over(0)

    def counts(self, driver: str) -> Ints:
        return self._counts[driver]

    def limits(self, driver: str) -> Ints | None:
        """Return the limit of each row, or NO_LIMIT; None if no node has a limit for the driver."""
        return self._limits.get(driver)

    def row(self, row: int) -> Row:
        return self._rows.get(row, _NOTHING)

    def imagined(self, row: int, pods: Iterable[Pod], cluster: ClusterState) -> Row:
        """Return the row as it would be with these pods."""
        now = self.row(row)
        used: frozenset[Attached] = frozenset().union(
            *(volumes_of(pod, cluster, incoming=False) for pod in pods)
        )
        return Row(now.limits, used, used | self._still_attached(cluster.node_name(row), cluster))

    def rows_using(self, volumes: Iterable[Attached]) -> set[int]:
        return {row for volume in volumes for row in self._used_on.get(volume, ())}

    @property
    def problem(self) -> str:
        """Why the volumes on some node cannot be determined."""
        return next(iter(self._problems.values()), "")

    def follow(self, cluster: ClusterState) -> None:
        """Update the rows for which something has changed."""
        rows = self._changed_rows(cluster)
        if rows is None:
            rows = set(range(len(cluster.known)))
            self._start_over(len(rows))
            for attachment in cluster.objects(VolumeAttachment):
                self._put_attachment(attachment.key, attachment)
        for row in rows:
            self._look(row, cluster)
        self._position = cluster.journal.position
        self._versions.update((kind, cluster.version(kind)) for kind in _KINDS)

    def _start_over(self, size: int) -> None:
        self._size = size
        self._position = -1
        self._versions: dict[type, int] = {}
        self._rows: dict[int, Row] = {}
        self._problems: dict[int, str] = {}
        self._counts: dict[str, Ints] = {}
        self._limits: dict[str, Ints] = {}
        self._used_on: dict[Attached, set[int]] = {}
        self._looked_at: dict[tuple[type, str], set[int]] = {}
        self._attachments: dict[str, dict[str, VolumeAttachment]] = {}
        self._attached_to: dict[str, str] = {}

    def _changed_rows(self, cluster: ClusterState) -> set[int] | None:
        """Return the rows that changed; None means all of them."""
        changed = cluster.journal.rows_since(self._position)
        if changed is None:
            return None
        rows = set(changed)
        for kind in _KINDS:
            keys = cluster.changed_since(kind, self._versions.get(kind, 0))
            if keys is None or (keys and kind is StorageClass):
                return None
            for key in keys:
                if kind is CSINode:
                    rows |= _rows([key], cluster)
                elif kind is VolumeAttachment:
                    rows |= _rows(self._put_attachment(key, cluster.get(VolumeAttachment, key)), cluster)
                else:
                    rows |= self._looked_at.pop((kind, key), set())
        return rows

    def _put_attachment(self, key: str, attachment: VolumeAttachment | None) -> list[str]:
        """Update an attachment. Return the nodes that it was on and is on now."""
        before = self._attached_to.pop(key, "")
        if before:
            self._attachments[before].pop(key, None)
        after = "" if attachment is None else attachment.spec.node_name
        if attachment is not None and after:
            self._attached_to[key] = after
            self._attachments.setdefault(after, {})[key] = attachment
        return [before, after]

    def _look(self, row: int, cluster: ClusterState) -> None:
        old, new = self._rows.pop(row, _NOTHING), self._found(row, cluster)
        self._problems.pop(row, None)
        if new.limits:
            self._rows[row] = new
        if new.problem:
            self._problems[row] = new.problem
        for driver in old.limits | new.limits:
            limit = new.limits.get(driver, NO_LIMIT)
            self._limits.setdefault(driver, np.full(self._size, NO_LIMIT, np.int64))[row] = limit
            count = sum(volume[0] == driver for volume in new.held)
            self._counts.setdefault(driver, np.zeros(self._size, np.int64))[row] = count
        for volume in old.used - new.used:
            self._used_on[volume].discard(row)
            if not self._used_on[volume]:
                del self._used_on[volume]
        for volume in new.used - old.used:
            self._used_on.setdefault(volume, set()).add(row)

    def _found(self, row: int, cluster: ClusterState) -> Row:
        name = cluster.node_name(row)
        csi_node = cluster.get(CSINode, name) if cluster.known[row] else None
        limits = {} if csi_node is None else limits_of(csi_node)
        if not limits:
            return _NOTHING
        pods = [info.pod for info in cluster.pods_on(row) if info.pod.spec.volumes]
        for looked_at in (*behind(pods, cluster), *self._volumes_attached(name)):
            self._looked_at.setdefault(looked_at, set()).add(row)
        try:
            used: frozenset[Attached] = frozenset().union(
                *(volumes_of(pod, cluster, incoming=False) for pod in pods)
            )
        except UnusableVolume as problem:
            return Row(limits, problem=str(problem))
        return Row(limits, used, used | self._still_attached(name, cluster))

    def _volumes_attached(self, node: str) -> list[tuple[type, str]]:
        sources = (attachment.spec.source for attachment in self._attachments.get(node, {}).values())
        return [(PersistentVolume, source.persistent_volume_name or "") for source in sources]

    def _still_attached(self, node: str, cluster: ClusterState) -> frozenset[Attached]:
        found = set()
        for attachment in self._attachments.get(node, {}).values():
            spec = attachment.spec
            volume = cluster.get(PersistentVolume, spec.source.persistent_volume_name or "")
            if spec.attacher and volume is not None and volume.spec.csi is not None:
                found.add((spec.attacher, volume.spec.csi.volume_handle))
        return frozenset(found)


def limits_of(node: CSINode) -> dict[str, int]:
    return {
        driver.name: driver.allocatable.count
        for driver in node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _by_driver(volumes: Iterable[Attached]) -> Counter[str]:
    return Counter(driver for driver, _ in volumes)


def _rows(nodes: Iterable[str], cluster: ClusterState) -> set[int]:
    return {row for name in nodes if (row := cluster.row(name)) is not None}
