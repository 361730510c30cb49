"""NodeVolumeLimits: the number of volumes that each CSI driver can attach to a node is limited."""

from collections import Counter

import numpy as np

from longshore.api import CSINode, PersistentVolumeClaim, Pod, VolumeAttachment
from longshore.cluster import ClusterState, Nodes, OneNode, PodInfo
from longshore.cluster.arrays import Bools
from longshore.framework import SKIP, Action, CycleState, Rejection, Resource, Scope, Status, WakeOn
from longshore.plugins.nodevolumelimits.attached import AttachedVolumes, limits_of
from longshore.plugins.nodevolumelimits.volumes import Attached, ClaimMissing, UnusableVolume, volumes_of
from longshore.plugins.volumes import csi_migration
from longshore.plugins.volumes.claims import needs_claim, uses_claims

NAME = "NodeVolumeLimits"
REASON = "node(s) exceed max volume count"


class _Wanted:
    """The pod's volumes, and the pods of the rows to which pods were added or removed in a dry run."""

    def __init__(
        self,
        volumes: frozenset[Attached],
        imagined: dict[int, dict[str, Pod]],
        problem: UnusableVolume | None = None,
    ) -> None:
        self.volumes = volumes
        self.imagined = imagined
        self.problem = problem

    def clone(self) -> "_Wanted":
        imagined = {row: dict(pods) for row, pods in self.imagined.items()}
        return _Wanted(self.volumes, imagined, self.problem)

    def pods(self, node: OneNode) -> dict[str, Pod]:
        """Return the pods by UID, as a dict that the caller may change."""
        pods = self.imagined.get(node.row)
        if pods is None:
            on_node = node.cluster.pods_on(node.row)
            pods = self.imagined[node.row] = {info.pod.metadata.uid: info.pod for info in on_node}
        return pods


class NodeVolumeLimits:
    """Filter: the node can attach the pod's volumes in addition to those that it has."""

    name = NAME
    scope = Scope.CLUSTER

    def __init__(self) -> None:
        self.wakes_on = (
            WakeOn(Resource.CSI_NODE, Action.ADD),
            WakeOn(Resource.CSI_NODE, Action.UPDATE, _limit_raised),
            WakeOn(Resource.POD, Action.DELETE, _pod_with_volumes_left),
            WakeOn(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, _own_claim),
            WakeOn(Resource.VOLUME_ATTACHMENT, Action.DELETE, _volume_detached),
        )
        self._attached = AttachedVolumes()

    def concerns(self, pod: PodInfo) -> bool:
        return _attaches(pod.pod)

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> Status | None:
        try:
            wanted = volumes_of(pod.pod, cluster, incoming=True)
        except UnusableVolume as problem:
            # Reported by the filter, because VolumeBinding's PreFilter comes later and has a better message.
            state[NAME] = _Wanted(frozenset(), {}, problem)
            return None
        if not wanted:
            return SKIP
        self._attached.follow(cluster)
        state[NAME] = _Wanted(wanted, {})
        return None

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: OneNode) -> None:
        state[NAME].pods(node)[added.pod.metadata.uid] = added.pod

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: OneNode) -> None:
        state[NAME].pods(node).pop(removed.pod.metadata.uid, None)

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> list[Rejection]:
        wanted: _Wanted = state[NAME]
        match wanted.problem:
            case ClaimMissing() as missing:
                return [Rejection(str(missing), True, unresolvable=True)]
            case UnusableVolume() as problem:
                raise problem
        attached, volumes = self._attached, wanted.volumes
        if attached.problem:
            raise UnusableVolume(attached.problem)
        exceeded: Bools = np.zeros(len(nodes), np.bool_)
        for driver, more in Counter(driver for driver, _ in volumes).items():
            limits = attached.limits(driver)
            if limits is not None:
                exceeded |= nodes.take(attached.counts(driver)) + more > nodes.take(limits)
        # Nodes that already have some of the volumes, or other pods in a dry run, are counted one by one.
        special = attached.rows_using(volumes) | wanted.imagined.keys()
        if special:
            numbers = nodes.numbers
            for place in np.flatnonzero(np.isin(numbers, list(special))).tolist():
                row = int(numbers[place])
                pods = wanted.imagined.get(row)
                found = attached.row(row)
                if pods is not None and found.limits:
                    found = attached.imagined(row, pods.values(), nodes.cluster)
                exceeded[place] = found.exceeded_by(volumes)
        return [Rejection(REASON, exceeded)]


def _attaches(pod: Pod) -> bool:
    return uses_claims(pod) or any(csi_migration.plugin_of(volume) for volume in pod.spec.volumes)


def _limit_raised(pod: Pod, old: CSINode, new: CSINode) -> bool:
    before = limits_of(old)
    return any(limit > before.get(driver, 0) for driver, limit in limits_of(new).items())


def _pod_with_volumes_left(pod: Pod, old: Pod, new: None) -> bool:
    return bool(old.spec.node_name or old.status.nominated_node_name) and _attaches(old)


def _own_claim(pod: Pod, old: None, new: PersistentVolumeClaim) -> bool:
    return needs_claim(pod, new)


def _volume_detached(pod: Pod, old: VolumeAttachment, new: None) -> bool:
    return any(
        volume.persistent_volume_claim is not None
        or csi_migration.DRIVERS.get(csi_migration.plugin_of(volume)) == old.spec.attacher
        for volume in pod.spec.volumes
    )
