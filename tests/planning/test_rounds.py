"""The order in which pods are tried, and the further rounds when some of them find no node."""

import pytest
from tests.planning.worlds import World, by_name, never_late, picture, reasons, room, three

from longshore.api import Change
from longshore.planning import Plan, greedy
from longshore.planning.problem import Objective
from longshore.testing import PodBuilder, pod


def large(name: str, cpu: str = "4") -> PodBuilder:
    return pod(name).requests(cpu=cpu)


def test_the_more_important_pods_get_the_room() -> None:
    pods = [large(f"p{number}").priority(number % 5) for number in range(10)]
    assert set(by_name(World(*three()).plan(*pods))) == {"p4", "p9", "p3"}


def test_many_small_pods_do_not_displace_a_more_important_large_one() -> None:
    small = [large(f"small-{number}", "1") for number in range(4)]
    plan = World(room("n1")).plan(*small, large("large").priority(1))
    assert by_name(plan) == {"large": "n1"}


def test_of_pods_with_equal_priority_as_many_as_possible_are_placed() -> None:
    """The large one is tried first, and comes after the small ones in another round."""
    small = [large(f"small-{number}", "1") for number in range(4)]
    plan = World(room("n1")).plan(*small, large("large"))
    assert set(by_name(plan)) == {each.metadata.name for each in small}


def test_pods_that_fit_on_few_nodes_come_before_those_that_fit_anywhere() -> None:
    nodes = (*three(), room("n4").labels(disk="ssd"))
    choosy = large("z-choosy").node_selector(disk="ssd")
    plan = World(*nodes).first_round(*map(large, "abc"), choosy)
    assert plan.complete
    assert by_name(plan)["z-choosy"] == "n4"


def test_of_very_many_kinds_of_pods_the_largest_come_first() -> None:
    small = [large(f"a{number}", "1m").labels(number=str(number)) for number in range(300)]
    nodes = [room(name).allocatable(pods="1000") for name in ("n1", "n2")]
    assert World(*nodes).first_round(*small, large("large")).complete


def test_of_plans_that_place_as_many_pods_the_cheaper_one_is_taken() -> None:
    assert by_name(World(room("n1")).plan(large("a", "3"), large("b", "2"))) == {"b": "n1"}


def test_pods_are_packed_tightly_if_that_gives_room_to_all() -> None:
    """By scores, the first two get a node each, and there is none for the third."""
    first = [large(f"p{number}", "2").priority(1) for number in range(2)]
    assert World(room("n1"), room("n2")).plan(*first, large("last")).complete


def test_reasons_are_those_of_the_plan_that_was_taken() -> None:
    """Earlier rounds place one of the large pods, and then the other one lacks only cpu."""
    larger = pod("larger").requests(cpu="4", memory="1Gi")
    wide = pod("large").requests(cpu="3500m", memory="1Gi")
    heavy = [pod(f"heavy-{number}").requests(cpu="1", memory="4Gi") for number in range(2)]
    plan = World(room("n1")).plan(larger, wide, *heavy)
    lacking = "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory."
    assert reasons(plan) == {"larger": lacking, "large": lacking}


class Ticking:
    """A clock that advances by one step each time it is read."""

    def __init__(self, step: float) -> None:
        self.now = 0.0
        self.step = step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def crowd() -> list[PodBuilder]:
    return [*(large(f"small-{number}", "1") for number in range(4)), large("large")]


def test_the_first_round_is_completed_however_long_it_takes() -> None:
    plan = greedy.plan(World(room("n1")).problem(*crowd()), clock=Ticking(10.0), budget=0.3)
    assert by_name(plan) == {"large": "n1"}
    assert len(plan.left_out) == 4


def test_a_round_that_takes_too_long_is_abandoned() -> None:
    """The clock is read at the start, after the first round, and then before each pod of the next round."""
    plan = greedy.plan(World(room("n1")).problem(*crowd()), clock=Ticking(0.1), budget=0.35)
    assert by_name(plan) == {"large": "n1"}


def search(world: World, *pods: PodBuilder) -> greedy.Search:
    return greedy.Search(world.problem(*pods), clock=never_late, budget=0.3)


