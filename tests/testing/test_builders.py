"""Builders are the objects that they build."""

import msgspec
import pytest

from longshore.api import Container, LabelSelector, Node, Pod, ResourceRequirements, Volume, selects
from longshore.testing import (
    csi_node,
    namespace,
    node,
    pdb,
    pod,
    pv,
    pvc,
    replica_set,
    replication_controller,
    service,
    stateful_set,
    storage_class,
)


def test_a_builder_is_a_pod_at_every_step() -> None:
    web = pod("web").requests(cpu="500m", memory="1Gi").labels(app="web").scheduler("mine")
    assert isinstance(web, Pod)
    assert web.key == "default/web"
    assert web.spec.scheduler_name == "mine"
    assert web.metadata.labels == {"app": "web"}
    main = Container(name="main", resources=ResourceRequirements(requests={"cpu": "500m", "memory": "1Gi"}))
    assert web.spec.containers == (main,)


def test_a_builder_is_not_changed_by_its_methods() -> None:
    plain = pod("web")
    plain.labels(a="b").requests(cpu="1").on("n1")
    assert plain == pod("web")


def test_uids_are_derived_from_names() -> None:
    assert pod("web").metadata.uid == pod("web").metadata.uid
    names = [pod("web"), pod("db"), pod("web", namespace="other"), pod("web").uid("second")]
    assert len({each.metadata.uid for each in names}) == 4


def test_the_settings_of_a_node_add_up() -> None:
    built = (
        node("n1")
        .allocatable(cpu="4")
        .allocatable(memory="8Gi")
        .labels(zone="a")
        .taint("k", effect="NoExecute")
    )
    assert isinstance(built, Node)
    assert built.status.allocatable == {"pods": "110", "cpu": "4", "memory": "8Gi"}
    assert built.metadata.labels == {"kubernetes.io/hostname": "n1", "zone": "a"}
    assert [(t.key, t.effect) for t in built.spec.taints] == [("k", "NoExecute")]
    assert built.ready
    assert node("n1").unschedulable().spec.unschedulable


@pytest.mark.parametrize(
    "built",
    [
        pod("a").init_container("i", cpu="1").sidecar("s", cpu="2").container("c").overhead(cpu="1m"),
        pod("b").gates("g").priority(3).pod_requests(memory="1Gi").phase("Running").deleting().on("n1"),
        pod("c")
        .affinity_to("zone", app="a")
        .anti_affinity_to("host", preferred=5, namespaces=("x",), app="b"),
        pod("d")
        .node_affinity("disk", "In", "ssd")
        .node_affinity("fast", "Exists", preferred=3)
        .only_on("n1"),
        pod("e")
        .spread("zone", hard=False, min_domains=2, app="a")
        .tolerate("k", "v", seconds=3)
        .host_port(80),
        pod("f").claim("data").ephemeral_claim("own").image_volume("x:1").volume(Volume("v")).image("y:1"),
        pod("g").nominated("n1").started("2026-01-01T00:00:00Z").never_preempting().owner("ReplicaSet", "w"),
        pod("i").only_on("n1").node_selector(disk="ssd").tolerate(seconds=3).created("2026-01-01T00:00:00Z"),
        pod("h").holding("main", {"cpu": "1"}, actual={"cpu": "2"}).host_network().annotations(a="b"),
    ],
)
def test_a_builder_survives_a_round_trip_through_json(built: Pod) -> None:
    body = msgspec.json.encode(built)
    assert msgspec.to_builtins(msgspec.json.decode(body, type=Pod)) == msgspec.to_builtins(built)


