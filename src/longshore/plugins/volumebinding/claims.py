"""The claims of a pod, sorted by what has to be done for them."""

import msgspec

from longshore.api import InvalidSelector, PersistentVolumeClaim, Pod, StorageClass
from longshore.cluster import ClusterState
from longshore.framework import Status
from longshore.plugins.volumebinding.assumed import Assumed
from longshore.plugins.volumebinding.matching import Candidates, VolumeIndex, size_of
from longshore.plugins.volumes.claims import (
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    class_of_claim,
    fully_bound,
    not_found,
    not_made_for,
)

UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


class PodClaims(msgspec.Struct, frozen=True):
    """The sorted claims of a pod, for one attempt."""

    bound: tuple[PersistentVolumeClaim, ...]
    # A volume will be provisioned for the node that the claim already names.
    promised: tuple[PersistentVolumeClaim, ...]
    # A volume must be found or provisioned. The smallest claim comes first.
    waiting: tuple[Candidates, ...]

    @property
    def all_bound(self) -> bool:
        return not self.promised and not self.waiting


def problem_with_claims(pod: Pod, cluster: ClusterState) -> str:
    """Return why the pod cannot use its claims, or an empty text if it can."""
    for volume in pod.spec.volumes:
        own = volume.persistent_volume_claim is None
        if own and volume.ephemeral is None:
            continue
        name = volume.claim_of(pod.metadata.name)
        claim = cluster.get(PersistentVolumeClaim, f"{pod.metadata.namespace}/{name}")
        if claim is None:
            if own:
                return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
            return not_found(PersistentVolumeClaim, name)
        if claim.status.phase == "Lost":
            lost = claim.spec.volume_name
            return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{lost}"'
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{name}" is being deleted'
        if own and (problem := not_made_for(pod, claim)):
            return problem
    return ""


def sort_claims(
    pod: Pod, cluster: ClusterState, claims: Assumed[PersistentVolumeClaim], index: VolumeIndex
) -> PodClaims | Status:
    """Return the sorted claims, or a status if the attempt cannot go on. The claims must have no problem."""
    bound: list[PersistentVolumeClaim] = []
    delayed: list[PersistentVolumeClaim] = []
    immediate = False
    for volume in pod.spec.volumes:
        name = volume.claim_of(pod.metadata.name)
        claim = claims.get(f"{pod.metadata.namespace}/{name}") if name else None
        if claim is None:
            continue
        if fully_bound(claim):
            bound.append(claim)
            continue
        storage_class = cluster.get(StorageClass, class_of_claim(claim))
        if storage_class is not None and storage_class.volume_binding_mode is None:
            return Status.error(f'VolumeBindingMode not set for StorageClass "{class_of_claim(claim)}"')
        waits = storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
        if waits and not claim.spec.volume_name:
            delayed.append(claim)
        else:
            immediate = True
    if immediate:
        return Status.unresolvable(UNBOUND_IMMEDIATE)
    promised = tuple(claim for claim in delayed if SELECTED_NODE in claim.metadata.annotations)
    waiting = sorted((claim for claim in delayed if claim not in promised), key=size_of)
    try:
        return PodClaims(tuple(bound), promised, tuple(index.candidates(claim) for claim in waiting))
    except InvalidSelector as error:
        return Status.error(f"error creating internal label selector for claim: {error}")
