"""For any pods and nodes, a plan is valid by the engine's filters and by those of the reference scheduler."""

from collections.abc import Sequence

import hypothesis.strategies as st
import msgspec
from hypothesis import HealthCheck, given, settings
from tests.engine.reference import Reference
from tests.planning.worlds import World, infos, picture

from longshore.api import Node, Pod
from longshore.planning import Plan
from longshore.planning.problem import Objective
from longshore.planning.verify import checked, violations
from longshore.testing import PodBuilder
from longshore.testing.strategies import choosy_pods, varied_nodes

NAMES = ("n1", "n2", "n3", "n4")


@st.composite
def sets(draw: st.DrawFn) -> list[PodBuilder]:
    """Pods of a few shapes: some alike, some not."""
    shapes = draw(st.lists(choosy_pods(name="shape"), min_size=1, max_size=4))
    picks = draw(st.lists(st.integers(0, len(shapes) - 1), min_size=1, max_size=9))
    return [renamed(shapes[pick], f"p{number}") for number, pick in enumerate(picks)]


def renamed(shape: PodBuilder, name: str) -> PodBuilder:
    replace = msgspec.structs.replace
    return replace(shape, metadata=replace(shape.metadata, name=name, uid=f"uid-{name}"))


@st.composite
def running(draw: st.DrawFn) -> list[PodBuilder]:
    count = draw(st.integers(0, 4))
    return [
        draw(choosy_pods(name=f"old-{number}")).on(draw(st.sampled_from(NAMES))) for number in range(count)
    ]


NODES = st.lists(st.sampled_from(NAMES), min_size=1, unique=True).flatmap(
    lambda names: st.tuples(*(varied_nodes(name=name) for name in names))
)
OBJECTIVES = st.sampled_from(["Balance", "Pack"])


def reference_of(nodes: Sequence[Node], placed: Sequence[Pod]) -> Reference:
    reference = Reference()
    reference.nodes = {node.metadata.name: node for node in nodes}
    known = [pod for pod in placed if pod.spec.node_name in reference.nodes]
    reference.pods = {pod.key: (pod, pod.spec.node_name) for pod in known}
    return reference


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(NODES, running(), sets(), OBJECTIVES)
def test_every_plan_is_valid_and_pods_left_out_fit_nowhere(
    nodes: Sequence[Node], placed: list[PodBuilder], pods: list[PodBuilder], objective: Objective
) -> None:
    world = World(*nodes, *placed)
    before = picture(world.cluster)
    plan = world.plan(*pods, objective=objective)
    assert picture(world.cluster) == before
    told = [*(each.uid for each in plan.assignments), *(each.uid for each in plan.left_out)]
    assert sorted(told) == sorted(infos(*pods))

    assert violations(world.engine.chooser("longshore"), plan, infos(*pods)) == []
    assert picture(world.cluster) == before

    reference = reference_of(nodes, placed)
    by_uid = {pod.metadata.uid: pod for pod in pods}
    for entry in plan.assignments:
        pod = by_uid[entry.uid]
        assert reference.reasons(pod, reference.nodes[entry.node]) == [], entry
        reference.pods[pod.key] = (pod, entry.node)
    for left in plan.left_out:
        assert left.reason == reference.message(by_uid[left.uid])


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(NODES, running(), sets(), OBJECTIVES)
def test_checking_a_plan_gives_the_same_plan(
    nodes: Sequence[Node], placed: list[PodBuilder], pods: list[PodBuilder], objective: Objective
) -> None:
    world = World(*nodes, *placed)
    plan = world.plan(*pods, objective=objective)
    again = checked(world.problem(*pods, objective=objective), plan.assignments)
    assert again.assignments == plan.assignments
    assert (again.objective, again.bound) == (plan.objective, plan.bound)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(NODES, running(), sets(), OBJECTIVES)
def test_keeping_a_plan_gives_the_same_plan(
    nodes: Sequence[Node], placed: list[PodBuilder], pods: list[PodBuilder], objective: Objective
) -> None:
    world = World(*nodes, *placed)
    plan = world.plan(*pods, objective=objective)
    kept = {each.uid: each.node for each in plan.assignments}
    again: Plan = world.plan(*pods, objective=objective, kept=kept)
    assert again.assignments[: len(plan.assignments)] == plan.assignments
