"""The volume sources that scheduling reads, in pods and in persistent volumes.

For the disks that Kubernetes once attached itself, only the fields that identify them are kept. They decide
whether two pods conflict and which volumes of a CSI driver a node has attached.
"""

import msgspec

from longshore.api.meta import ApiStruct


class PersistentVolumeClaimVolumeSource(ApiStruct):
    claim_name: str = ""
    read_only: bool = False


class EphemeralVolumeSource(ApiStruct):
    """A claim that is created for this pod alone, with the name that `Volume.claim_of` returns."""


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
        """Return the name of the claim that the volume uses, or an empty text if it uses none."""
        if self.persistent_volume_claim is not None:
            return self.persistent_volume_claim.claim_name
        return f"{pod_name}-{self.name}" if self.ephemeral is not None else ""
