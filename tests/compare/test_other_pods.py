"""Topology spreading, and affinity and anti-affinity to other pods."""

from tests.compare.agreement import agree
from tests.compare.api import Document
from tests.compare.states import HOSTNAME, ZONE
from tests.compare.two_schedulers import Arena

from longshore.testing import NodeBuilder, PodBuilder, node, pod, replica_set, service

_SPREAD = "node(s) didn't match pod topology spread constraints"


def zoned(name: str, zone: str) -> NodeBuilder:
    return node(name).allocatable(cpu="8", memory="16Gi").labels(**{ZONE: zone})


def app(name: str, **labels: str) -> PodBuilder:
    return pod(name).labels(app="web", **labels)


def constraint(**said: object) -> Document:
    selector = {"matchLabels": {"app": "web"}}
    rule = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
    }
    return {"topologySpreadConstraints": [rule | said]}


def test_the_maximum_skew_of_zones_is_kept(arena: Arena) -> None:
    arena.become(zoned("e1", "east"), zoned("w1", "west"), node("bare").allocatable(cpu="8"))
    arena.add(app("a").on("e1"))
    assert agree(arena, app("p"), **constraint()).kube.node == "w1"
    arena.add(app("b").on("e1"), app("c").on("w1"), app("d").on("w1"))
    agree(arena, app("p"), **constraint())
    arena.add(pod("full").requests(cpu="8").on("w1"), app("e").on("e1"))
    message = agree(arena, app("p").requests(cpu="1"), **constraint()).kube.message
    assert f"1 {_SPREAD}," in message
    assert f"1 {_SPREAD} (missing required label)" in message


def test_too_few_domains_leave_all_pods_pending(arena: Arena) -> None:
    arena.become(zoned("e1", "east"), zoned("w1", "west"), app("a").on("e1"), app("b").on("w1"))
    assert agree(arena, app("p"), **constraint(minDomains=2)).kube.node
    assert f"2 {_SPREAD}" in agree(arena, app("p"), **constraint(minDomains=3)).kube.message


def test_zones_of_tainted_nodes_count_according_to_the_policy(arena: Arena) -> None:
    arena.become(zoned("e1", "east"), zoned("w1", "west").taint("t"), app("a").on("e1"))
    assert _SPREAD in agree(arena, app("p"), **constraint()).kube.message
    assert agree(arena, app("p"), **constraint(nodeTaintsPolicy="Honor")).kube.node == "e1"


def test_zones_that_the_affinity_excludes_count_according_to_the_policy(arena: Arena) -> None:
    arena.become(zoned("e1", "east"), zoned("w1", "west"), app("a").on("e1"))
    wants = app("p").node_selector(**{ZONE: "east"})
    assert agree(arena, wants, **constraint()).kube.node == "e1"
    assert _SPREAD in agree(arena, wants, **constraint(nodeAffinityPolicy="Ignore")).kube.message


def test_each_revision_is_spread_separately(arena: Arena) -> None:
    arena.become(zoned("e1", "east"), zoned("w1", "west"))
    arena.add(
        app("a", revision="1").on("e1"), app("b", revision="1").on("e1"), app("c", revision="2").on("w1")
    )
    by_revision = constraint(matchLabelKeys=["revision"])
    assert agree(arena, app("p", revision="1"), **by_revision).kube.node == "w1"
    assert agree(arena, app("p", revision="2"), **by_revision).kube.node == "e1"


def test_pods_that_are_being_deleted_do_not_count(arena: Arena) -> None:
    leaving = app("leaving").on("e1")
    arena.become(zoned("e1", "east"), zoned("w1", "west"), leaving, app("b").on("w1"))
    arena.api.delete(leaving, grace=True)
    arena.settle()
    assert agree(arena, app("p"), **constraint()).kube.node == "e1"


