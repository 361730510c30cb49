"""A set must fit as a whole: each pod counts together with those planned before it and those on the nodes."""

from collections import Counter

import pytest
from tests.planning.worlds import World, by_name, infos, reasons, room, three

from longshore.planning.plan import GOES_AS_A_WHOLE
from longshore.planning.problem import Objective
from longshore.planning.verify import violations
from longshore.testing import PodBuilder, node, pod

NO_CPU = "0/3 nodes are available: 3 Insufficient cpu."


def large(number: int) -> PodBuilder:
    return pod(f"p{number}").requests(cpu="2")


@pytest.mark.parametrize("objective", ["Balance", "Pack"])
def test_six_pods_fill_three_nodes_completely(objective: Objective) -> None:
    plan = World(*three()).plan(*map(large, range(6)), objective=objective)
    assert plan.complete
    assert Counter(by_name(plan).values()) == {"n1": 2, "n2": 2, "n3": 2}


def test_the_seventh_pod_is_left_out_with_the_reason_of_the_filter() -> None:
    plan = World(*three()).plan(*map(large, range(7)))
    assert len(plan.assignments) == 6
    assert list(reasons(plan).values()) == [NO_CPU]


def test_all_or_nothing_leaves_out_every_pod_and_names_the_cause() -> None:
    plan = World(*three()).plan(*map(large, range(7)), all_or_nothing=True)
    assert plan.assignments == ()
    assert len(plan.left_out) == 7
    (lacking,) = [each for each in plan.left_out if each.reason.startswith(NO_CPU)]
    for each in plan.left_out:
        assert GOES_AS_A_WHOLE in each.reason.lower()
        assert each is lacking or (lacking.pod in each.reason and NO_CPU in each.reason)


def test_all_or_nothing_places_a_set_that_fits() -> None:
    assert World(*three()).plan(*map(large, range(6)), all_or_nothing=True).complete


def test_many_pods_without_room_are_not_all_named() -> None:
    plan = World(room("n1", "2")).plan(*map(large, range(6)), all_or_nothing=True)
    assert any("and 2 more" in each.reason for each in plan.left_out)


def test_a_pod_too_large_for_any_node_does_not_hold_back_the_others() -> None:
    plan = World(*three()).plan(pod("huge").requests(cpu="100"), large(1), large(2))
    assert set(by_name(plan)) == {"p1", "p2"}
    assert reasons(plan) == {"huge": NO_CPU}


def test_pods_on_the_nodes_take_up_room() -> None:
    world = World(*three(), pod("old").requests(cpu="3").on("n1"), pod("older").requests(cpu="3").on("n2"))
    assert set(by_name(world.plan(large(1), large(2))).values()) == {"n3"}


def test_the_number_of_pods_a_node_takes_is_counted() -> None:
    world = World(node("n1").allocatable(cpu="64", memory="64Gi", pods="2"))
    plan = world.plan(pod("a"), pod("b"), pod("c"))
    assert len(plan.assignments) == 2
    assert list(reasons(plan).values()) == ["0/1 nodes are available: 1 Too many pods."]


def test_host_ports_are_counted() -> None:
    plan = World(*three()).plan(*(pod(name).host_port(80) for name in "abcd"))
    assert set(by_name(plan).values()) == {"n1", "n2", "n3"}
    assert len(plan.left_out) == 1


def test_large_pods_get_the_room_that_small_ones_do_not_need() -> None:
    small = [pod(f"a-small-{number}").requests(cpu="1") for number in range(4)]
    whole = [pod(f"z-whole-{number}").requests(cpu="4") for number in range(2)]
    assert World(*three()).plan(*small, *whole).complete


def test_a_plan_can_be_carried_out_in_its_order() -> None:
    pods = [large(number) for number in range(6)]
    world = World(*three())
    assert violations(world.engine.chooser("longshore"), world.plan(*pods), infos(*pods)) == []


def test_without_nodes_all_pods_are_left_out() -> None:
    assert reasons(World().plan(large(1))) == {"p1": "no nodes available to schedule pods"}


def test_a_set_without_pods_is_a_complete_plan() -> None:
    plan = World(*three()).plan()
    assert plan.complete
    assert plan.assignments == ()


def test_a_pod_with_invalid_requests_is_left_out_for_that_reason() -> None:
    plan = World(*three()).plan(pod("odd").requests(cpu="many"), large(1))
    assert set(by_name(plan)) == {"p1"}
    assert "many" in reasons(plan)["odd"]


@pytest.mark.parametrize("placed", [large(1).on("n1"), large(1).uid("of-a-predecessor").on("n1")])
def test_a_pod_that_has_a_node_cannot_be_planned(placed: PodBuilder) -> None:
    with pytest.raises(ValueError, match="default/p1: it already has a node"):
        World(*three(), placed).plan(large(1))


def test_a_pod_that_is_bound_to_an_unknown_node_cannot_be_planned() -> None:
    with pytest.raises(ValueError, match="default/p1: it already has a node"):
        World(*three()).plan(large(1).on("elsewhere"))


def test_a_pod_that_is_assumed_cannot_be_planned() -> None:
    world = World(*three())
    world.cluster.assume(infos(large(1))[large(1).metadata.uid], "n2")
    with pytest.raises(ValueError, match="default/p1: it already has a node"):
        world.plan(large(1))


def test_a_pod_cannot_be_in_a_set_twice() -> None:
    with pytest.raises(ValueError, match="default/p1 twice"):
        World(*three()).plan(large(1), large(1))
