"""Volumes, which the real controllers bind."""

from collections.abc import Callable

import pytest
from tests.compare.agreement import agree
from tests.compare.api import Document
from tests.compare.states import ZONE
from tests.compare.two_schedulers import SIDES, Arena, Side
from tests.plugins.storage import csi_driver, pool

from longshore.api import PersistentVolumeClaim, Volume
from longshore.api.meta import ApiObject
from longshore.api.volume import (
    AWSElasticBlockStoreVolumeSource,
    GCEPersistentDiskVolumeSource,
    ISCSIVolumeSource,
    RBDVolumeSource,
)
from longshore.testing import NodeBuilder, PodBuilder, csi_node, node, pod, pv, pvc, storage_class

_SELECTED = "volume.kubernetes.io/selected-node"
_HOSTNAME = "kubernetes.io/hostname"
_LOCAL = storage_class("local").waiting()
_MADE = storage_class("made", provisioner="example.com/disks").waiting()


def nodes(count: int = 3) -> list[ApiObject]:
    zones = ("east", "west", "north")
    return [roomy(f"n{n}").labels(**{ZONE: zones[n]}) for n in range(count)]


def roomy(name: str) -> NodeBuilder:
    return node(name).allocatable(cpu="8", memory="16Gi")


def bound(arena: Arena, claim: PersistentVolumeClaim) -> bool:
    return bool(arena.api.get(claim)["status"]["phase"] == "Bound")


def outcomes(arena: Arena, things: list[ApiObject], ask: Callable[[Side], object]) -> tuple[object, object]:
    """Return the result of each scheduler, on the same cluster, which is created again for the second."""
    found = []
    for side in SIDES:
        arena.become(*things)
        found.append(ask(side))
    return found[0], found[1]


def test_a_claim_that_waits_gets_a_volume_that_the_pod_can_reach(managed: Arena) -> None:
    claim = pvc("data", storage_class="local")
    far = pv("far", storage_class="local").reachable_from(_HOSTNAME, "n9")
    near = pv("near", storage_class="local", storage="2Gi").reachable_from(_HOSTNAME, "n1")

    def ask(side: Side) -> tuple[str, str, str]:
        node = managed.ask(side, pod("p").claim("data")).node
        found = managed.api.get(claim)
        return node, found["spec"]["volumeName"], found["status"]["phase"]

    theirs, ours = outcomes(managed, [*nodes(), _LOCAL, far, near, claim], ask)
    assert ours == theirs == ("n1", "near", "Bound")


def test_the_smallest_volume_that_is_large_enough_is_taken(managed: Arena) -> None:
    claim = pvc("data", storage_class="local", storage="2Gi")
    volumes = [
        pv(f"of-{size.lower()}", storage_class="local", storage=size).reachable_from(_HOSTNAME, "n1")
        for size in ("1Gi", "8Gi", "3Gi", "4Gi")
    ]

    def ask(side: Side) -> tuple[str, str]:
        node = managed.ask(side, pod("p").claim("data")).node
        return node, managed.api.get(claim)["spec"]["volumeName"]

    theirs, ours = outcomes(managed, [*nodes(), _LOCAL, *volumes, claim], ask)
    assert ours == theirs == ("n1", "of-3gi")


def test_the_node_is_selected_before_a_volume_is_provisioned(managed: Arena) -> None:
    """The pod waits for the provisioner, and its status names the node."""
    claim = pvc("data", storage_class="made")
    asked = pod("p").claim("data").node_selector(**{ZONE: "west"})
    things = [*nodes(), _MADE, claim]
    theirs, ours = outcomes(managed, things, lambda side: provisioned(managed, side, asked, claim))
    assert ours == theirs == ("n1", "n1", "n1")


def provisioned(
    arena: Arena, side: Side, asked: PodBuilder, claim: PersistentVolumeClaim
) -> tuple[str, str, str]:
    """Return the node selected for the claim, the nominated node of the pod, and its node at the end."""
    arena.add(asked.scheduler(f"{side}-default"))
    selected = arena.until(lambda: selected_node(arena.api.get(claim)), "a node is selected")
    nominated = arena.until(
        lambda: arena.api.get(asked)["status"].get("nominatedNodeName"), "the pod tells its node"
    )
    meta, spec = claim.metadata, claim.spec
    made = pv("made", storage_class=spec.storage_class_name or "", storage=spec.resources.requests["storage"])
    made = made.reachable_from(_HOSTNAME, selected)
    arena.add(made)
    uid = arena.api.get(claim)["metadata"]["uid"]
    reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": meta.name, "uid": uid}
    arena.api.patch(made, {"spec": {"claimRef": reference}})
    return selected, nominated, arena.until_bound(asked)