def test_soft_spread_constraints_are_weighted(arena: Arena) -> None:
    arena.become(
        *(zoned(f"e{n}", "east") for n in range(3)), zoned("w0", "west"), zoned("w1", "west"), zoned("n", "n")
    )
    arena.add(*(app(f"on-e{n}").on(f"e{n % 2}") for n in range(5)), app("on-w").on("w0"))
    agree(
        arena,
        app("p").spread(ZONE, hard=False, app="web").spread(HOSTNAME, hard=False, max_skew=2, app="web"),
    )
    assert agree(arena, app("p").spread(ZONE, hard=False, app="web")).kube.node == "n"


def test_pods_of_a_controller_are_spread_by_default(arena: Arena) -> None:
    arena.become(zoned("e1", "east"), zoned("e2", "east"), zoned("w1", "west"), replica_set("web", app="web"))
    arena.add(app("a").on("e1"), service("web", app="web"))
    arena.settle()
    answers = agree(arena, app("p"))
    assert answers.kube.node == "w1"
    assert answers.scores["e1"]["PodTopologySpread"] < answers.scores["w1"]["PodTopologySpread"]
    arena.remove(service("web", app="web"))
    arena.settle()
    assert agree(arena, app("p").owner("ReplicaSet", "web")).kube.node == "w1"


def test_anti_affinity_is_checked_in_both_directions(arena: Arena) -> None:
    arena.become(zoned("e1", "east"), zoned("e2", "east"), zoned("w1", "west"))
    arena.add(app("hermit").anti_affinity_to(ZONE, app="db").on("e1"))
    assert agree(arena, pod("p").labels(app="db")).kube.node == "w1"
    assert agree(arena, pod("p").anti_affinity_to(ZONE, app="web")).kube.node == "w1"
    message = agree(arena, pod("p").labels(app="db").node_selector(**{ZONE: "east"})).kube.message
    assert "2 node(s) didn't satisfy existing pods anti-affinity rules" in message
    message = agree(
        arena, pod("p").anti_affinity_to(ZONE, app="web").node_selector(**{ZONE: "east"})
    ).kube.message
    assert "2 node(s) didn't match pod anti-affinity rules" in message


def test_affinity_terms_select_pods_of_other_namespaces(arena: Arena) -> None:
    arena.become(
        zoned("e1", "east"), zoned("w1", "west"), pod("far", namespace="other").labels(app="web").on("e1")
    )
    near = pod("p").affinity_to(ZONE, app="web")
    assert "2 node(s) didn't match pod affinity rules" in agree(arena, near).kube.message
    by_labels = pod("p").affinity_to(ZONE, namespace_labels={"team": "other"}, app="web")
    assert agree(arena, by_labels).kube.node == "e1"
    assert agree(arena, pod("p").affinity_to(ZONE, namespace_labels={}, app="web")).kube.node == "e1"
    by_name = pod("p").anti_affinity_to(ZONE, namespaces=("other", "third"), app="web")
    assert agree(arena, by_name).kube.node == "w1"


def test_the_first_pod_of_a_group_can_go_to_any_node_with_the_topology_label(arena: Arena) -> None:
    arena.become(zoned("e1", "east"), node("bare").allocatable(cpu="8"))
    assert agree(arena, app("p").affinity_to(ZONE, app="web")).kube.node == "e1"
    assert (
        "2 node(s) didn't match pod affinity rules"
        in agree(arena, pod("p").affinity_to(ZONE, app="web")).kube.message
    )


def test_preferences_of_existing_pods_are_weighted(arena: Arena) -> None:
    arena.become(zoned("e1", "east"), zoned("w1", "west"), zoned("n1", "north"))
    arena.add(
        pod("likes").affinity_to(ZONE, preferred=40, app="web").on("e1"),
        pod("dislikes").anti_affinity_to(ZONE, preferred=90, app="web").on("w1"),
        pod("insists").affinity_to(ZONE, app="web").on("n1"),
    )
    scores = agree(arena, app("p")).scores
    ranked = sorted(scores, key=lambda name: scores[name]["InterPodAffinity"])
    assert ranked == ["w1", "n1", "e1"]
