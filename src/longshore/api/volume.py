"""Sources of volumes that scheduling reads, in pods and in persistent volumes.

Of the disks that Kubernetes once attached itself, only what identifies them is kept: it decides whether two
pods are in conflict and which volumes of a CSI driver a node has attached.
"""

import msgspec

from longshore.api.meta import ApiStruct


class PersistentVolumeClaimVolumeSource(ApiStruct):
    claim_name: str = ""
    read_only: bool = False


class EphemeralVolumeSource(ApiStruct):
    """A claim made for this pod alone, by the name of `Volume.claim_of`."""


class GCEPersistentDiskVolumeSource(ApiStruct):
    pd_name: str = ""
    read_only: bool = False


class AWSElasticBlockStoreVolumeSource(ApiStruct):
    volume_id: str = msgspec.field(default="", name="volumeID")


class ISCSIVolumeSource(ApiStruct):
    iqn: str = ""
    read_only: bool = False


class RBDVolumeSource(ApiStruct):
    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = ""
    read_only: bool = False


class AzureDiskVolumeSource(ApiStruct):
    disk_uri: str = msgspec.field(default="", name="diskURI")


class CinderVolumeSource(ApiStruct):
    volume_id: str = msgspec.field(default="", name="volumeID")


class PortworxVolumeSource(ApiStruct):
    volume_id: str = msgspec.field(default="", name="volumeID")


class CSIVolumeSource(ApiStruct):
    driver: str = ""


class ImageVolumeSource(ApiStruct):
    reference: str = ""


class Volume(ApiStruct):
    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    image: ImageVolumeSource | None = None

    def claim_of(self, pod_name: str) -> str:
        """The name of the claim that the volume needs, or nothing if it needs none."""
        if self.persistent_volume_claim is not None:
            return self.persistent_volume_claim.claim_name
        return f"{pod_name}-{self.name}" if self.ephemeral is not None else ""
