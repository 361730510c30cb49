"""Affinity, spread, taints, nominations, and volumes work as in the engine, also between planned pods."""

from collections import Counter

import pytest
from tests.planning.worlds import World, by_name, reasons, room, three

from longshore.planning.problem import Objective
from longshore.testing import PodBuilder, pod, pv, pvc, storage_class

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def web(name: str) -> PodBuilder:
    return pod(name).requests(cpu="1").labels(app="web")


def choosy(name: str) -> PodBuilder:
    return web(name).anti_affinity_to(HOST, app="web")


@pytest.mark.parametrize("objective", ["Balance", "Pack"])
def test_pods_that_exclude_each_other_get_nodes_of_their_own(objective: Objective) -> None:
    plan = World(*three()).plan(*map(choosy, "abcd"), objective=objective)
    assert sorted(by_name(plan).values()) == ["n1", "n2", "n3"]
    reason = "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules."
    assert list(reasons(plan).values()) == [reason]


@pytest.mark.parametrize(("choosy_one", "other"), [("a", "b"), ("b", "a")])
@pytest.mark.parametrize("objective", ["Balance", "Pack"])
def test_anti_affinity_of_one_of_two_pods_keeps_both_apart(
    choosy_one: str, other: str, objective: Objective
) -> None:
    plan = World(*three()).plan(choosy(choosy_one), web(other), objective=objective)
    assert len(set(by_name(plan).values())) == 2


def test_with_a_single_node_one_of_two_pods_with_anti_affinity_is_left_out() -> None:
    plan = World(room("n1")).plan(choosy("a"), web("b"))
    assert len(plan.assignments) == len(plan.left_out) == 1


def wishful(name: str) -> PodBuilder:
    return web(name).anti_affinity_to(HOST, preferred=100, app="web")


def test_preferred_anti_affinity_is_respected_where_possible() -> None:
    assert len(set(by_name(World(*three()).plan(wishful("a"), wishful("b"))).values())) == 2


def test_preferred_anti_affinity_does_not_leave_out_a_pod() -> None:
    assert by_name(World(room("n1")).plan(wishful("a"), wishful("b"))) == {"a": "n1", "b": "n1"}


def replica(name: str, owner: str = "web") -> PodBuilder:
    return pod(name).owner("ReplicaSet", owner)


# The scores alone would put all pods on the large one.
UNEVEN = (room("n1", "64", "128Gi"), room("n2", "2", "2Gi"), room("n3", "2", "2Gi"))


def test_replicas_of_one_owner_go_to_different_nodes() -> None:
    plan = World(*UNEVEN).plan(*map(replica, "abc"))
    assert sorted(by_name(plan).values()) == ["n1", "n2", "n3"]


def test_replicas_share_nodes_when_there_are_too_few() -> None:
    plan = World(*UNEVEN).plan(*map(replica, "abcde"))
    assert plan.complete
    assert set(by_name(plan).values()) == {"n1", "n2", "n3"}


def test_a_replica_avoids_nodes_with_running_replicas() -> None:
    world = World(*UNEVEN, replica("old").on("n1"), replica("older").on("n2"))
    assert by_name(world.plan(replica("new"))) == {"new": "n3"}


def test_a_terminating_replica_does_not_count() -> None:
    world = World(*UNEVEN, replica("old").on("n1").deleting(), replica("older").on("n2"))
    assert by_name(world.plan(replica("new"))) == {"new": "n1"}


@pytest.mark.parametrize("other", [pod("b"), replica("b", owner="db")])
def test_pods_of_different_owners_or_none_may_share_a_node(other: PodBuilder) -> None:
    assert set(by_name(World(*UNEVEN).plan(replica("a"), other)).values()) == {"n1"}


def test_replicas_with_pod_affinity_are_not_kept_apart() -> None:
    pods = [replica(name).labels(app="web").affinity_to(HOST, preferred=100, app="web") for name in "ab"]
    assert len(set(by_name(World(*three()).plan(*pods)).values())) == 1


def test_packing_does_not_keep_replicas_apart() -> None:
    assert len(set(by_name(World(*three()).plan(*map(replica, "abc"), objective="Pack")).values())) == 1


