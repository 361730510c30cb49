"""Preemption: the victims, nominated nodes, and the events and conditions."""

import random
from collections.abc import Callable

import pytest
from msgspec.structs import replace
from tests.compare.evictions import outcomes, preempted
from tests.compare.states import random_node, random_pod
from tests.compare.two_schedulers import Arena, Side

from longshore.api import Pod
from longshore.api.meta import ApiObject
from longshore.dev.fixtures import Repetitions
from longshore.testing import NodeBuilder, PodBuilder, node, pdb, pod

_LOWEST = -(1 << 31)
_URGENT = pod("urgent").requests(cpu="4").priority(100)


def sized(name: str) -> NodeBuilder:
    return node(name).allocatable(cpu="4", memory="8Gi")


def lesser(name: str, on: str, cpu: str, priority: int, hour: int = 1) -> PodBuilder:
    built = pod(name).requests(cpu=cpu).priority(priority).on(on)
    return built.started(f"2026-01-01T{hour:02d}:00:00Z")


def _budgets(worse: str, better: str) -> list[ApiObject]:
    """No budget is violated, even if pods of higher priority are evicted."""
    kept = lesser("kept", worse, "4", 1).labels(app="kept")
    return [kept, lesser("goes", better, "4", 50), pdb("kept", app="kept").allows(0)]


def _highest(worse: str, better: str) -> list[ApiObject]:
    """The highest priority of the victims is the lowest, even if there are more victims."""
    return [lesser("one", worse, "4", 10), lesser("two", better, "2", 5), lesser("three", better, "2", 5)]


def _sum(worse: str, better: str) -> list[ApiObject]:
    """The sum of the priorities of the victims is the lowest."""
    return [
        *(lesser("a", worse, "2", 10), lesser("b", worse, "2", 5)),
        *(lesser("c", better, "2", 10), lesser("d", better, "2", 1)),
    ]


def _fewest(worse: str, better: str) -> list[ApiObject]:
    """There are fewer victims. The lowest possible priority adds nothing to the sum."""
    two = (lesser("a", worse, "2", 10), lesser("b", worse, "2", _LOWEST))
    return [*two, lesser("c", better, "4", 10)]


def _latest(worse: str, better: str) -> list[ApiObject]:
    """The victims started later."""
    return [lesser("old", worse, "4", 10, hour=1), lesser("young", better, "4", 10, hour=2)]


@pytest.mark.parametrize("better", ["n1", "n2"])
@pytest.mark.parametrize("case", [_budgets, _highest, _sum, _fewest, _latest])
def test_the_node_with_the_least_costly_eviction_is_chosen(
    arena: Arena, case: Callable[[str, str], list[ApiObject]], better: str
) -> None:
    worse = "n2" if better == "n1" else "n1"
    things = [sized("n1"), sized("n2"), *case(worse, better)]
    theirs, ours = outcomes(arena, things, _URGENT)
    assert ours == theirs
    assert ours.nominated == better
    assert ours.victims == {thing.metadata.name for thing in things if on(thing) == better}


def on(thing: ApiObject) -> str:
    return thing.spec.node_name if isinstance(thing, Pod) else ""


def test_as_few_pods_as_possible_are_evicted(arena: Arena) -> None:
    """Pods of higher priority are reprieved first."""
    crowd = [lesser(f"of-{n}", "n1", "1", priority) for n, priority in enumerate((1, 5, 10, 20))]
    theirs, ours = outcomes(arena, [sized("n1"), *crowd], pod("p").requests(cpu="2").priority(50))
    assert ours == theirs
    assert ours.victims == {"of-0", "of-1"}


def test_a_disruption_budget_is_violated_only_if_nothing_else_helps(arena: Arena) -> None:
    crowd = [lesser(f"of-{n}", "n1", "2", 1).labels(app="web") for n in range(2)]
    budget = pdb("web", app="web").allows(1)
    theirs, ours = outcomes(arena, [sized("n1"), *crowd, budget], _URGENT)
    assert ours == theirs
    assert ours.victims == {"of-0", "of-1"}


def test_victims_are_deleted_with_their_own_grace_period(arena: Arena) -> None:
    things = [sized("n1"), lesser("a", "n1", "4", 1)]
    theirs, ours = outcomes(arena, things, _URGENT)
    assert ours == theirs
    assert [eviction.grace for eviction in ours.evictions] == [30]
    arena.api.delete(lesser("a", "n1", "4", 1))
    assert arena.until_bound(_URGENT) == "n1"
    assert "nominatedNodeName" not in arena.api.get(_URGENT)["status"]


