"""The writes that bind a pod's volumes, and the check whether the volume controller has done the rest."""

from typing import Any

import msgspec

from longshore.api import CSINode, Node, ObjectReference, PersistentVolume, PersistentVolumeClaim, Pod
from longshore.cluster import ClusterState
from longshore.framework.effects import Failed, Outcome, PatchObject, Succeeded
from longshore.plugins.volumes import csi_migration
from longshore.plugins.volumes.claims import BOUND_BY_CONTROLLER, SELECTED_NODE, belongs_to, fully_bound
from longshore.plugins.volumes.topology import reaches

_replace = msgspec.structs.replace


class Binding(msgspec.Struct):
    """An existing volume for a claim. `before` is the known version of it, `after` the one to write."""

    claim: PersistentVolumeClaim
    before: PersistentVolume
    after: PersistentVolume
    written: bool = False

    @classmethod
    def of(cls, claim: PersistentVolumeClaim, volume: PersistentVolume) -> "Binding":
        meta, claim_meta, spec = volume.metadata, claim.metadata, volume.spec
        if not belongs_to(volume, claim) and BOUND_BY_CONTROLLER not in meta.annotations:
            meta = _replace(meta, annotations={**meta.annotations, BOUND_BY_CONTROLLER: "yes"})
        if spec.claim_ref is None or spec.claim_ref.uid != claim_meta.uid:
            kept_for = ObjectReference(
                "PersistentVolumeClaim", claim_meta.namespace, claim_meta.name, claim_meta.uid
            )
            spec = _replace(spec, claim_ref=kept_for)
        return cls(claim, volume, _replace(volume, metadata=meta, spec=spec))

    @property
    def write(self) -> PatchObject | None:
        """The patch to write; None if the volume needs no change."""
        before, after, claim = self.before, self.after, self.claim.metadata
        if before == after:
            return None
        meta: dict[str, Any] = {"resourceVersion": before.metadata.resource_version}
        if before.metadata != after.metadata:
            meta["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
        reference = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": claim.namespace,
            "name": claim.name,
            "uid": claim.uid,
            "resourceVersion": claim.resource_version,
        }
        patch = {"metadata": meta, "spec": {"claimRef": reference}}
        return PatchObject(PersistentVolume, "", before.metadata.name, patch)


class Provision(msgspec.Struct):
    """A claim for which a volume is provisioned that the node can reach."""

    before: PersistentVolumeClaim
    after: PersistentVolumeClaim
    written: bool = False

    @classmethod
    def of(cls, claim: PersistentVolumeClaim, node: str) -> "Provision":
        meta = claim.metadata
        meta = _replace(meta, annotations={**meta.annotations, SELECTED_NODE: node})
        return cls(claim, _replace(claim, metadata=meta))

    @property
    def write(self) -> PatchObject | None:
        """The patch to write; None if the claim already names the node."""
        before, after = self.before.metadata, self.after.metadata
        if before == after:
            return None
        annotations = {SELECTED_NODE: after.annotations[SELECTED_NODE]}
        patch = {"metadata": {"resourceVersion": before.resource_version, "annotations": annotations}}
        return PatchObject(PersistentVolumeClaim, before.namespace, before.name, patch)


class Reservation(msgspec.Struct, frozen=True):
    """The volumes that a pod gets on the node that was chosen for it."""

    node: str
    bindings: tuple[Binding, ...]
    provisions: tuple[Provision, ...]

    def outcome(self, pod: Pod, cluster: ClusterState) -> Outcome | None:
        """Return Succeeded if everything is bound, Failed if it cannot be bound any more, None otherwise."""
        row = cluster.row(self.node)
        node = None if row is None else cluster.node(row)
        if node is None:
            return Failed(f'failed to get node "{self.node}": node "{self.node}" not found')
        if cluster.pod(pod.key) is None:
            return Failed(f'pod does not exist any more: pod "{pod.metadata.name}" not found')
        for binding in self.bindings:
            outcome = _bound(binding, node, cluster)
            if not isinstance(outcome, Succeeded):
                return outcome
        for provision in self.provisions:
            outcome = _provisioned(provision, node, cluster)
            if not isinstance(outcome, Succeeded):
                return outcome
        return Succeeded()


def _bound(binding: Binding, node: Node, cluster: ClusterState) -> Outcome | None:
    name, claim_key = binding.before.metadata.name, binding.claim.key
    volume = cluster.get(PersistentVolume, name)
    if volume is None:
        return Failed(f'failed to check binding: persistentvolumes "{name}" not found')
    claim = cluster.get(PersistentVolumeClaim, claim_key)
    if claim is None:
        return Failed(f'failed to check binding: persistentvolumeclaims "{claim_key}" not found')
    if binding.written and _same_version(volume, binding.before):
        # The watch has not reported our own write yet.
        return None
    if (problem := _out_of_reach(volume, node, cluster)) is not None:
        return problem
    if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
        return Failed(f'ClaimRef got reset for pv "{name}"')
    return Succeeded() if fully_bound(claim) else None


def _provisioned(provision: Provision, node: Node, cluster: ClusterState) -> Outcome | None:
    key = provision.before.key
    claim = cluster.get(PersistentVolumeClaim, key)
    if claim is None:
        return Failed(f'failed to check provisioning pvc: persistentvolumeclaims "{key}" not found')
    if provision.written and _same_version(claim, provision.before):
        return None
    name, annotations = claim.metadata.name, claim.metadata.annotations
    if not annotations:
        return Failed(f'selectedNode annotation reset for PVC "{name}"')
    if annotations.get(SELECTED_NODE) != node.metadata.name:
        # The provisioner removes it if it could not provision the volume, so that another node can be tried.
        return Failed(f'provisioning failed for PVC "{name}"')
    if claim.spec.volume_name:
        volume = cluster.get(PersistentVolume, claim.spec.volume_name)
        if volume is None:
            return None
        if (problem := _out_of_reach(volume, node, cluster)) is not None:
            return problem
    return Succeeded() if fully_bound(claim) else None


def _out_of_reach(volume: PersistentVolume, node: Node, cluster: ClusterState) -> Failed | None:
    name = node.metadata.name
    plugin = csi_migration.plugin_of(volume.spec)
    if plugin and csi_migration.migrated_on(cluster.get(CSINode, name), plugin):
        try:
            volume = csi_migration.translated(volume)
        except csi_migration.NotTranslatable as error:
            return Failed(f"failed to translate pv to csi: could not translate pv: {error}")
    if reaches(node, volume):
        return None
    problem = f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{name}"'
    return Failed(f"{problem}: no matching NodeSelectorTerms")


def _same_version(
    a: PersistentVolume | PersistentVolumeClaim, b: PersistentVolume | PersistentVolumeClaim
) -> bool:
    return a.metadata.resource_version == b.metadata.resource_version
