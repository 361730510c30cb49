from typing import Any

import pytest
from tests.plugins.storage import Storage, csi_driver, pool, reasons, verdicts

from longshore.api import (
    AWSElasticBlockStoreVolumeSource,
    CSIDriver,
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    Pod,
    StorageClass,
    Volume,
    VolumeNodeAffinity,
)
from longshore.api import CSIVolumeSource as InlineCSI
from longshore.cluster import PodInfo
from longshore.framework import Code
from longshore.plugins.volumebinding.claims import UNBOUND_IMMEDIATE
from longshore.plugins.volumebinding.plugin import (
    NO_ROOM,
    NO_VOLUME,
    OUT_OF_REACH,
    VOLUME_MISSING,
    VolumeBinding,
)
from longshore.testing import csi_node, node, pod, pv, pvc, storage_class
from longshore.testing.metadata import replace

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
SELECTED = "volume.kubernetes.io/selected-node"
STATIC = storage_class("static").waiting()
DYNAMIC = storage_class("dynamic", provisioner="csi.example.com").waiting()
DATA = pvc("data", storage_class="static")
NEW = pvc("new", storage_class="dynamic")
WEB = pod("web").claim("data")


def world(*objects: Any) -> Storage:
    """Nodes n1 and n2 in zones a and b."""
    storage = Storage(STATIC, DYNAMIC, storage_class("at-once"), *objects)
    for name, zone in (("n1", "a"), ("n2", "b")):
        storage.cluster.add_node(node(name).labels(**{ZONE: zone}))
    return storage


def refused(storage: Storage, incoming: Pod = WEB) -> dict[str, tuple[str, ...]]:
    found = verdicts(VolumeBinding(handle=storage.handle), incoming, storage.cluster)
    assert all(status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE for status in found.values())
    return {name: status.reasons for name, status in found.items()}


def local(name: str, host: str, storage: str = "1Gi") -> Any:
    return pv(name, storage=storage, storage_class="static").reachable_from(HOST, host)


# Claims with problems.


def test_a_missing_claim_rejects_the_pod() -> None:
    assert refused(world()) == {"": ('persistentvolumeclaim "data" not found',)}


def test_the_claim_of_an_ephemeral_volume_is_not_created_yet() -> None:
    words = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "web-tmp"'
    assert refused(world(), pod("web").ephemeral_claim("tmp")) == {"": (words,)}


def test_the_claim_of_that_name_was_not_created_for_the_pod() -> None:
    words = "PVC default/web-tmp was not created for pod default/web (pod is not owner)"
    assert refused(world(pvc("web-tmp")), pod("web").ephemeral_claim("tmp")) == {"": (words,)}


def test_the_claim_of_an_ephemeral_volume_is_used() -> None:
    own = pvc("web-tmp", storage_class="dynamic").owner("Pod", "web")
    assert refused(world(own), pod("web").ephemeral_claim("tmp")) == {}


def test_a_claim_that_lost_its_volume_rejects_the_pod() -> None:
    lost = replace(DATA.bound_to("gone"), status=PersistentVolumeClaimStatus("Lost"))
    words = 'persistentvolumeclaim "data" bound to non-existent persistentvolume "gone"'
    assert refused(world(lost)) == {"": (words,)}


def test_a_claim_that_is_being_deleted_rejects_the_pod() -> None:
    assert refused(world(DATA.deleting())) == {"": ('persistentvolumeclaim "data" is being deleted',)}


@pytest.mark.parametrize(
    "claim",
    [
        pvc("data", storage_class="at-once"),
        pvc("data", storage_class="no-such-class"),
        pvc("data"),
        replace(DATA, spec=replace(DATA.spec, volume_name="disk")),
    ],
    ids=["class binds at once", "class is unknown", "no class", "bound but not completely"],
)
def test_a_claim_that_should_already_be_bound_rejects_the_pod(claim: PersistentVolumeClaim) -> None:
    assert refused(world(claim)) == {"": (UNBOUND_IMMEDIATE,)}


def test_a_class_without_a_binding_mode_is_an_error() -> None:
    storage = world(StorageClass(metadata=storage_class("odd").metadata), pvc("data", storage_class="odd"))
    [status] = verdicts(VolumeBinding(handle=storage.handle), WEB, storage.cluster).values()
    assert status.code is Code.ERROR
    assert status.reasons == ('VolumeBindingMode not set for StorageClass "odd"',)


