"""VolumeZone: a pod runs only on nodes in the zone and region of its volumes.

It reads the labels of old volumes. Newer volumes have a node affinity, which VolumeBinding checks.
"""

import numpy as np

from longshore.api import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
)
from longshore.cluster import ClusterState, Nodes, PodInfo
from longshore.cluster.arrays import Bools
from longshore.cluster.labels import ABSENT
from longshore.framework import SKIP, Action, CycleState, Rejection, Resource, Scope, Status, WakeOn
from longshore.plugins.volumes.claims import WAIT_FOR_FIRST_CONSUMER, class_of_claim, named_claims, not_found
from longshore.plugins.volumes.csi_migration import OLD_REGION, OLD_ZONE, REGION, ZONE, ZONE_DELIMITER

NAME = "VolumeZone"
REASON = "node(s) had no available volume zone"
NO_CLAIM_NAME = "PersistentVolumeClaim had no name"
NO_VOLUME_NOR_CLASS = "PersistentVolumeClaim had no pv name and storageClass name"
NO_VOLUME = "PersistentVolume had no name"

_NEWER = {OLD_ZONE: ZONE, OLD_REGION: REGION}
_KEYS = (OLD_ZONE, OLD_REGION, ZONE, REGION)

# A label that the node must have, with the values that it may have.
_Topology = tuple[str, tuple[str, ...]]


class VolumeZone:
    """Filter: the node is in the zone and region of each volume. A node without such labels passes."""

    name = NAME
    scope = Scope.CLUSTER

    def __init__(self) -> None:
        self.wakes_on = (
            WakeOn(Resource.STORAGE_CLASS, Action.ADD, _class_waits),
            WakeOn(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            WakeOn(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD | Action.UPDATE, _own_claim),
            WakeOn(Resource.PERSISTENT_VOLUME, Action.ADD | Action.UPDATE, _zone_changed),
        )

    def concerns(self, pod: PodInfo) -> bool:
        return bool(named_claims(pod.pod))

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> Status | None:
        wanted: list[_Topology] = []
        for claim in named_claims(pod.pod):
            found = _topologies_of_claim(pod.pod, claim, cluster)
            if isinstance(found, Status):
                return found
            wanted += found
        if not wanted:
            return SKIP
        state[NAME] = wanted
        return None

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> list[Rejection]:
        wrong: Bools = np.zeros(len(nodes), np.bool_)
        for key, values in state[NAME]:
            wrong |= ~_has(nodes, key, values)
        # A node without such labels passes: the cluster then has only one zone.
        placed: Bools = np.zeros(len(nodes), np.bool_)
        for key in _KEYS:
            placed |= nodes.take(nodes.cluster.labels.column(key)) != ABSENT
        return [Rejection(REASON, wrong & placed, unresolvable=True)]


def _topologies_of_claim(pod: Pod, name: str, cluster: ClusterState) -> list[_Topology] | Status:
    if not name:
        return Status.unresolvable(NO_CLAIM_NAME)
    claim = cluster.get(PersistentVolumeClaim, f"{pod.metadata.namespace}/{name}")
    if claim is None:
        return Status.unresolvable(not_found(PersistentVolumeClaim, name))
    if claim.spec.volume_name:
        volume = cluster.get(PersistentVolume, claim.spec.volume_name)
        if volume is None:
            return Status.unresolvable(not_found(PersistentVolume, claim.spec.volume_name))
        return _topologies(volume)
    class_name = class_of_claim(claim)
    if not class_name:
        return Status.unresolvable(NO_VOLUME_NOR_CLASS)
    storage_class = cluster.get(StorageClass, class_name)
    if storage_class is None:
        return Status.unresolvable(not_found(StorageClass, class_name))
    if storage_class.volume_binding_mode is None:
        return Status.unresolvable(f'VolumeBindingMode not set for StorageClass "{class_name}"')
    return [] if _class_waits(pod, None, storage_class) else Status.unresolvable(NO_VOLUME)


def _topologies(volume: PersistentVolume) -> list[_Topology]:
    labels = volume.metadata.labels
    found = []
    for key in _KEYS:
        if key in labels:
            values = tuple(value.strip() for value in labels[key].split(ZONE_DELIMITER))
            if all(values):
                found.append((key, values))
    return found


def _has(nodes: Nodes, key: str, values: tuple[str, ...]) -> Bools:
    labels = nodes.cluster.labels
    found = labels.matches_selector(_label(key, values), nodes.rows)
    newer = _NEWER.get(key)
    if newer is not None:
        unsaid = nodes.take(labels.column(key)) == ABSENT
        found = found | (unsaid & labels.matches_selector(_label(newer, values), nodes.rows))
    return found


def _label(key: str, values: tuple[str, ...]) -> NodeSelector:
    return NodeSelector((NodeSelectorTerm((NodeSelectorRequirement(key, "In", values),)),))


def _class_waits(pod: Pod, old: StorageClass | None, new: StorageClass) -> bool:
    return new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _own_claim(pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> bool:
    meta = new.metadata
    return meta.namespace == pod.metadata.namespace and meta.name in named_claims(pod)


def _zone_changed(pod: Pod, old: PersistentVolume | None, new: PersistentVolume) -> bool:
    # Compared as sets, because the order of the zones in a label does not matter.
    return old is None or _as_sets(old) != _as_sets(new)


def _as_sets(volume: PersistentVolume) -> list[tuple[str, frozenset[str]]]:
    return [(key, frozenset(values)) for key, values in _topologies(volume)]
