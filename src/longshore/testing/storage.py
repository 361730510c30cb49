"""Volumes, claims, storage classes, and the drivers of a node for tests."""

from typing import Self

from longshore.api import (
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSIPersistentVolumeSource,
    LabelSelector,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    ResourceRequirements,
    StorageClass,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
    VolumeNodeAffinity,
    VolumeNodeResources,
)
from longshore.testing.metadata import MetadataBuilder, metadata, replace, uid_of

_READ_WRITE_ONCE = ("ReadWriteOnce",)


class PersistentVolumeBuilder(MetadataBuilder, PersistentVolume):
    """A persistent volume whose methods return changed copies."""

    def claimed_by(self, claim: str, *, namespace: str = "default") -> Self:
        """Bind the volume to the claim with this name."""
        reference = ObjectReference("PersistentVolumeClaim", namespace, claim, uid_of(claim, namespace))
        return replace(self._with(claim_ref=reference), status=PersistentVolumeStatus("Bound"))

    def reachable_from(self, key: str, *values: str) -> Self:
        """Make the volume reachable only from nodes whose label has one of these values."""
        requirement = NodeSelectorRequirement(key, "In", values)
        selector = NodeSelector((NodeSelectorTerm((requirement,)),))
        return self._with(node_affinity=VolumeNodeAffinity(selector))

    def csi(self, driver: str, handle: str = "") -> Self:
        """Set the CSI driver that attaches the volume, and its handle of the volume."""
        return self._with(csi=CSIPersistentVolumeSource(driver, handle or self.metadata.name))

    def _with(self, **fields: object) -> Self:
        return replace(self, spec=replace(self.spec, **fields))


class PersistentVolumeClaimBuilder(MetadataBuilder, PersistentVolumeClaim):
    """A claim whose methods return changed copies."""

    def bound_to(self, volume: str) -> Self:
        """Bind the claim completely to the volume with this name."""
        bound = replace(self._with(volume_name=volume), status=PersistentVolumeClaimStatus("Bound"))
        return bound.annotations(**{"pv.kubernetes.io/bind-completed": "yes"})

    def selecting(self, **labels: str) -> Self:
        """Accept only volumes with these labels."""
        return self._with(selector=LabelSelector(labels))

    def _with(self, **fields: object) -> Self:
        return replace(self, spec=replace(self.spec, **fields))


class StorageClassBuilder(MetadataBuilder, StorageClass):
    """A storage class whose methods return changed copies."""

    def waiting(self) -> Self:
        """Bind or provision volumes only when a pod that uses them is placed."""
        return replace(self, volume_binding_mode="WaitForFirstConsumer")

    def allowed(self, key: str, *values: str) -> Self:
        """Add a topology in which volumes may be provisioned: nodes whose label has one of these values."""
        term = TopologySelectorTerm((TopologySelectorLabelRequirement(key, values),))
        return replace(self, allowed_topologies=(*self.allowed_topologies, term))


class CSINodeBuilder(MetadataBuilder, CSINode):
    """The drivers of a node; methods return changed copies."""

    def driver(self, name: str, *, limit: int | None = None) -> Self:
        """Add a driver, with the number of volumes that it can attach."""
        allocatable = None if limit is None else VolumeNodeResources(limit)
        return replace(self, spec=CSINodeSpec((*self.spec.drivers, CSINodeDriver(name, allocatable))))


def pv(
    name: str,
    *,
    storage: str = "1Gi",
    storage_class: str = "",
    access_modes: tuple[str, ...] = _READ_WRITE_ONCE,
) -> PersistentVolumeBuilder:
    """Return a volume without a claim."""
    return PersistentVolumeBuilder(
        metadata=metadata(name),
        spec=PersistentVolumeSpec(
            capacity={"storage": storage}, access_modes=access_modes, storage_class_name=storage_class
        ),
        status=PersistentVolumeStatus("Available"),
    )


def pvc(
    name: str,
    *,
    namespace: str = "default",
    storage: str = "1Gi",
    storage_class: str | None = None,
    access_modes: tuple[str, ...] = _READ_WRITE_ONCE,
) -> PersistentVolumeClaimBuilder:
    """Return a claim without a volume."""
    return PersistentVolumeClaimBuilder(
        metadata=metadata(name, namespace),
        spec=PersistentVolumeClaimSpec(
            access_modes=access_modes,
            resources=ResourceRequirements(requests={"storage": storage}),
            storage_class_name=storage_class,
        ),
        status=PersistentVolumeClaimStatus("Pending"),
    )


def storage_class(name: str, *, provisioner: str = "kubernetes.io/no-provisioner") -> StorageClassBuilder:
    """Return a class whose volumes are bound immediately."""
    return StorageClassBuilder(
        metadata=metadata(name), provisioner=provisioner, volume_binding_mode="Immediate"
    )


def csi_node(name: str) -> CSINodeBuilder:
    """Return the CSINode of the node with this name, without drivers."""
    return CSINodeBuilder(metadata=metadata(name))
