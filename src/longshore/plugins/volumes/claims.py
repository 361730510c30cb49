"""Claims as the volume plugins see them, and kube-scheduler's messages about them."""

from longshore.api import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass

SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"

# The annotation that named the class before there was a field for it. It still takes precedence.
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_KINDS = {
    PersistentVolumeClaim: "persistentvolumeclaim",
    PersistentVolume: "persistentvolume",
    StorageClass: "storageclass.storage.k8s.io",
}


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    return claim.metadata.annotations.get(_OLD_CLASS, claim.spec.storage_class_name or "")


def class_of_volume(volume: PersistentVolume) -> str:
    return volume.metadata.annotations.get(_OLD_CLASS, volume.spec.storage_class_name)


def fully_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def belongs_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a user or a controller has reserved the volume for the claim."""
    kept, meta = volume.spec.claim_ref, claim.metadata
    return (
        kept is not None
        and kept.name == meta.name
        and kept.namespace == meta.namespace
        and kept.uid in ("", meta.uid)
    )


def uses_claims(pod: Pod) -> bool:
    """Whether a volume of the pod uses a claim, including claims for ephemeral volumes."""
    return any(v.persistent_volume_claim is not None or v.ephemeral is not None for v in pod.spec.volumes)


def named_claims(pod: Pod) -> list[str]:
    """Return the names of the claims in the pod's spec, without those for ephemeral volumes."""
    claims = (volume.persistent_volume_claim for volume in pod.spec.volumes)
    return [claim.claim_name for claim in claims if claim is not None]


def needs_claim(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Whether one of the pod's volumes uses the claim."""
    meta = claim.metadata
    return meta.namespace == pod.metadata.namespace and any(
        volume.claim_of(pod.metadata.name) == meta.name
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None or volume.ephemeral is not None
    )


def not_found(kind: type[PersistentVolumeClaim | PersistentVolume | StorageClass], name: str) -> str:
    return f'{_KINDS[kind]} "{name}" not found'


def not_made_for(pod: Pod, claim: PersistentVolumeClaim) -> str:
    """Return why the claim was not created for an ephemeral volume of the pod; empty if it was."""
    owner = claim.metadata.controller
    if owner is not None and owner.uid == pod.metadata.uid:
        return ""
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"
