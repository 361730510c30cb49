"""VolumeBinding: bound volumes must be reachable from the node; others are found or provisioned for it.

A claim whose class waits for its first consumer gets the smallest free volume that the node can reach, or a
new one is provisioned there. This is decided when the node is chosen. Before the pod is bound, it is written
to the volume or the claim, and the plugin waits until the volume controller has bound them.
"""

from collections.abc import Generator

import numpy as np

from longshore.api import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
)
from longshore.cluster import ClusterState, Nodes, PodInfo
from longshore.cluster.arrays import Bools
from longshore.framework import SKIP, Action, CycleState, Handle, Rejection, Resource, Scope, Status, WakeOn
from longshore.framework.effects import Ask, Conflict, Failed, Gone, Outcome, Until
from longshore.plugins.volumebinding.assumed import Assumed
from longshore.plugins.volumebinding.claims import PodClaims, problem_with_claims, sort_claims
from longshore.plugins.volumebinding.matching import VolumeIndex, assign, unmatched
from longshore.plugins.volumebinding.provisioning import in_place, largest_volume, with_room
from longshore.plugins.volumebinding.writes import Binding, Provision, Reservation
from longshore.plugins.volumes import csi_migration
from longshore.plugins.volumes.claims import SELECTED_NODE, needs_claim, uses_claims
from longshore.plugins.volumes.topology import Places, nodes_of

NAME = "VolumeBinding"
OUT_OF_REACH = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_ROOM = "node(s) did not have enough free storage"
VOLUME_MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
TIMED_OUT = "context deadline exceeded"

_RESERVED = f"{NAME}/reserved"


