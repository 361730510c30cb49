"""Persistent volumes, their claims, and their drivers, with the fields that scheduling reads."""

from longshore.api.meta import ApiObject, ApiStruct
from longshore.api.pod import NodeSelector, ResourceRequirements
from longshore.api.selectors import LabelSelector
from longshore.api.volume import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    CinderVolumeSource,
    GCEPersistentDiskVolumeSource,
    PortworxVolumeSource,
)


class ObjectReference(ApiStruct):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeNodeAffinity(ApiStruct):
    required: NodeSelector | None = None


class CSIPersistentVolumeSource(ApiStruct):
    driver: str = ""
    volume_handle: str = ""


class PersistentVolumeSpec(ApiStruct):
    capacity: dict[str, str] = {}
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None
    csi: CSIPersistentVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None


class PersistentVolumeStatus(ApiStruct):
    phase: str = ""


class PersistentVolume(ApiObject):
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class PersistentVolumeClaimSpec(ApiStruct):
    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: ResourceRequirements = ResourceRequirements()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(ApiStruct):
    phase: str = ""


class PersistentVolumeClaim(ApiObject):
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class TopologySelectorLabelRequirement(ApiStruct):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(ApiStruct):
    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(ApiObject):
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeNodeResources(ApiStruct):
    count: int | None = None


class CSINodeDriver(ApiStruct):
    name: str = ""
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(ApiStruct):
    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(ApiObject):
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(ApiStruct):
    storage_capacity: bool = False


class CSIDriver(ApiObject):
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(ApiObject):
    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: str | None = None
    maximum_volume_size: str | None = None


class VolumeAttachmentSource(ApiStruct):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(ApiStruct):
    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(ApiObject):
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
