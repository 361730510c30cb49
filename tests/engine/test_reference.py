"""Every decision equals that of a slow, plain scheduler, although the engine keeps answers between decisions.

Many pods of few shapes meet nodes that come, change and go. At every step the engine's choice has to be among
the best nodes of the reference, and its message that of the reference.
"""

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, given, settings
from tests.engine.contest import Contest, named

from longshore.testing import NodeBuilder, PodBuilder, node
from longshore.testing.strategies import (
    HOSTNAME,
    LABELS,
    TAINTS,
    ZONE,
    ZONES,
    choosy_pods,
    pods,
    varied_nodes,
)

NAMES = ("n1", "n2", "n3", "n4", "n5")


Step = Callable[[Contest, list[PodBuilder], int], None]


@st.composite
def steps(draw: st.DrawFn) -> Step:
    kind = draw(
        st.sampled_from(
            ["create"] * 8
            + ["node"] * 2
            + [
                "remove node",
                "cordon",
                "relabel node",
                "foreign",
                "confirm",
                "delete",
                "terminate",
                "relabel",
            ]
        )
    )
    shape, pick = draw(st.integers(0, 2)), draw(st.integers(0, 20))
    name = draw(st.sampled_from(NAMES))
    several = draw(st.integers(1, 4))

    def happen(contest: Contest, shapes: list[PodBuilder], number: int) -> None:
        old = contest.reference.nodes.get(name)
        assert old is None or isinstance(old, NodeBuilder)
        some = named(shapes[shape % len(shapes)], number)
        match kind:
            case "create":
                for copy in range(several):
                    contest.create(named(some, number, copy))
            case "node":
                contest.put_node(spare)
            case "remove node":
                contest.remove_node(name)
            case "cordon" if old is not None:
                contest.put_node(old.unschedulable())
            case "relabel node" if old is not None:
                contest.put_node(old.labels(**{ZONE: "west"}))
            case "foreign":
                placed = some.scheduler("default-scheduler")
                contest.reference.pods[placed.key] = (placed, name)
                contest.tell(None, placed.on(name))
            case "confirm":
                contest.confirm(pick)
            case "delete":
                contest.delete(pick)
            case "terminate":
                contest.terminate(pick)
            case "relabel":
                contest.relabel(pick, app="web", tier="back")

    spare = node(name)
    if kind == "node":
        spare = draw(roomy_nodes(name=name) | varied_nodes(name=name))
    return happen


@st.composite
def roomy_nodes(draw: st.DrawFn, *, name: str) -> NodeBuilder:
    """Return nodes with room for several pods, so that there is most often a choice."""
    built = node(name).allocatable(
        cpu=draw(st.sampled_from(["4", "8", "16"])),
        memory=draw(st.sampled_from(["8Gi", "16Gi", "32Gi"])),
        pods=draw(st.sampled_from(["110", "110", "110", "3"])),
        **{"example.com/gpu": draw(st.sampled_from(["8", "8", "1", "0"]))},
    )
    zone = draw(st.sampled_from([*ZONES, *ZONES, None]))
    if zone is not None:
        built = built.labels(**{ZONE: zone})
    if draw(st.booleans()):
        built = built.labels(disk="ssd")
    effect = draw(st.sampled_from([None, None, "PreferNoSchedule", "PreferNoSchedule", "NoSchedule"]))
    return built if effect is None else built.taint(draw(st.sampled_from(TAINTS)), effect=effect)


@st.composite
def wishful_pods(draw: st.DrawFn) -> PodBuilder:
    """Return a pod with preferences and few requirements."""
    built = draw(pods()).labels(app=draw(st.sampled_from(LABELS["app"])))
    other: dict[str, Any] = {"app": draw(st.sampled_from(LABELS["app"]))}
    key, weight = draw(st.sampled_from([ZONE, HOSTNAME])), draw(st.integers(1, 100))
    match draw(st.integers(0, 6)):
        case 0 | 1:
            return built.node_affinity(ZONE, "In", draw(st.sampled_from(ZONES)), preferred=weight)
        case 2 | 3 | 4:
            return built.spread(key, hard=draw(st.booleans()), max_skew=draw(st.integers(1, 2)), **other)
        case 5:
            return built.affinity_to(key, preferred=weight, **other)
        case _:
            return built.anti_affinity_to(key, preferred=weight, **other)


@st.composite
def clusters(draw: st.DrawFn) -> list[NodeBuilder]:
    return [draw(roomy_nodes(name=name)) for name in NAMES[: draw(st.integers(3, 5))]]


# Generating the examples may be slow on a busy machine.
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists((choosy_pods() | wishful_pods()).map(PodBuilder.never_preempting), min_size=1, max_size=3),
    clusters(),
    st.lists(steps(), min_size=1, max_size=25),
)
def test_every_decision_is_that_of_a_plain_scheduler_placing_one_pod_after_the_other(
    shapes: list[PodBuilder], nodes: list[NodeBuilder], history: list[Step]
) -> None:
    contest = Contest()
    for each in nodes:
        contest.put_node(each)
    for number, step in enumerate(history):
        step(contest, shapes, number)
        contest.decide()