def test_an_invalid_volume_selector_is_an_error() -> None:
    broken = LabelSelector(match_expressions=(LabelSelectorRequirement("tier", "In"),))
    storage = world(replace(DATA, spec=replace(DATA.spec, selector=broken)))
    [status] = verdicts(VolumeBinding(handle=storage.handle), WEB, storage.cluster).values()
    assert status.code is Code.ERROR


# Bound claims.


def test_a_bound_volume_is_reachable_from_some_nodes() -> None:
    storage = world(DATA.bound_to("disk"), local("disk", "n2").claimed_by("data"))
    assert refused(storage) == {"n1": (OUT_OF_REACH,)}


def test_a_bound_volume_is_reachable_from_everywhere() -> None:
    assert refused(world(DATA.bound_to("disk"), pv("disk").claimed_by("data"))) == {}


def test_a_bound_volume_does_not_exist() -> None:
    assert refused(world(DATA.bound_to("gone"))) == {"n1": (VOLUME_MISSING,), "n2": (VOLUME_MISSING,)}


def test_an_unreachable_first_volume_is_reported_before_a_missing_second_one() -> None:
    storage = world(DATA.bound_to("disk"), local("disk", "n2"), pvc("more").bound_to("gone"))
    assert refused(storage, WEB.claim("more")) == {"n1": (OUT_OF_REACH,), "n2": (VOLUME_MISSING,)}


def test_bound_and_unbound_claims_have_reasons_of_their_own() -> None:
    storage = world(pvc("old").bound_to("disk"), local("disk", "n2").claimed_by("old"), DATA)
    assert refused(storage, pod("web").claim("old").claim("data")) == {
        "n1": (OUT_OF_REACH, NO_VOLUME),
        "n2": (NO_VOLUME,),
    }


def test_requirements_on_fields_of_the_node_count_as_met() -> None:
    field = NodeSelectorRequirement("metadata.name", "In", ("n1",))
    affinity = VolumeNodeAffinity(NodeSelector((NodeSelectorTerm(match_fields=(field,)),)))
    disk = pv("disk")
    disk = replace(disk, spec=replace(disk.spec, node_affinity=affinity))
    assert refused(world(DATA.bound_to("disk"), disk)) == {}


def test_an_affinity_without_terms_matches_no_node() -> None:
    disk = pv("disk")
    disk = replace(disk, spec=replace(disk.spec, node_affinity=VolumeNodeAffinity(NodeSelector())))
    assert refused(world(DATA.bound_to("disk"), disk)) == {"n1": (OUT_OF_REACH,), "n2": (OUT_OF_REACH,)}


def test_an_in_tree_disk_has_the_topology_of_its_driver_on_migrated_nodes() -> None:
    disk = pv("disk").labels(**{ZONE: "a"})
    ebs = AWSElasticBlockStoreVolumeSource("vol-1")
    storage = world(
        DATA.bound_to("disk"), replace(disk, spec=replace(disk.spec, aws_elastic_block_store=ebs))
    )
    driver_zone = "topology.ebs.csi.aws.com/zone"
    storage.cluster.add_node(node("n3").labels(**{driver_zone: "a"}))
    storage.cluster.add_node(node("n4").labels(**{driver_zone: "b"}))
    migrated = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/gce-pd,kubernetes.io/aws-ebs"}
    storage.put(
        csi_node("n1"), csi_node("n3").annotations(**migrated), csi_node("n4").annotations(**migrated)
    )
    assert refused(storage) == {"n4": (OUT_OF_REACH,)}


# Existing volumes for claims that wait.


def test_a_volume_of_one_node_is_found_only_there() -> None:
    assert refused(world(DATA, local("disk", "n1"))) == {"n2": (NO_VOLUME,)}


@pytest.mark.parametrize(
    "disk",
    [
        pv("disk", storage="512Mi", storage_class="static"),
        pv("disk", storage_class="other"),
        pv("disk", storage_class="static", access_modes=("ReadOnlyMany",)),
        pv("disk", storage_class="static").claimed_by("somebody-else"),
        pv("disk", storage_class="static").deleting(),
        replace(pv("disk", storage_class="static"), status=replace(pv("disk").status, phase="Released")),
        replace(
            pv("disk", storage_class="static"),
            spec=replace(pv("disk", storage_class="static").spec, volume_mode="Block"),
        ),
        replace(
            pv("disk", storage_class="static"),
            spec=replace(pv("disk", storage_class="static").spec, volume_attributes_class_name="gold"),
        ),
    ],
    ids=["small", "class", "access", "claimed", "deleting", "released", "block", "attributes"],
)
def test_a_volume_that_does_not_fit_the_claim_is_not_used(disk: Any) -> None:
    assert refused(world(DATA, disk)) == {"n1": (NO_VOLUME,), "n2": (NO_VOLUME,)}


