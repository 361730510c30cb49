"""The volumes that CSI drivers attach for a pod."""

from collections.abc import Iterable, Iterator

from longshore.api import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass, Volume
from longshore.cluster import ClusterState
from longshore.plugins.volumes import csi_migration
from longshore.plugins.volumes.claims import class_of_claim, not_found, not_made_for

NO_CLAIM_NAME = "PersistentVolumeClaim had no name"

# The CSI driver, and its handle of the volume.
Attached = tuple[str, str]


class UnusableVolume(Exception):
    """It cannot be determined which volumes a pod attaches."""


class ClaimMissing(UnusableVolume):
    pass


def volumes_of(pod: Pod, cluster: ClusterState, *, incoming: bool) -> frozenset[Attached]:
    """Return the volumes that CSI drivers attach for the pod."""
    found = set()
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is None and volume.ephemeral is None:
            attached = _inline(volume)
        else:
            claim = _claim(pod, volume, cluster, incoming=incoming)
            attached = None if claim is None else _of_claim(claim, cluster)
        if attached is not None:
            found.add(attached)
    return frozenset(found)


def _claim(
    pod: Pod, volume: Volume, cluster: ClusterState, *, incoming: bool
) -> PersistentVolumeClaim | None:
    name = volume.claim_of(pod.metadata.name)
    if not name:
        raise UnusableVolume(NO_CLAIM_NAME)
    key = f"{pod.metadata.namespace}/{name}"
    claim = cluster.get(PersistentVolumeClaim, key)
    if claim is None:
        if incoming:
            raise ClaimMissing(f"looking up PVC {key}: {not_found(PersistentVolumeClaim, name)}")
        return None
    if volume.persistent_volume_claim is None and (problem := not_made_for(pod, claim)):
        raise UnusableVolume(problem)
    return claim


def behind(pods: Iterable[Pod], cluster: ClusterState) -> Iterator[tuple[type, str]]:
    """Yield the keys of the pods' claims and of their volumes, even of missing ones."""
    for pod in pods:
        for volume in pod.spec.volumes:
            if name := volume.claim_of(pod.metadata.name):
                key = f"{pod.metadata.namespace}/{name}"
                yield PersistentVolumeClaim, key
                claim = cluster.get(PersistentVolumeClaim, key)
                if claim is not None and claim.spec.volume_name:
                    yield PersistentVolume, claim.spec.volume_name


def _inline(volume: Volume) -> Attached | None:
    plugin = csi_migration.plugin_of(volume)
    if not plugin:
        return None
    try:
        return csi_migration.DRIVERS[plugin], csi_migration.handle_of(volume)
    except csi_migration.NotTranslatable as problem:
        raise UnusableVolume(f"converting volume({volume.name}) from inline to csi: {problem}") from problem


def _of_claim(claim: PersistentVolumeClaim, cluster: ClusterState) -> Attached | None:
    volume = cluster.get(PersistentVolume, claim.spec.volume_name) if claim.spec.volume_name else None
    if volume is None:
        return _of_class(claim, cluster)
    csi = volume.spec.csi
    if csi is not None:
        driver, handle = csi.driver, csi.volume_handle
    else:
        plugin = csi_migration.plugin_of(volume.spec)
        if not plugin:
            return None
        try:
            handle = csi_migration.handle_of(volume.spec, csi_migration.zones_of(volume))
        except csi_migration.NotTranslatable:
            return None
        driver = csi_migration.DRIVERS[plugin]
    return (driver, handle) if driver and handle else None


def _of_class(claim: PersistentVolumeClaim, cluster: ClusterState) -> Attached | None:
    """Return a volume that has yet to be provisioned, with a placeholder for the driver's handle."""
    storage_class = cluster.get(StorageClass, class_of_claim(claim))
    if storage_class is None:
        return None
    provisioner = storage_class.provisioner
    if not provisioner or provisioner in csi_migration.NOT_COUNTED:
        return None
    return csi_migration.DRIVERS.get(provisioner, provisioner), f"to be made for {claim.key}"
