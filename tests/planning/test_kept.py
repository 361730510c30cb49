"""Pods that stay on the nodes of an earlier plan, and pods that may use only eligible nodes."""

from tests.planning.worlds import World, by_name, reasons, room, three

from longshore.planning.rehearsal import NOT_ELIGIBLE
from longshore.testing import PodBuilder, pod

HOST = "kubernetes.io/hostname"
# The scores would choose n1.
NODES = (room("n1", "64", "128Gi"), room("n2", "4"), room("n3", "4"))


def web(name: str) -> PodBuilder:
    return pod(name).requests(cpu="1")


def uid(name: str) -> str:
    return pod(name).metadata.uid


def test_a_kept_pod_stays_although_scores_prefer_another_node() -> None:
    plan = World(*NODES).plan(web("a"), web("b"), kept={uid("b"): "n3"})
    assert by_name(plan) == {"a": "n1", "b": "n3"}


def test_kept_pods_come_first_in_the_order_of_the_earlier_plan() -> None:
    kept = {uid("c"): "n2", uid("b"): "n3"}
    plan = World(*NODES).plan(*map(web, "abc"), kept=kept)
    assert [each.pod for each in plan.assignments] == ["default/c", "default/b", "default/a"]


def test_a_new_pod_of_higher_priority_does_not_move_a_kept_one() -> None:
    world = World(room("n1", "4"))
    plan = world.plan(web("a").requests(cpu="4"), web("b").priority(10), kept={uid("a"): "n1"})
    assert by_name(plan) == {"a": "n1"}


def test_a_kept_pod_whose_node_is_gone_is_planned_again() -> None:
    plan = World(*NODES).plan(web("a"), web("b"), kept={uid("a"): "n3", uid("b"): "no-more"})
    assert by_name(plan) == {"a": "n3", "b": "n1"}


def test_a_kept_pod_whose_node_was_cordoned_is_planned_again() -> None:
    world = World(NODES[0], NODES[1].unschedulable(), NODES[2])
    assert by_name(world.plan(web("a"), kept={uid("a"): "n2"})) == {"a": "n1"}


def test_a_kept_pod_whose_node_became_full_is_planned_again() -> None:
    world = World(*NODES, pod("other").requests(cpu="4").on("n2"))
    assert by_name(world.plan(web("a"), kept={uid("a"): "n2"})) == {"a": "n1"}


def test_of_two_kept_pods_that_now_exclude_each_other_the_second_is_planned_again() -> None:
    pods = [web(name).labels(app="web").anti_affinity_to(HOST, app="web") for name in "ab"]
    plan = World(*NODES).plan(*pods, kept={uid("a"): "n2", uid("b"): "n2"})
    assert by_name(plan) == {"a": "n2", "b": "n1"}


def test_a_kept_pod_may_be_required_by_an_earlier_one() -> None:
    near = web("near").affinity_to(HOST, app="db")
    kept = {uid("near"): "n2", uid("db"): "n2"}
    plan = World(*NODES).plan(near, web("db").labels(app="db"), kept=kept)
    assert [(each.pod, each.node) for each in plan.assignments] == [
        ("default/db", "n2"),
        ("default/near", "n2"),
    ]


def test_a_kept_pod_that_is_nominated_to_its_node_does_not_block_itself() -> None:
    twin, nominee = (web(name).requests(cpu="4").gates("wait") for name in "ab")
    nominee = nominee.nominated("n1")
    rival = web("rival").requests(cpu="4").priority(10)
    kept = {uid("a"): "n2", uid("b"): "n1"}
    assert by_name(World(room("n1"), room("n2"), nominee).plan(twin, nominee, rival, kept=kept)) == {
        "a": "n2",
        "b": "n1",
    }


def test_a_kept_pod_that_is_not_in_the_set_is_ignored() -> None:
    assert by_name(World(*NODES).plan(web("a"), kept={uid("b"): "n2"})) == {"a": "n1"}


def test_a_pod_goes_to_eligible_nodes_only() -> None:
    plan = World(*NODES).plan(web("a"), web("b"), eligible={uid("a"): ["n2", "no-such-node"]})
    assert by_name(plan) == {"a": "n2", "b": "n1"}


def test_equal_pods_may_have_different_eligible_nodes() -> None:
    eligible = {uid("a"): {"n2"}, uid("b"): {"n3"}, uid("c"): {"n2", "n3"}}
    pods = [web(name).requests(cpu="3") for name in "abc"]
    plan = World(*NODES).plan(*pods, eligible=eligible)
    assert by_name(plan) == {"a": "n2", "b": "n3"}
    assert reasons(plan) == {"c": f"0/3 nodes are available: 1 {NOT_ELIGIBLE}, 2 Insufficient cpu."}


def test_a_pod_without_eligible_nodes_is_left_out() -> None:
    plan = World(*NODES).plan(web("a"), eligible={uid("a"): ()})
    assert reasons(plan) == {"a": f"0/3 nodes are available: 3 {NOT_ELIGIBLE}."}


def test_nodes_ruled_out_by_a_plugin_are_listed_besides_those_not_eligible() -> None:
    plan = World(*three()).plan(web("a").only_on("n1"), eligible={uid("a"): {"n2"}})
    (reason,) = reasons(plan).values()
    assert f"2 {NOT_ELIGIBLE}" in reason
    assert "1 node(s) didn't satisfy plugin(s) [NodeAffinity]" in reason


def test_a_kept_node_that_is_not_eligible_is_given_up() -> None:
    plan = World(*NODES).plan(web("a"), kept={uid("a"): "n2"}, eligible={uid("a"): {"n3"}})
    assert by_name(plan) == {"a": "n3"}


def test_a_promised_node_that_is_not_eligible_is_given_up() -> None:
    nominee = web("a").nominated("n2").gates("wait")
    plan = World(*NODES, nominee).plan(nominee, eligible={uid("a"): {"n3"}})
    assert by_name(plan) == {"a": "n3"}