def test_claim_selects_volumes_by_label() -> None:
    picky = DATA.selecting(tier="gold")
    assert refused(world(picky, local("disk", "n1"), local("gold", "n2").labels(tier="gold"))) == {
        "n1": (NO_VOLUME,)
    }


def test_a_volume_reserved_for_the_claim_is_the_only_candidate() -> None:
    kept = local("kept", "n2").claimed_by("data")
    assert refused(world(DATA, kept, local("free", "n1"))) == {"n1": (NO_VOLUME,)}


def test_a_volume_reserved_for_the_claim_but_too_small_is_ignored() -> None:
    kept = local("kept", "n2", storage="1Mi").claimed_by("data")
    assert refused(world(DATA, kept, local("free", "n1"))) == {"n2": (NO_VOLUME,)}


def test_two_claims_need_two_volumes() -> None:
    more = pvc("more", storage_class="static")
    volumes = [local("one", "n1"), local("two", "n1"), local("three", "n2")]
    assert refused(world(DATA, more, *volumes), WEB.claim("more")) == {"n2": (NO_VOLUME,)}


def test_the_smaller_claim_leaves_the_larger_volume_to_the_larger_claim() -> None:
    large = pvc("large", storage_class="static", storage="5Gi")
    volumes = [local("five", "n1", "5Gi"), local("one", "n1", "1Gi")]
    assert refused(world(DATA, large, *volumes), pod("web").claim("large").claim("data")) == {
        "n2": (NO_VOLUME,)
    }


# Volumes that are provisioned.


def test_a_class_provisions_volumes_everywhere() -> None:
    assert refused(world(NEW), pod("web").claim("new")) == {}


def test_a_class_provisions_volumes_in_some_zones() -> None:
    zonal = DYNAMIC.allowed(ZONE, "b", "c")
    assert refused(world(zonal, NEW), pod("web").claim("new")) == {"n1": (NO_VOLUME,)}


def test_a_volume_is_provisioned_where_no_existing_one_is_left() -> None:
    zonal = DYNAMIC.allowed(ZONE, "b")
    disk = pv("disk", storage_class="dynamic").reachable_from(HOST, "n1")
    assert refused(world(zonal, NEW, disk), pod("web").claim("new")) == {}


def test_a_claim_with_a_selected_node_stays_there() -> None:
    promised = NEW.annotations(**{SELECTED: "n2"})
    assert refused(world(promised), pod("web").claim("new")) == {"n1": (NO_VOLUME,)}


def test_a_claim_whose_selected_node_is_gone_fits_nowhere() -> None:
    promised = NEW.annotations(**{SELECTED: "gone"})
    assert refused(world(promised), pod("web").claim("new")) == {"n1": (NO_VOLUME,), "n2": (NO_VOLUME,)}


def test_one_claim_is_matched_and_another_provisioned() -> None:
    assert refused(world(DATA, NEW, local("disk", "n1")), WEB.claim("new")) == {"n2": (NO_VOLUME,)}


@pytest.mark.parametrize(
    ("pools", "driver", "refusing"),
    [
        ([], csi_driver("csi.example.com"), {"n1", "n2"}),
        ([], csi_driver("csi.example.com", counts=False), set()),
        ([], csi_driver("another.example.com"), set()),
        ([pool("p", "dynamic", "1Gi")], csi_driver("csi.example.com"), set()),
        ([pool("p", "dynamic", "1Gi", labels={HOST: "n2"})], csi_driver("csi.example.com"), {"n1"}),
        (
            [
                pool("p", "dynamic", "1Gi", labels={HOST: "n1"}),
                pool("q", "dynamic", "2Gi", labels={ZONE: "b"}),
            ],
            csi_driver("csi.example.com"),
            set(),
        ),
        ([pool("p", "other", "1Gi")], csi_driver("csi.example.com"), {"n1", "n2"}),
        ([pool("p", "dynamic", "1Mi")], csi_driver("csi.example.com"), {"n1", "n2"}),
        ([pool("p", "dynamic", "9Gi", largest="1Mi")], csi_driver("csi.example.com"), {"n1", "n2"}),
        ([pool("p", "dynamic", "0")], csi_driver("csi.example.com"), {"n1", "n2"}),
        ([pool("p", "dynamic", None)], csi_driver("csi.example.com"), {"n1", "n2"}),
        ([pool("p", "dynamic", "9Gi", reachable=False)], csi_driver("csi.example.com"), {"n1", "n2"}),
    ],
)
def test_new_volumes_need_enough_storage_capacity(
    pools: list[Any], driver: CSIDriver, refusing: set[str]
) -> None:
    found = refused(world(NEW, driver, *pools), pod("web").claim("new"))
    assert found == dict.fromkeys(refusing, (NO_ROOM,))