def test_nominated_room_is_reserved_against_equal_and_lower_priorities(arena: Arena) -> None:
    asked = {
        "equal, next to the nominated room": pod("p").requests(cpu="1").priority(100),
        "equal, too large": pod("p").requests(cpu="2").priority(100).never_preempting(),
        "lower": pod("p").requests(cpu="2").priority(50).never_preempting(),
        "higher": pod("p").requests(cpu="2").priority(200).never_preempting(),
    }

    def ask(side: Side) -> dict[str, tuple[str, str]]:
        arena.become(sized("n1"), lesser("victim", "n1", "3", 1))
        assert preempted(arena, pod("urgent").requests(cpu="3").priority(100), side).nominated == "n1"
        found = {f"{what}, before": arena.ask(side, each) for what, each in asked.items()}
        arena.api.delete(pod("victim"))
        arena.until_bound(pod("urgent"))
        found |= {f"{what}, after": arena.ask(side, each) for what, each in asked.items()}
        return {what: (answer.node, answer.message) for what, answer in found.items()}

    assert ask("longshore") == ask("kube")


def test_a_pod_of_higher_priority_takes_nominated_room(arena: Arena) -> None:
    first, second = (pod(name).requests(cpu="3").priority(n) for name, n in (("first", 100), ("second", 200)))

    def ask(side: Side) -> tuple[str, str, set[str], bool]:
        arena.become(sized("n1"), lesser("victim", "n1", "3", 1))
        assert preempted(arena, first, side).nominated == "n1"
        outcome = preempted(arena, second, side)
        arena.api.delete(pod("victim"))
        arena.until_bound(second)
        arena.until(
            lambda: "nominatedNodeName" not in arena.api.get(first)["status"], "the nomination is cleared"
        )
        return outcome.nominated, outcome.message, outcome.victims, "nodeName" in arena.api.get(first)["spec"]

    assert ask("longshore") == ask("kube")


def test_preemption_agrees_on_random_crowded_clusters(arena: Arena, repetitions: Repetitions) -> None:
    """Every pod started at another time, so that one choice of victims is better than all others."""
    evictions = 0
    for seed in range(repetitions(full=60, short=8)):
        chance = random.Random(seed)
        things: list[ApiObject] = [random_node(chance, f"node-{n}") for n in range(8)]
        things[0] = node("node-0").allocatable(cpu="4", memory="8Gi")
        for number in range(45):
            built = random_pod(chance, f"pod-{number}", demands=chance.choice((0, 0, 1)))
            started = f"2026-01-01T00:{number // 60:02d}:{number % 60:02d}Z"
            things.append(
                built.priority(chance.choice((1, 5, 10))).on(f"node-{chance.randrange(8)}").started(started)
            )
        things += [pdb("web", app="web").allows(1), pdb("db", namespace="other", app="db").allows(0)]
        asked = random_pod(chance, "urgent", demands=seed % 3).container("large", cpu="3").priority(50)
        asked = replace(asked, spec=replace(asked.spec, preemption_policy="", resources=None))
        theirs, ours = outcomes(arena, things, asked)
        if theirs.message:
            assert ours == theirs, f"seed {seed}"
        else:
            # Each scheduler can choose any of the nodes that are equally good.
            assert (bool(ours.nominated), ours.message) == (True, ""), f"seed {seed}"
        evictions += len(ours.evictions)
    assert evictions


def test_the_preemptor_runs_when_its_victims_have_ended(managed: Arena) -> None:
    """Pods run and end as on a real node, and the controller counts the budget."""
    kept = pod("kept").requests(cpu="3").priority(1).labels(app="kept").on("n1")
    goes = pod("goes").requests(cpu="3").priority(10).on("n2")
    budget = {
        "metadata": {"name": "kept"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}},
    }
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    managed.api.request("POST", path, budget)

    def ask(side: Side) -> tuple[str, list[str], list[str]]:
        managed.become(sized("n1"), sized("n2"), kept, goes)
        # The controller can still be busy with pods of earlier tests.
        managed.until(
            lambda: managed.api.request("GET", f"{path}/kept")["status"].get("expectedPods"),
            "counted",
            within=60.0,
        )
        managed.settle()
        urgent = pod(f"urgent-{side}").requests(cpu="3").priority(100)
        managed.add(urgent.scheduler(f"{side}-default"))
        managed.until(lambda: managed.api.get(urgent)["status"]["phase"] == "Running", "the preemptor runs")
        found = managed.api.get(urgent)
        assert "nominatedNodeName" not in found["status"]

        def reasons() -> set[str]:
            return {event["reason"] for event in managed.api.events(found["metadata"]["uid"])}

        managed.until(lambda: "Scheduled" in reasons(), "the event of the bind")
        left = [name for name in ("kept", "goes") if managed.api.find(pod(name))]
        return found["spec"]["nodeName"], sorted(reasons()), left

    assert ask("longshore") == ask("kube") == ("n2", ["FailedScheduling", "Scheduled"], ["kept"])
