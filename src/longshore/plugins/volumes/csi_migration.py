"""CSI migration: disks that Kubernetes once attached itself, as volumes of the CSI drivers that do it now."""

import re
from typing import Protocol
from urllib.parse import urlsplit

import msgspec

from longshore.api import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    CinderVolumeSource,
    CSINode,
    GCEPersistentDiskVolumeSource,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolume,
    PortworxVolumeSource,
    VolumeNodeAffinity,
)

EBS = "kubernetes.io/aws-ebs"
GCE_PD = "kubernetes.io/gce-pd"
AZURE_DISK = "kubernetes.io/azure-disk"
CINDER = "kubernetes.io/cinder"
PORTWORX = "kubernetes.io/portworx-volume"
# The CSI driver that replaces each in-tree plugin.
DRIVERS = {
    EBS: "ebs.csi.aws.com",
    GCE_PD: "pd.csi.storage.gke.io",
    AZURE_DISK: "disk.csi.azure.com",
    CINDER: "cinder.csi.openstack.org",
    PORTWORX: "pxd.portworx.com",
}
# These have drivers too, but kube-scheduler does not count their volumes.
NOT_COUNTED = frozenset({"kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"})

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE, OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
# Separates the zones in the label of a volume that is in several zones.
ZONE_DELIMITER = "__"
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"

_ZONE_OF_DRIVER = {
    EBS: "topology.ebs.csi.aws.com/zone",
    GCE_PD: "topology.gke.io/zone",
    CINDER: "topology.cinder.csi.openstack.org/zone",
}
_EBS_VOLUME = re.compile(r"vol-[^/]*")
_UNKNOWN = "UNSPECIFIED"


class NotTranslatable(ValueError):
    """The volume cannot be translated for its CSI driver."""


class Disks(Protocol):
    """The fields that a pod's volume and a persistent volume have in common."""

    @property
    def aws_elastic_block_store(self) -> AWSElasticBlockStoreVolumeSource | None: ...
    @property
    def gce_persistent_disk(self) -> GCEPersistentDiskVolumeSource | None: ...
    @property
    def azure_disk(self) -> AzureDiskVolumeSource | None: ...
    @property
    def cinder(self) -> CinderVolumeSource | None: ...
    @property
    def portworx_volume(self) -> PortworxVolumeSource | None: ...


def plugin_of(disks: Disks) -> str:
    """Return the in-tree plugin that the volume was written for, or an empty text."""
    if disks.aws_elastic_block_store is not None:
        return EBS
    if disks.gce_persistent_disk is not None:
        return GCE_PD
    if disks.azure_disk is not None:
        return AZURE_DISK
    if disks.cinder is not None:
        return CINDER
    return PORTWORX if disks.portworx_volume is not None else ""


def handle_of(disks: Disks, zones: str = "") -> str:
    """Return the driver's handle of the volume. `zones` is the zone label of a persistent volume."""
    if (ebs := disks.aws_elastic_block_store) is not None:
        return _ebs_handle(ebs.volume_id)
    if (gce := disks.gce_persistent_disk) is not None:
        return _gce_handle(gce.pd_name, zones)
    if (azure := disks.azure_disk) is not None:
        return azure.disk_uri
    if (cinder := disks.cinder) is not None:
        return cinder.volume_id
    return "" if disks.portworx_volume is None else disks.portworx_volume.volume_id


def zones_of(volume: PersistentVolume) -> str:
    labels = volume.metadata.labels
    return labels.get(OLD_ZONE) or labels.get(ZONE, "")


def migrated_on(node: CSINode | None, plugin: str) -> bool:
    """Whether the node's kubelet leaves the volumes of the plugin to the CSI driver."""
    return node is not None and plugin in node.metadata.annotations.get(MIGRATED_PLUGINS, "").split(",")


def translated(volume: PersistentVolume) -> PersistentVolume:
    """Return the volume as its CSI driver sees it, with the driver's own label for zones."""
    handle_of(volume.spec, zones_of(volume))
    key = _ZONE_OF_DRIVER.get(plugin_of(volume.spec))
    if key is None:
        return volume
    affinity = volume.spec.node_affinity
    required = None if affinity is None else affinity.required
    terms = () if required is None else required.node_selector_terms
    changed = _with_zones_of_driver(terms, volume.metadata.labels, key)
    if changed == terms:
        return volume
    selector = VolumeNodeAffinity(NodeSelector(changed))
    return msgspec.structs.replace(volume, spec=msgspec.structs.replace(volume.spec, node_affinity=selector))


def _with_zones_of_driver(
    terms: tuple[NodeSelectorTerm, ...], labels: dict[str, str], key: str
) -> tuple[NodeSelectorTerm, ...]:
    zone, region = _names_of_topology(terms, labels)
    if _has_values(terms, zone):
        terms = _renamed(terms, zone, key)
    elif zone in labels:
        zones = {name for part in labels[zone].split(ZONE_DELIMITER) if (name := part.strip())}
        if zones:
            there = NodeSelectorRequirement(key, "In", tuple(sorted(zones)))
            terms = tuple(
                NodeSelectorTerm((*term.match_expressions, there), term.match_fields)
                for term in terms or (NodeSelectorTerm(),)
            )
    if region == OLD_REGION and _has_values(terms, region):
        terms = _renamed(terms, region, REGION)
    return terms


def _names_of_topology(terms: tuple[NodeSelectorTerm, ...], labels: dict[str, str]) -> tuple[str, str]:
    keys = {requirement.key for term in terms for requirement in term.match_expressions}
    for known in (keys, labels):
        if ZONE in known:
            return ZONE, REGION
        if OLD_ZONE in known:
            return OLD_ZONE, OLD_REGION
    return ZONE, REGION


def _has_values(terms: tuple[NodeSelectorTerm, ...], key: str) -> bool:
    return any(r.key == key and r.values for term in terms for r in term.match_expressions)


def _renamed(terms: tuple[NodeSelectorTerm, ...], old: str, new: str) -> tuple[NodeSelectorTerm, ...]:
    return tuple(
        NodeSelectorTerm(
            tuple(
                NodeSelectorRequirement(new if r.key == old else r.key, r.operator, r.values)
                for r in term.match_expressions
            ),
            term.match_fields,
        )
        for term in terms
    )


def _ebs_handle(text: str) -> str:
    if not text.startswith("aws://"):
        return text
    handle = urlsplit(text).path.strip("/")
    if not _EBS_VOLUME.fullmatch(handle):
        raise NotTranslatable(f"Invalid format for AWS volume ({text})")
    return handle


def _gce_handle(name: str, zones: str) -> str:
    found = zones.split(ZONE_DELIMITER)
    if len(found) == 1:
        return f"projects/{_UNKNOWN}/zones/{found[0] or _UNKNOWN}/disks/{name}"
    regions = set()
    for zone in found:
        parts = zone.split("-")
        if len(parts) != 3:
            raise NotTranslatable(
                f"zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"
            )
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        raise NotTranslatable(f"multiple or no regions gotten from zones, got: {sorted(regions)}")
    return f"projects/{_UNKNOWN}/regions/{regions.pop()}/disks/{name}"