def selected_node(claim: Document) -> str:
    found: str = claim["metadata"].get("annotations", {}).get(_SELECTED, "")
    return found


def test_a_claim_that_waits_and_has_no_volume_leaves_the_pod_pending(managed: Arena) -> None:
    small = pv("small", storage_class="local").reachable_from(_HOSTNAME, "n1")
    managed.become(*nodes(), _LOCAL, small, pvc("data", storage_class="local", storage="5Gi"))
    message = agree(managed, pod("p").claim("data")).kube.message
    reason = "3 node(s) didn't find available persistent volumes to bind"
    assert message.startswith(f"0/3 nodes are available: {reason}.")


def test_a_volume_is_provisioned_only_in_allowed_topologies(managed: Arena) -> None:
    in_west = _MADE.allowed(ZONE, "west")
    managed.become(*nodes(), in_west, pvc("data", storage_class="made"))
    asked = pod("p").claim("data").node_selector(**{ZONE: "east"})
    message = agree(managed, asked).kube.message
    assert "1 node(s) didn't find available persistent volumes to bind" in message


_POOLED = storage_class("pooled", provisioner="disks.example.com").waiting()
_POOLS: list[ApiObject] = [
    _POOLED,
    csi_driver("disks.example.com"),
    pool("small", "pooled", "1Gi", labels={ZONE: "east"}),
    pool("large", "pooled", "10Gi", labels={ZONE: "west"}),
    pool("in-pieces", "pooled", "10Gi", largest="2Gi", labels={ZONE: "north"}),
]


def test_a_volume_is_provisioned_where_storage_capacity_is_free(managed: Arena) -> None:
    claim = pvc("data", storage_class="pooled", storage="5Gi")
    asked = pod("p").claim("data")
    things = [*nodes(), *_POOLS, claim]
    theirs, ours = outcomes(managed, things, lambda side: provisioned(managed, side, asked, claim))
    assert ours == theirs == ("n1", "n1", "n1")


def test_without_free_storage_capacity_the_pod_stays_pending(managed: Arena) -> None:
    managed.become(*nodes(), *_POOLS, pvc("data", storage_class="pooled", storage="20Gi"))
    message = agree(managed, pod("p").claim("data")).kube.message
    reason = "3 node(s) did not have enough free storage"
    assert message.startswith(f"0/3 nodes are available: {reason}.")
    message = agree(managed, pod("p").claim("data").node_selector(**{ZONE: "north"})).kube.message
    assert "1 node(s) did not have enough free storage" in message


def _disk(*, read_only: bool) -> dict[str, Volume]:
    """Return the same disk as a volume of a pod, for each kind of disk."""
    return {
        "GCE": Volume(name="disk", gce_persistent_disk=GCEPersistentDiskVolumeSource("disk", read_only)),
        "AWS": Volume(name="disk", aws_elastic_block_store=AWSElasticBlockStoreVolumeSource("disk")),
        "iSCSI": Volume(name="disk", iscsi=ISCSIVolumeSource("iqn.2026-01.com.example:disk", read_only)),
        "RBD": Volume(name="disk", rbd=RBDVolumeSource(("10.0.0.1:6789",), "disk", "pool", read_only)),
    }


_WRITTEN, _READ = _disk(read_only=False), _disk(read_only=True)


@pytest.mark.parametrize("kind", _WRITTEN)
def test_a_disk_that_another_pod_on_the_node_uses_is_refused(managed: Arena, kind: str) -> None:
    written, read = _WRITTEN[kind], _READ[kind]
    writer, reader = pod("writer").volume(written).on("n0"), pod("reader").volume(read).on("n1")
    managed.become(*nodes(2), writer, reader)
    message = agree(managed, pod("p").volume(written)).kube.message
    assert message.startswith("0/2 nodes are available: 2 node(s) had no available disk.")
    # Two pods can read it, except for a disk of AWS.
    assert agree(managed, pod("p").volume(read)).kube.node == ("" if kind == "AWS" else "n1")


