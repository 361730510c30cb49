"""Properties of nodes: taints, cordons, labels, names, ports, images."""

import pytest
from tests.compare.agreement import agree
from tests.compare.api import Document
from tests.compare.two_schedulers import Arena

from longshore.testing import NodeBuilder, PodBuilder, node, pod


def roomy(name: str) -> NodeBuilder:
    return node(name).allocatable(cpu="8", memory="16Gi")


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_taint_keeps_pods_away_that_do_not_tolerate_it(arena: Arena, effect: str) -> None:
    arena.become(
        roomy("n1").taint("spot", "yes", effect=effect), roomy("n2").taint("spot", "no", effect=effect)
    )
    message = agree(arena, pod("p")).kube.message
    assert message.startswith("0/2 nodes are available: 2 node(s) had untolerated taint(s).")
    assert agree(arena, pod("p").tolerate("spot", "yes")).kube.node == "n1"
    assert agree(arena, pod("p").tolerate("spot", "no", effect=effect)).kube.node == "n2"


def test_nodes_with_fewer_soft_taints_are_better(arena: Arena) -> None:
    soft = "PreferNoSchedule"
    arena.become(
        roomy("n1").taint("a", effect=soft).taint("b", effect=soft).taint("c", effect=soft),
        roomy("n2").taint("a", effect=soft),
        roomy("n3").taint("b", effect=soft).taint("c", effect=soft),
    )
    assert agree(arena, pod("p")).kube.node == "n2"
    answers = agree(arena, pod("p").tolerate("b").tolerate("c"))
    assert {name: scores["TaintToleration"] for name, scores in answers.scores.items()} == {
        "n1": 0,
        "n2": 0,
        "n3": 300,
    }


def test_a_cordoned_node_has_its_own_reason(arena: Arena) -> None:
    arena.become(roomy("n1").unschedulable())
    message = agree(arena, pod("p")).kube.message
    assert message.startswith("0/1 nodes are available: 1 node(s) were unschedulable.")
    assert agree(arena, pod("p").tolerate("node.kubernetes.io/unschedulable")).kube.node == "n1"


def test_nodes_without_a_feature_that_the_pod_needs_are_refused(arena: Arena) -> None:
    """There are two such features. The API server refuses hostNetwork without hostUsers (alpha in 1.36)."""
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}
    container = {"name": "main", "image": "none", "restartPolicy": "Never", "restartPolicyRules": [rule]}
    without, other = roomy("n1"), roomy("n2").features("AnotherFeature")
    arena.become(without, other)
    message = agree(arena, pod("p"), containers=[container]).kube.message
    reason = "2 node(s) didn't match Pod's required features"
    assert message.startswith(f"0/2 nodes are available: {reason}.")
    features = ("AnotherFeature", "RestartAllContainersOnContainerExits")
    arena.become(without, other, roomy("n3").features(*features))
    assert agree(arena, pod("p"), containers=[container]).kube.node == "n3"


_LABELLED = [
    roomy("n1").labels(generation="3", disk="ssd"),
    roomy("n2").labels(generation="7", disk="hdd"),
    roomy("n3").labels(generation="new"),
]
_WANTED = [
    (pod("gt").node_affinity("generation", "Gt", "3"), {"n2"}),
    (pod("lt").node_affinity("generation", "Lt", "7"), {"n1"}),
    (pod("not-in").node_affinity("disk", "NotIn", "ssd"), {"n2", "n3"}),
    (pod("absent").node_affinity("disk", "DoesNotExist"), {"n3"}),
    (pod("exists").node_affinity("disk", "Exists").node_selector(disk="ssd"), {"n1"}),
    (pod("nowhere").node_affinity("disk", "In", "tape"), set()),
    (pod("contradiction").node_affinity("disk", "In", "ssd").node_selector(disk="hdd"), set()),
]