def test_affinity_terms_add_up() -> None:
    built = pod("a").affinity_to("zone", app="a").affinity_to("zone", preferred=7, app="b")
    built = built.anti_affinity_to("host", namespace_labels={}, app="c").node_affinity("disk", "In", "ssd")
    affinity = built.node_affinity("gpu", "Exists").spec.affinity
    assert affinity is not None
    assert affinity.pod_affinity is not None
    [term] = affinity.pod_affinity.required_during_scheduling_ignored_during_execution
    assert (term.topology_key, term.label_selector) == ("zone", LabelSelector({"app": "a"}))
    [wish] = affinity.pod_affinity.preferred_during_scheduling_ignored_during_execution
    assert wish.weight == 7
    assert affinity.pod_anti_affinity is not None
    [away] = affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution
    assert away.namespace_selector == LabelSelector()
    assert affinity.node_affinity is not None
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    assert required is not None
    [node_term] = required.node_selector_terms
    assert [r.key for r in node_term.match_expressions] == ["disk", "gpu"]


def test_tolerations_are_for_a_value_a_key_or_everything() -> None:
    tainted = node("n1").taint("dedicated", "web").spec.taints[0]
    for tolerant in (
        pod("a").tolerate("dedicated", "web"),
        pod("a").tolerate("dedicated"),
        pod("a").tolerate(),
    ):
        assert tolerant.spec.tolerations[0].tolerates(tainted)
    assert not pod("a").tolerate("dedicated", "db").spec.tolerations[0].tolerates(tainted)


def test_owners_have_the_same_uids_as_builders() -> None:
    owner = pod("web-1").owner("ReplicaSet", "web").metadata.controller
    assert owner is not None
    assert owner.uid == replica_set("web").metadata.uid


def test_a_node_has_images_and_declares_features() -> None:
    built = node("n1").image("a:1", "a@sha256:0", size=10).image("b:1", size=5).features("F").not_ready()
    assert [(i.names[0], i.size_bytes) for i in built.status.images] == [("a:1", 10), ("b:1", 5)]
    assert built.status.declared_features == ("F",)
    assert not built.ready
    assert built.annotations(a="b").metadata.annotations == {"a": "b"}


def test_objects_that_group_pods_select_them_by_labels() -> None:
    labels = {"app": "web"}
    assert namespace("team", tier="a").metadata.labels["tier"] == "a"
    assert service("web", app="web").spec.selector == labels
    assert replication_controller("web", app="web").spec.selector == labels
    for built in (replica_set("web", app="web"), stateful_set("web", app="web"), pdb("web", app="web")):
        assert selects(built.spec.selector, labels)
        assert built.key == "default/web"
    budget = pdb("web", app="web").allows(1).disrupted("web-1")
    assert budget.status.disruptions_allowed == 1
    assert "web-1" in budget.status.disrupted_pods


def test_a_claim_and_its_volume_refer_to_each_other() -> None:
    volume = pv("disk-1", storage="5Gi", storage_class="fast").claimed_by("data").csi("disk.example.com")
    claim = pvc("data", storage="5Gi", storage_class="fast").bound_to("disk-1")
    assert volume.spec.claim_ref is not None
    assert volume.spec.claim_ref.uid == claim.metadata.uid
    assert (claim.spec.volume_name, claim.status.phase, volume.status.phase) == ("disk-1", "Bound", "Bound")
    assert volume.spec.csi is not None
    assert volume.spec.csi.volume_handle == "disk-1"
    assert pod("a").claim("data").spec.volumes[0].claim_of("a") == "data"
    assert pod("a").ephemeral_claim("own").spec.volumes[0].claim_of("a") == "a-own"


def test_volumes_classes_and_drivers_have_topologies_and_limits() -> None:
    affinity = pv("disk").reachable_from("zone", "a", "b").spec.node_affinity
    assert affinity is not None
    assert affinity.required is not None
    assert affinity.required.node_selector_terms[0].match_expressions[0].values == ("a", "b")
    fast = storage_class("fast", provisioner="disk.example.com").waiting().allowed("zone", "a")
    assert (fast.volume_binding_mode, len(fast.allowed_topologies)) == ("WaitForFirstConsumer", 1)
    one, other = csi_node("n1").driver("a", limit=3).driver("b").spec.drivers
    assert one.allocatable is not None
    assert (one.allocatable.count, other.allocatable) == (3, None)
    assert selects(pvc("data").selecting(disk="ssd").spec.selector, {"disk": "ssd"})