def test_an_unbound_claim_with_immediate_binding_leaves_the_pod_pending(managed: Arena) -> None:
    managed.become(*nodes(), storage_class("slow", provisioner="example.com/disks"))
    managed.add(pvc("data", storage_class="slow"))
    managed.settle()
    message = agree(managed, pod("p").claim("data")).kube.message
    reason = "pod has unbound immediate PersistentVolumeClaims"
    assert message.startswith(f"0/3 nodes are available: {reason}.")


def test_a_missing_claim_leaves_the_pod_pending(managed: Arena) -> None:
    managed.become(*nodes())
    message = agree(managed, pod("p").claim("missing")).kube.message
    assert message.startswith('0/3 nodes are available: persistentvolumeclaim "missing" not found.')


def test_a_claim_that_is_being_deleted_leaves_the_pod_pending(managed: Arena) -> None:
    claim, volume = pvc("data", storage_class=""), pv("disk")
    managed.become(*nodes(), volume, claim, pod("user").claim("data").on("n0"))
    managed.until(lambda: bound(managed, claim), "the claim is bound")
    managed.api.delete(claim, grace=True)
    managed.settle()
    message = agree(managed, pod("p").claim("data")).kube.message
    assert message.startswith('0/3 nodes are available: persistentvolumeclaim "data" is being deleted.')


def test_a_claim_of_a_missing_storage_class_gets_the_same_answer(managed: Arena) -> None:
    managed.become(*nodes(), pvc("data", storage_class="missing"))
    agree(managed, pod("p").claim("data"))


def test_a_volume_keeps_the_pod_in_its_zone(managed: Arena) -> None:
    claim = pvc("data", storage_class="")
    managed.become(*nodes(), pv("disk").labels(**{ZONE: "west"}), claim)
    managed.until(lambda: bound(managed, claim), "the claim is bound")
    managed.settle()
    assert agree(managed, pod("p").claim("data")).kube.node == "n1"
    message = agree(managed, pod("p").claim("data").node_selector(**{ZONE: "east"})).kube.message
    assert "1 node(s) had no available volume zone" in message


def test_a_volume_keeps_the_pod_on_the_nodes_that_reach_it(managed: Arena) -> None:
    claim = pvc("data", storage_class="")
    managed.become(*nodes(), pv("disk").reachable_from(_HOSTNAME, "n2"), claim)
    managed.until(lambda: bound(managed, claim), "the claim is bound")
    managed.settle()
    assert agree(managed, pod("p").claim("data")).kube.node == "n2"
    message = agree(managed, pod("p").claim("data").node_selector(**{ZONE: "east"})).kube.message
    assert "1 node(s) didn't match PersistentVolume's node affinity" in message


def test_a_read_write_once_pod_claim_is_used_by_one_pod_only(managed: Arena) -> None:
    alone = ("ReadWriteOncePod",)
    claim = pvc("data", storage_class="", access_modes=alone)
    disk = pv("disk", access_modes=alone).csi("driver.example.com")
    managed.become(*nodes(2), disk, claim, pod("user").claim("data").on("n0"))
    managed.until(lambda: bound(managed, claim), "the claim is bound")
    managed.settle()
    message = agree(managed, pod("p").claim("data")).kube.message
    reason = (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
        "already in-use by another pod"
    )
    assert reason in message


def test_a_node_attaches_no_more_volumes_than_its_limit(managed: Arena) -> None:
    driver = "driver.example.com"
    claims = [pvc(f"data-{n}", storage_class="") for n in range(3)]
    disks = [pv(f"disk-{n}").csi(driver) for n in range(3)]
    things: list[ApiObject] = [*nodes(2), *disks, *claims]
    things += [csi_node("n0").driver(driver, limit=1), csi_node("n1").driver(driver, limit=2)]
    managed.become(*things, pod("first").claim("data-0").on("n0"))
    managed.until(lambda: all(bound(managed, claim) for claim in claims), "the claims are bound")
    managed.settle()
    assert agree(managed, pod("p").claim("data-1").claim("data-2")).kube.node == "n1"
    # The volume is attached to the node already.
    assert agree(managed, pod("p").claim("data-0").node_selector(**{_HOSTNAME: "n0"})).kube.node == "n0"
    message = agree(managed, pod("p").claim("data-1").node_selector(**{_HOSTNAME: "n0"})).kube.message
    assert "1 node(s) exceed max volume count" in message
