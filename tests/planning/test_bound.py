"""No plan costs less than its bound. The tests compute the cost of all possible plans."""

from collections.abc import Mapping, Sequence
from itertools import product

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings
from tests.engine.reference import Amounts, amounts, asks_for
from tests.planning.worlds import World, room, three

from longshore.api import Node, Pod
from longshore.cluster import ClusterState, PodInfo
from longshore.framework import CycleState, Forced
from longshore.planning.cost import COSTS
from longshore.planning.problem import Objective
from longshore.testing import PodBuilder, pod
from longshore.testing.strategies import nodes, pods

NAMES = ("n1", "n2", "n3")


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Node], list[Pod], list[Pod]]:
    """Nodes, the pods on them, and a few pods to place."""
    there: list[Node] = [
        drawn.unschedulable() if draw(st.integers(0, 4)) == 0 else drawn
        for drawn in [draw(nodes(name=name)) for name in NAMES[: draw(st.integers(1, 3))]]
    ]
    names = st.sampled_from([each.metadata.name for each in there])
    placed: list[Pod] = [
        draw(pods(name=f"old-{number}")).on(draw(names)) for number in range(draw(st.integers(0, 3)))
    ]
    waiting: list[Pod] = [draw(pods(name=f"p{number}")) for number in range(draw(st.integers(1, 4)))]
    return there, placed, waiting


def with_pod(amounts: Amounts, more: Pod) -> Amounts:
    asked = {"pods": 1, **asks_for(more)}
    return {resource: amounts.get(resource, 0) + asked.get(resource, 0) for resource in {*amounts, *asked}}


def loads(there: Sequence[Node], placed: Sequence[tuple[Pod, str]]) -> Mapping[str, Amounts]:
    found: dict[str, Amounts] = {each.metadata.name: {} for each in there}
    for each, name in placed:
        found[name] = with_pod(found[name], each)
    return found


def cost(objective: Objective, there: Sequence[Node], used: Mapping[str, Amounts]) -> float:
    if objective == "Pack":
        return sum(1 for name, load in used.items() if load.get("pods", 0))
    shares = [0.0]
    for node in (each for each in there if not each.spec.unschedulable):
        offered, load = amounts(node.status.allocatable), used[node.metadata.name]
        for resource in ("cpu", "memory"):
            asked = load.get(resource, 0)
            shares.append(min(asked / offered[resource], 1.0) if offered[resource] else float(asked > 0))
    return max(shares)


def all_plans(
    there: Sequence[Node], placed: Sequence[Pod], waiting: Sequence[Pod]
) -> list[Mapping[str, Amounts]]:
    """The amounts on the nodes after each possible way to place all pods."""
    before = [(each, each.spec.node_name) for each in placed]
    found = []
    open_to_all = [each.metadata.name for each in there if not each.spec.unschedulable]
    for choice in product(open_to_all, repeat=len(waiting)):
        used = loads(there, [*before, *zip(waiting, choice, strict=True)])
        # A node that is overfull still takes pods that request nothing of what it lacks.
        fits = all(
            used[node.metadata.name].get(resource, 0) <= amounts(node.status.allocatable).get(resource, 0)
            for node in there
            for each, name in zip(waiting, choice, strict=True)
            if name == node.metadata.name
            for resource, amount in {"pods": 1, **asks_for(each)}.items()
            if amount
        )
        if fits:
            found.append(used)
    return found


@pytest.mark.parametrize("objective", ["Balance", "Pack"])
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cluster=clusters())
def test_no_plan_is_cheaper_than_the_bound(
    objective: Objective, cluster: tuple[list[Node], list[Pod], list[Pod]]
) -> None:
    there, placed, waiting = cluster
    world = World(*there, *placed)
    bound = COSTS[objective](world.cluster).bound(world.problem(*waiting).pods)
    plan = world.plan(*waiting, objective=objective)
    costs = [cost(objective, there, used) for used in all_plans(there, placed, waiting)]
    if plan.complete:
        assert plan.bound == bound <= min(costs) + 1e-12
        assert min(costs) <= plan.objective + 1e-12
    elif costs:
        assert bound <= min(costs) + 1e-12


def pieces(count: int, cpu: str = "1") -> list[PodBuilder]:
    return [pod(f"p{number}").requests(cpu=cpu) for number in range(count)]


def test_the_bound_of_balance_includes_existing_usage() -> None:
    plan = World(*three(), pod("old").requests(cpu="3").on("n1")).plan(*pieces(1))
    assert plan.bound == plan.objective == 0.75


def test_the_bound_of_balance_is_the_level_to_which_all_nodes_are_filled() -> None:
    plan = World(*three()).plan(*pieces(6))
    assert plan.bound == pytest.approx(0.5)
    assert plan.gap == pytest.approx(0.0, abs=1e-6)


def test_the_bound_of_balance_includes_the_largest_pod() -> None:
    plan = World(room("n1", "4"), room("n2", "10", "16Gi")).plan(*pieces(1, "6"))
    assert plan.bound == pytest.approx(0.6)


def test_the_bound_of_balance_includes_memory() -> None:
    plan = World(*three()).plan(*(pod(name).requests(memory="4Gi") for name in "abc"))
    assert plan.bound == pytest.approx(0.5)


def test_a_full_cordoned_node_does_not_raise_the_bound() -> None:
    full = room("n1", "100").unschedulable()
    world = World(full, room("n2"), pod("old").requests(cpu="100").on("n1"))
    problem = world.problem(*pieces(1))
    assert COSTS["Balance"](world.cluster).bound(problem.pods) == pytest.approx(0.25)


def test_the_bound_of_pack_counts_the_nodes_in_use_and_the_further_ones_needed() -> None:
    plan = World(*three(), pod("old").requests(cpu="3").on("n1")).plan(*pieces(6), objective="Pack")
    assert plan.bound == plan.objective == 3


def test_the_bound_of_pack_includes_the_number_of_pods_per_node() -> None:
    nodes = [each.allocatable(pods="2") for each in three()]
    assert World(*nodes).plan(*pieces(4, "0"), objective="Pack").bound == 2


def test_pods_that_are_forced_onto_a_full_node_cost_no_less_than_the_bound() -> None:
    class Forcing:
        name = "Forcing"

        def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> Forced:
            return Forced("n1")

    plan = World(*three(), plugins=(Forcing(),)).plan(*pieces(6, "4"), objective="Pack")
    assert plan.bound == plan.objective == 1


def test_a_plan_that_leaves_out_pods_has_no_bound() -> None:
    plan = World(*three()).plan(*pieces(13))
    assert not plan.complete
    assert plan.bound is plan.gap is None