def test_only_pods_that_tolerate_a_taint_use_the_node() -> None:
    nodes = (room("n1").taint("dedicated", "db"), room("n2"))
    pods = [pod(f"plain-{number}").requests(cpu="2") for number in range(2)]
    tolerant = [
        pod(f"tolerant-{number}").requests(cpu="2").tolerate("dedicated", "db") for number in range(2)
    ]
    plan = World(*nodes).plan(*tolerant, *pods)
    assert by_name(plan) == {"plain-0": "n2", "plain-1": "n2", "tolerant-0": "n1", "tolerant-1": "n1"}


def test_a_cordoned_node_is_not_used() -> None:
    plan = World(room("n1").unschedulable(), room("n2")).plan(web("a"), web("b"))
    assert set(by_name(plan).values()) == {"n2"}


def zoned(name: str, zone: str, cpu: str = "8") -> object:
    return room(name, cpu).labels(**{ZONE: zone})


@pytest.mark.parametrize("objective", ["Balance", "Pack"])
def test_pods_are_spread_by_their_constraints(objective: Objective) -> None:
    zones = {"n1": "east", "n2": "east", "n3": "west"}
    world = World(*(zoned(name, zone) for name, zone in zones.items()))
    plan = world.plan(*(web(name).spread(ZONE, app="web") for name in "abcdef"), objective=objective)
    assert Counter(zones[node] for node in by_name(plan).values()) == {"east": 3, "west": 3}


def test_a_full_zone_holds_back_pods_with_spread_constraints() -> None:
    world = World(zoned("n1", "east"), zoned("n2", "west", cpu="1"))
    plan = world.plan(*(web(name).spread(ZONE, app="web") for name in "abcde"))
    assert Counter(by_name(plan).values()) == {"n1": 2, "n2": 1}


def near_db(name: str) -> PodBuilder:
    return pod(name).requests(cpu="1").affinity_to(HOST, app="db")


def test_a_pod_comes_after_the_pod_that_its_affinity_requires() -> None:
    plan = World(*three()).plan(near_db("a"), pod("z").requests(cpu="1").labels(app="db"))
    assert [each.pod for each in plan.assignments] == ["default/z", "default/a"]
    assert len(set(by_name(plan).values())) == 1


def test_a_pod_gets_its_room_near_a_required_pod_before_others_take_it() -> None:
    others = [pod(f"a{number}").requests(cpu="2") for number in range(2)]
    db = pod("db").requests(cpu="2").labels(app="db")
    plan = World(room("n1"), room("n2")).first_round(*others, db, near_db("near").requests(cpu="2"))
    assert plan.complete


def test_a_required_pod_may_have_a_lower_priority() -> None:
    db = pod("db").requests(cpu="1").labels(app="db")
    assert World(*three()).plan(near_db("a").priority(10), db).complete


def test_pods_with_affinity_only_to_each_other_are_left_out() -> None:
    one = pod("a").labels(app="web").affinity_to(HOST, app="db")
    other = pod("b").labels(app="db").affinity_to(HOST, app="web")
    assert len(World(*three()).plan(one, other).left_out) == 2


# Nominations.


def test_room_for_a_nominated_pod_is_left_to_it() -> None:
    nominee = pod("nominee").requests(cpu="4").priority(10).nominated("n1").gates("wait")
    plan = World(*three(), nominee).plan(*(pod(name).requests(cpu="4") for name in "abc"))
    assert sorted(by_name(plan).values()) == ["n2", "n3"]


def test_a_nominated_pod_of_the_set_goes_to_its_node_and_counts_once() -> None:
    nominee = pod("nominee").requests(cpu="2").nominated("n1").gates("wait")
    world = World(room("n1", "4"), nominee)
    plan = world.first_round(nominee, pod("other").requests(cpu="2"))
    assert by_name(plan) == {"nominee": "n1", "other": "n1"}


def test_a_nomination_counts_more_than_scores() -> None:
    nominee = pod("nominee").requests(cpu="1").nominated("n2").gates("wait")
    assert by_name(World(*UNEVEN, nominee).plan(nominee)) == {"nominee": "n2"}


# Volumes.


def test_a_volume_is_not_planned_for_two_pods() -> None:
    local = storage_class("local").waiting()
    volumes = (pv(f"disk-{n}", storage_class="local").reachable_from(HOST, n) for n in ("n1", "n2"))
    claims = [pvc(f"data-{name}", storage_class="local") for name in "abc"]
    world = World(*three(), local, *volumes, *claims)
    plan = world.plan(*(pod(name).claim(f"data-{name}") for name in "abc"))
    assert sorted(by_name(plan).values()) == ["n1", "n2"]
    assert len(plan.left_out) == 1
