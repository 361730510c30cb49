"""VolumeRestrictions: disks that two pods on a node cannot share, and ReadWriteOncePod claims."""

from collections.abc import Iterable

from longshore.api import PersistentVolumeClaim, Pod, Volume
from longshore.cluster import ClusterState, OneNode, PodInfo
from longshore.framework import SKIP, Action, CycleState, Resource, Scope, Status, WakeOn
from longshore.plugins.volumes.claims import named_claims, not_found

NAME = "VolumeRestrictions"
DISK_CONFLICT = "node(s) had no available disk"
ONE_POD_CONFLICT = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by"
    " another pod"
)

_READ_WRITE_ONCE_POD = "ReadWriteOncePod"


class _OnePodClaims:
    """The ReadWriteOncePod claims of the pod, and how often other pods use them."""

    def __init__(self, claims: frozenset[str], users: int) -> None:
        self.claims = claims
        self.users = users

    def clone(self) -> "_OnePodClaims":
        return _OnePodClaims(self.claims, self.users)

    def count(self, pod: Pod, number: int) -> None:
        # Compared by name alone, whatever the namespace, as kube-scheduler does.
        self.users += number * sum(name in self.claims for name in named_claims(pod))


class VolumeRestrictions:
    """Filter: no pod on the node uses a disk of this pod, and no other pod its ReadWriteOncePod claims."""

    name = NAME
    scope = Scope.CLUSTER

    def __init__(self) -> None:
        self.wakes_on = (
            WakeOn(Resource.POD, Action.DELETE, _pod_in_the_way_left),
            WakeOn(Resource.NODE, Action.ADD),
            WakeOn(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, _own_claim),
        )

    def concerns(self, pod: PodInfo) -> bool:
        return any(v.persistent_volume_claim is not None or _is_disk(v) for v in pod.pod.spec.volumes)

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> Status | None:
        namespace = pod.pod.metadata.namespace
        alone = set()
        for name in named_claims(pod.pod):
            claim = cluster.get(PersistentVolumeClaim, f"{namespace}/{name}")
            if claim is None:
                return Status.unresolvable(not_found(PersistentVolumeClaim, name))
            if _READ_WRITE_ONCE_POD in claim.spec.access_modes:
                alone.add(name)
        users = sum(cluster.claim_in_use(f"{namespace}/{name}") for name in alone)
        if not users and not any(_is_disk(volume) for volume in pod.pod.spec.volumes):
            return SKIP
        state[NAME] = _OnePodClaims(frozenset(alone), users)
        return None

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: OneNode) -> None:
        state[NAME].count(added.pod, 1)

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: OneNode) -> None:
        state[NAME].count(removed.pod, -1)

    def filter_node(self, state: CycleState, pod: PodInfo, node: OneNode) -> str | None:
        if _conflicts(pod.pod, (other.pod for other in node.pods)):
            return DISK_CONFLICT
        return ONE_POD_CONFLICT if state[NAME].users > 0 else None


def _is_disk(volume: Volume) -> bool:
    return (
        volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.rbd is not None
        or volume.iscsi is not None
    )


def _conflicts(pod: Pod, others: Iterable[Pod]) -> bool:
    """Whether one of the other pods uses a disk of the pod in a way that conflicts."""
    disks = [volume for volume in pod.spec.volumes if _is_disk(volume)]
    if not disks:
        return False
    return any(
        _same(disk, held)
        for other in others
        if other.spec.volumes
        for held in other.spec.volumes
        for disk in disks
    )


def _same(a: Volume, b: Volume) -> bool:
    """Whether both are the same disk and cannot be shared. Most can be if both are read-only."""
    if a.gce_persistent_disk is not None and b.gce_persistent_disk is not None:
        gce, other_gce = a.gce_persistent_disk, b.gce_persistent_disk
        if gce.pd_name == other_gce.pd_name and not (gce.read_only and other_gce.read_only):
            return True
    if a.aws_elastic_block_store is not None and a.aws_elastic_block_store == b.aws_elastic_block_store:
        return True
    if a.iscsi is not None and b.iscsi is not None:
        iscsi, other_iscsi = a.iscsi, b.iscsi
        if iscsi.iqn == other_iscsi.iqn and not (iscsi.read_only and other_iscsi.read_only):
            return True
    if a.rbd is not None and b.rbd is not None:
        rbd, other_rbd = a.rbd, b.rbd
        return (
            not set(rbd.monitors).isdisjoint(other_rbd.monitors)
            and (rbd.pool, rbd.image) == (other_rbd.pool, other_rbd.image)
            and not (rbd.read_only and other_rbd.read_only)
        )
    return False


def _pod_in_the_way_left(pod: Pod, old: Pod, new: None) -> bool:
    return old.metadata.namespace == pod.metadata.namespace and (
        _conflicts(pod, (old,)) or not set(named_claims(pod)).isdisjoint(named_claims(old))
    )


def _own_claim(pod: Pod, old: None, new: PersistentVolumeClaim) -> bool:
    meta = new.metadata
    return meta.namespace == pod.metadata.namespace and meta.name in named_claims(pod)