def test_between_rounds_nothing_of_the_plan_is_in_the_cluster() -> None:
    world = World(room("n1"))
    before = picture(world.cluster)
    found = search(world, *crowd())
    while not found.over:
        found.round()
        assert picture(world.cluster) == before
    assert len(found.plan.assignments) == 4


@pytest.mark.parametrize("kept", [{}, {"uid-default-small-0": "n1"}])
def test_the_next_round_sees_changes_of_nodes_between_rounds(kept: dict[str, str]) -> None:
    world = World(room("n1"))
    found = greedy.Search(world.problem(*crowd(), kept=kept), clock=never_late, budget=0.3)
    found.round()
    assert not found.over
    world.engine.receive(Change(None, room("n2", "8")), now=0.0)
    found.round()
    assert found.over
    assert found.plan.complete


def test_a_node_that_is_removed_between_rounds_is_not_used_afterwards() -> None:
    nodes = [room("n1"), room("n2")]
    world = World(*nodes)
    found = search(world, *crowd(), large("another"))
    found.round()
    best = len(found.plan.assignments)
    world.engine.receive(Change(nodes[1], None), now=0.0)
    while not found.over:
        found.round()
    # The best plan so far counts, although it will turn out to be invalid.
    assert len(found.plan.assignments) >= best


def test_asking_for_a_plan_before_the_first_round_is_an_error() -> None:
    with pytest.raises(ValueError, match="before the first round"):
        _ = search(World(*three()), large("a")).plan


def test_the_seconds_of_a_plan_are_measured_by_the_clock() -> None:
    assert greedy.plan(World(*three()).problem(large("a")), clock=Ticking(0.25)).seconds == 0.25


def test_an_equal_set_in_another_order_gives_an_equal_plan() -> None:
    pods = [large(f"p{number}", str(number % 3 + 1)).priority(number % 2) for number in range(12)]

    def plan(pods: list[PodBuilder]) -> Plan:
        return World(*three("8")).plan(*pods)

    assert plan(pods) == plan(pods[::-1]) == plan(sorted(pods, key=lambda each: each.metadata.uid))


def test_planning_twice_on_one_cluster_gives_an_equal_plan() -> None:
    world = World(*three("8"))
    pods = [large(f"p{number}", "1").labels(app="web") for number in range(12)]
    assert world.plan(*pods) == world.plan(*pods)


def test_packing_fills_nodes_that_are_in_use_before_it_opens_another() -> None:
    world = World(*three(), pod("old").requests(cpu="1").on("n2"))
    assert set(by_name(world.plan(large("a", "1"), large("b", "1"), objective="Pack")).values()) == {"n2"}


def test_packing_does_not_count_a_node_with_only_a_daemonset_pod_as_used() -> None:
    agents = [pod(f"agent-{name}").owner("DaemonSet", "agent").on(name) for name in ("n1", "n2", "n3")]
    plan = World(*three(), *agents, pod("old").on("n3")).plan(large("a", "1"), objective="Pack")
    assert by_name(plan) == {"a": "n3"}
    assert plan.objective == 1


def test_packing_opens_the_node_with_the_most_room() -> None:
    roomiest = room("n2", "16", "32Gi").taint("spot", effect="PreferNoSchedule")
    nodes = (room("n1", "4"), roomiest, room("n3", "4"))
    plan = World(*nodes).plan(*(large(f"p{number}", "2") for number in range(8)), objective="Pack")
    assert set(by_name(plan).values()) == {"n2"}


@pytest.mark.parametrize(("objective", "cost"), [("Balance", 0.5), ("Pack", 2.0)])
def test_a_plan_says_what_it_costs(objective: Objective, cost: float) -> None:
    plan = World(*three()).plan(*(large(name, "2") for name in "abc"), objective=objective)
    assert plan.objective == cost


def test_a_cordoned_node_does_not_count_for_balance() -> None:
    full = room("n1").unschedulable()
    world = World(full, room("n2"), pod("old").requests(cpu="4").on("n1"))
    assert world.plan(large("a", "1")).objective == 0.25


def test_a_cordoned_node_counts_for_balance_if_the_plan_uses_it() -> None:
    tolerant = large("a", "1").tolerate("node.kubernetes.io/unschedulable")
    assert World(room("n1").unschedulable()).plan(tolerant).objective == 0.25