def test_required_node_affinity_selects_nodes_by_label(arena: Arena) -> None:
    arena.become(*_LABELLED)
    for asked, wanted in _WANTED:
        assert set(agree(arena, asked).explanation.feasible) == wanted, asked.metadata.name


def test_an_empty_node_selector_term_matches_no_node(arena: Arena) -> None:
    arena.become(*_LABELLED)
    empty: Document = {"nodeSelectorTerms": [{}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": empty}}
    message = agree(arena, pod("p"), affinity=affinity).kube.message
    assert message.startswith("0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.")


def by_name(*terms: tuple[str, ...]) -> Document:
    fields = [[{"key": "metadata.name", "operator": "In", "values": list(names)}] for names in terms]
    required = {"nodeSelectorTerms": [{"matchFields": each} for each in fields]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def test_nodes_that_the_affinity_does_not_name_are_not_filtered(arena: Arena) -> None:
    arena.become(roomy("n1").taint("t"), roomy("n2").unschedulable(), roomy("n3").taint("t"), roomy("n4"))
    message = agree(arena, pod("p"), affinity=by_name(("n1",), ("n2",))).kube.message
    assert message.startswith(
        "0/4 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, "
        "2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )


def test_node_names_that_match_no_node_leave_the_pod_pending(arena: Arena) -> None:
    arena.become(roomy("n1"), roomy("n2"))
    agree(arena, pod("p"), affinity=by_name(("gone",)))
    # A node cannot have two names: the term contradicts itself.
    twice = by_name(("n1",))
    [term] = twice["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    term["matchFields"].append({"key": "metadata.name", "operator": "In", "values": ["n2"]})
    message = agree(arena, pod("p"), affinity=twice).kube.message
    assert not message.startswith("0/2 nodes are available: 2")


def test_preferred_node_affinity_is_weighted(arena: Arena) -> None:
    arena.become(
        roomy("n1").labels(a="1"), roomy("n2").labels(b="1"), roomy("n3").labels(a="1", b="1"), roomy("n4")
    )
    wishing = pod("p").node_affinity("a", "Exists", preferred=10).node_affinity("b", "Exists", preferred=90)
    scores = agree(arena, wishing).scores
    assert [scores[name]["NodeAffinity"] for name in ("n1", "n2", "n3", "n4")] == [20, 180, 200, 0]


_PORTS = {
    "the same address": (pod("p").host_port(80, ip="10.0.0.1"), False),
    "another address": (pod("p").host_port(80, ip="10.0.0.2"), True),
    "all addresses": (pod("p").host_port(80), False),
    "another protocol": (pod("p").host_port(80, protocol="UDP"), True),
    "another port": (pod("p").host_port(81), True),
}


@pytest.mark.parametrize("kind", _PORTS)
def test_host_ports_in_use_are_refused(arena: Arena, kind: str) -> None:
    asked, fits = _PORTS[kind]
    arena.become(roomy("n1"), pod("there").host_port(80, ip="10.0.0.1").on("n1"))
    answer = agree(arena, asked).kube
    assert bool(answer.node) is fits
    reason = "1 node(s) didn't have free ports for the requested pod ports."
    assert fits or answer.message.startswith(f"0/1 nodes are available: {reason}")


def test_a_pod_prefers_nodes_that_have_its_image(arena: Arena) -> None:
    size = 700 << 20
    arena.become(roomy("n1"), roomy("n2").image("example.com/app:latest", size=size), roomy("n3"))
    assert agree(arena, pod("p").image("example.com/app")).kube.node == "n2"
    assert agree(arena, pod("p").image("example.com/app:1")).scores["n2"]["ImageLocality"] == 0


def images(*names: str) -> PodBuilder:
    built = pod("p").image(names[0])
    return built.image_volume(names[1])


def test_an_image_volume_counts_as_an_image(arena: Arena) -> None:
    arena.become(roomy("n1").image("a:1", size=400 << 20), roomy("n2").image("b:1", size=900 << 20))
    assert agree(arena, images("a:1", "b:1")).kube.node == "n2"