class VolumeBinding:
    """Filter: every claim has, or can get, a volume for the node. Reserve and PreBind: bind the volumes."""

    name = NAME
    scope = Scope.CLUSTER

    def __init__(self, *, handle: Handle, bind_timeout_seconds: int = 600) -> None:
        self.wakes_on = (
            WakeOn(Resource.STORAGE_CLASS, Action.ADD | Action.UPDATE, _class_allows_other_places),
            WakeOn(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD | Action.UPDATE, _own_claim),
            WakeOn(Resource.PERSISTENT_VOLUME, Action.ADD | Action.UPDATE),
            WakeOn(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            WakeOn(Resource.CSI_NODE, Action.ADD | Action.UPDATE, _plugins_migrated),
            WakeOn(Resource.CSI_DRIVER, Action.UPDATE, _driver_stopped_counting),
            WakeOn(Resource.CSI_STORAGE_CAPACITY, Action.ADD | Action.UPDATE, _room_grew),
        )
        self._handle = handle
        self._timeout = float(bind_timeout_seconds)
        self._claims = Assumed(PersistentVolumeClaim, self._cluster)
        self._volumes = Assumed(PersistentVolume, self._cluster)
        self._index = VolumeIndex(self._cluster, self._volumes)

    def concerns(self, pod: PodInfo) -> bool:
        return uses_claims(pod.pod)

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> Status | None:
        if not uses_claims(pod.pod):
            return SKIP
        problem = problem_with_claims(pod.pod, cluster)
        if problem:
            return Status.unresolvable(problem)
        claims = sort_claims(pod.pod, cluster, self._claims, self._index)
        if isinstance(claims, Status):
            return claims
        state[NAME] = claims
        return None

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> list[Rejection]:
        claims: PodClaims = state[NAME]
        out_of_reach, volume_missing = self._bound_elsewhere(claims, nodes)
        no_volume, no_room = _unavailable(claims, nodes)
        return [
            Rejection(OUT_OF_REACH, out_of_reach, unresolvable=True),
            Rejection(NO_VOLUME, no_volume, unresolvable=True),
            Rejection(NO_ROOM, no_room, unresolvable=True),
            Rejection(VOLUME_MISSING, volume_missing, unresolvable=True),
        ]

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        claims: PodClaims | None = state.get(NAME)
        if claims is None or claims.all_bound:
            return
        cluster = self._cluster()
        row = cluster.row(node)
        there = None if row is None else cluster.node(row)
        chosen = [None] * len(claims.waiting) if there is None else assign(claims.waiting, there)
        pairs = list(zip(claims.waiting, chosen, strict=True))
        to_make = [*claims.promised, *(found.claim for found, volume in pairs if volume is None)]
        # The reported versions, not the assumed ones: the write of another pod may still fail.
        reservation = Reservation(
            node,
            tuple(
                Binding.of(found.claim, cluster.get(PersistentVolume, volume.key) or volume)
                for found, volume in pairs
                if volume is not None
            ),
            tuple(
                Provision.of(cluster.get(PersistentVolumeClaim, claim.key) or claim, node)
                for claim in to_make
            ),
        )
        for binding in reservation.bindings:
            if binding.write is not None:
                self._volumes.assume(binding.after)
        for provision in reservation.provisions:
            if provision.write is not None:
                self._claims.assume(provision.after)
        state[_RESERVED] = reservation

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        reservation: Reservation | None = state.pop(_RESERVED, None)
        if reservation is None:
            return
        # What was written stays assumed until the watch reports it, so that no other pod takes it meanwhile.
        for binding in reservation.bindings:
            if not binding.written:
                self._volumes.restore(binding.after)
        for provision in reservation.provisions:
            if not provision.written:
                self._claims.restore(provision.after)

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        return None if _RESERVED in state else SKIP

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Generator[Ask, Outcome, Status | None]:
        reservation: Reservation | None = state.get(_RESERVED)
        if reservation is None:
            return None
        changes: tuple[Binding | Provision, ...] = (*reservation.bindings, *reservation.provisions)
        for change in changes:
            write = change.write
            if write is None:
                continue
            outcome = yield write
            if isinstance(outcome, Conflict | Gone | Failed):
                return Status.error(outcome.message)
            change.written = True
        outcome = yield Until(lambda: reservation.outcome(pod.pod, self._cluster()), self._timeout, TIMED_OUT)
        if isinstance(outcome, Conflict | Gone | Failed):
            return Status.error(f"binding volumes: {outcome.message}")
        return None

    def _cluster(self) -> ClusterState:
        return self._handle.cluster

    def _bound_elsewhere(self, claims: PodClaims, nodes: Nodes) -> tuple[Bools, Bools]:
        """Return the nodes that cannot reach a bound volume, and those for which a volume is missing.

        kube-scheduler checks the claims in order: it reports a missing volume on nodes that reach all before
        it.
        """
        out_of_reach = np.zeros(len(nodes), np.bool_)
        for claim in claims.bound:
            volume = self._volumes.get(claim.spec.volume_name)
            if volume is None:
                return out_of_reach, ~out_of_reach
            out_of_reach |= ~_in_reach(volume, nodes)
        return out_of_reach, np.zeros(len(nodes), np.bool_)


def _in_reach(volume: PersistentVolume, nodes: Nodes) -> Bools:
    found = Places(nodes_of(volume)).where(nodes)
    plugin = csi_migration.plugin_of(volume.spec)
    if not plugin:
        return found
    cluster = nodes.cluster
    migrated = np.zeros(len(cluster.known), np.bool_)
    for csi_node in cluster.objects(CSINode):
        row = cluster.row(csi_node.metadata.name)
        if row is not None:
            migrated[row] = csi_migration.migrated_on(csi_node, plugin)
    if not migrated.any():
        return found
    translated = Places(nodes_of(csi_migration.translated(volume))).where(nodes)
    return np.where(nodes.take(migrated), translated, found)


def _unavailable(claims: PodClaims, nodes: Nodes) -> tuple[Bools, Bools]:
    """Return the nodes on which a claim cannot get a volume, and those without room to provision it.

    Each node gets the reason of the first claim that fails there.
    """
    no_volume, no_room = np.zeros(len(nodes), np.bool_), np.zeros(len(nodes), np.bool_)
    if claims.all_bound:
        return no_volume, no_room
    for claim in claims.promised:
        row = nodes.cluster.row(claim.metadata.annotations[SELECTED_NODE])
        no_volume |= nodes.numbers != (-1 if row is None else row)
    to_make: list[tuple[PersistentVolumeClaim, Bools | bool]] = [(claim, True) for claim in claims.promised]
    for found, missing in zip(claims.waiting, unmatched(claims.waiting, nodes), strict=True):
        to_make.append((found.claim, missing))
    for claim, missing in to_make:
        needed = missing & ~(no_volume | no_room)
        if not needed.any():
            continue
        place = in_place(claim, nodes)
        no_volume |= needed & np.logical_not(place)
        no_room |= needed & place & np.logical_not(with_room(claim, nodes))
    return no_volume, no_room


def _class_allows_other_places(pod: Pod, old: StorageClass | None, new: StorageClass) -> bool:
    return old is None or old.allowed_topologies != new.allowed_topologies


def _own_claim(pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> bool:
    return needs_claim(pod, new)


def _plugins_migrated(pod: Pod, old: CSINode | None, new: CSINode) -> bool:
    key = csi_migration.MIGRATED_PLUGINS
    return old is None or old.metadata.annotations.get(key, "") != new.metadata.annotations.get(key, "")


def _driver_stopped_counting(pod: Pod, old: CSIDriver, new: CSIDriver) -> bool:
    return (
        old.spec.storage_capacity
        and not new.spec.storage_capacity
        and any(v.csi is not None and v.csi.driver == new.metadata.name for v in pod.spec.volumes)
    )


def _room_grew(pod: Pod, old: CSIStorageCapacity | None, new: CSIStorageCapacity) -> bool:
    if old is None:
        return True
    before, now = largest_volume(old), largest_volume(new)
    return now is not None and (before is None or now > before)