def test_pods_without_claims_are_not_affected() -> None:
    plugin = VolumeBinding(handle=world().handle)
    assert plugin.concerns(PodInfo.of(WEB))
    assert plugin.concerns(PodInfo.of(pod("web").ephemeral_claim("tmp")))
    assert not plugin.concerns(PodInfo.of(pod("web").volume(Volume("tmp"))))


def test_rows_without_a_node_are_ignored() -> None:
    storage = world(DATA, pvc("more", storage_class="static"), local("one", "n1"), local("two", "n1"))
    storage.cluster.add_pod(pod("stray").on("unknown"))
    assert reasons(VolumeBinding(handle=storage.handle), WEB.claim("more"), storage.cluster) == {
        "n2": (NO_VOLUME,)
    }


# Hints, in the order of `wakes_on`.


def hint(place: int, waiting: Pod, old: Any, new: Any) -> bool:
    found = VolumeBinding(handle=Storage().handle).wakes_on[place].hint
    assert found is not None
    return found(waiting, old, new)


def test_a_new_class_or_other_topologies_wake_the_pod() -> None:
    assert hint(0, WEB, None, DYNAMIC)
    assert hint(0, WEB, DYNAMIC, DYNAMIC.allowed(ZONE, "a"))
    assert not hint(0, WEB, DYNAMIC, DYNAMIC.labels(tier="gold"))


def test_a_new_or_changed_claim_wakes_the_pod() -> None:
    assert hint(1, WEB, None, DATA)
    assert hint(1, WEB, DATA, DATA.bound_to("disk"))
    assert hint(1, pod("web").ephemeral_claim("tmp"), None, pvc("web-tmp"))
    assert not hint(1, WEB, None, pvc("other"))
    assert not hint(1, WEB, None, pvc("data", namespace="elsewhere"))
    assert not hint(1, pod("web"), None, DATA)


def test_wakes_when_a_node_migrates_plugins() -> None:
    migrated = csi_node("n1").annotations(
        **{"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/cinder"}
    )
    assert hint(4, WEB, None, csi_node("n1"))
    assert hint(4, WEB, csi_node("n1"), migrated)
    assert not hint(4, WEB, migrated, migrated.driver("csi.example.com"))


def test_wakes_when_the_driver_of_an_inline_volume_stops_counting() -> None:
    inline = pod("web").volume(Volume("tmp", csi=InlineCSI("csi.example.com")))
    counting, careless = csi_driver("csi.example.com"), csi_driver("csi.example.com", counts=False)
    assert hint(5, inline, counting, careless)
    assert not hint(5, inline, careless, counting)
    assert not hint(5, inline, csi_driver("other"), csi_driver("other", counts=False))
    assert not hint(5, WEB, counting, careless)


@pytest.mark.parametrize(
    ("old", "new", "wakes"),
    [
        (None, pool("p", "c", "1Gi"), True),
        (pool("p", "c", None), pool("p", "c", "1Gi"), True),
        (pool("p", "c", "1Gi"), pool("p", "c", "2Gi"), True),
        (pool("p", "c", "5Gi", largest="1Gi"), pool("p", "c", "5Gi", largest="2Gi"), True),
        (pool("p", "c", "5Gi", largest="1Gi"), pool("p", "c", "5Gi"), True),
        (pool("p", "c", "1Gi"), pool("p", "c", "1Gi"), False),
        (pool("p", "c", "2Gi"), pool("p", "c", "1Gi"), False),
        (pool("p", "c", "5Gi"), pool("p", "c", "9Gi", largest="5Gi"), False),
    ],
)
def test_wakes_when_a_pool_is_new_or_has_more_capacity(old: Any, new: Any, wakes: bool) -> None:
    assert hint(6, WEB, old, new) is wakes
