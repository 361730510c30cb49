"""Preemption in virtual time: on which node, which victims, and what happens then."""

import pytest
from tests.engine.stage import Stage, engine_of, room

from longshore.api import Change
from longshore.cluster import CPU, PodInfo
from longshore.engine import Done, Evict, Failed, Gone, Nominate, SetCondition
from longshore.framework import CycleState, Handle, Wait
from longshore.testing import PodBuilder, pdb, pod

VIP = pod("vip").requests(cpu="2").priority(100)


def victim(name: str, node: str, *, cpu: str = "2", priority: int = 0, started: str = "") -> PodBuilder:
    built = pod(name).requests(cpu=cpu).priority(priority).on(node).scheduler("other").labels(app=name)
    return built.started(started) if started else built


def stage_with(*pods: PodBuilder, nodes: int = 2, stop_time: float = 5.0) -> Stage:
    """Nodes n1, n2, … with two cores each."""
    stage = Stage(defaults=True, stop_time=stop_time)
    stage.create(*(room(f"n{number}", "2") for number in range(1, nodes + 1)), *pods)
    stage.run()
    return stage


def nominated(stage: Stage, name: str = "vip") -> str:
    return stage.pod(name).status.nominated_node_name


def leaving(stage: Stage) -> set[str]:
    pods = stage.cluster.pods.values()
    return {each.metadata.name for each in pods if each.metadata.deletion_timestamp is not None}


# The first of these criteria that differs chooses the node.


def test_the_node_with_the_fewest_violated_budgets_is_chosen() -> None:
    stage = stage_with(victim("protected", "n1"), victim("free", "n2", priority=50))
    stage.create(pdb("budget", app="protected"), VIP)
    stage.run(until=1.0)
    assert nominated(stage) == "n2"


def test_then_the_node_whose_most_important_victim_is_the_least_important() -> None:
    stage = stage_with(
        victim("high", "n1", priority=20),
        victim("low-1", "n2", cpu="1", priority=10),
        victim("low-2", "n2", cpu="1", priority=10),
    )
    stage.create(VIP)
    stage.run(until=1.0)
    assert nominated(stage) == "n2"


def test_then_the_node_with_the_smallest_sum_of_priorities() -> None:
    stage = stage_with(
        victim("a1", "n1", cpu="1", priority=10),
        victim("a2", "n1", cpu="1", priority=9),
        victim("b1", "n2", cpu="1", priority=10),
        victim("b2", "n2", cpu="1", priority=2),
    )
    stage.create(VIP)
    stage.run(until=1.0)
    assert nominated(stage) == "n2"


def test_then_the_node_with_the_fewest_victims() -> None:
    # The sum counts priorities from the lowest possible one: two pods of that priority count as much as one.
    lowest = -(2**31)
    stage = stage_with(
        victim("a1", "n1", cpu="1", priority=lowest),
        victim("a2", "n1", cpu="1", priority=lowest),
        victim("b", "n2", cpu="2", priority=lowest),
    )
    stage.create(VIP)
    stage.run(until=1.0)
    assert nominated(stage) == "n2"


def test_then_the_node_whose_most_important_victim_started_last() -> None:
    stage = stage_with(
        victim("old", "n1", started="2026-01-01T00:00:00Z"),
        victim("young", "n2", started="2026-02-01T00:00:00Z"),
        victim("older", "n3", started="2025-12-01T00:00:00Z"),
        nodes=3,
    )
    stage.create(VIP)
    stage.run(until=1.0)
    assert nominated(stage) == "n2"


# Victims.


def test_no_more_pods_are_evicted_than_needed_and_the_important_ones_stay() -> None:
    stage = stage_with(
        victim("low", "n1", cpu="1", priority=1), victim("high", "n1", cpu="1", priority=9), nodes=1
    )
    stage.create(VIP.requests(cpu="1"))
    stage.run(until=1.0)
    assert leaving(stage) == {"low"}


def test_of_equally_important_pods_the_one_that_has_run_for_longer_stays() -> None:
    stage = stage_with(
        victim("old", "n1", cpu="1", started="2026-01-01T00:00:00Z"),
        victim("young", "n1", cpu="1", started="2026-02-01T00:00:00Z"),
        nodes=1,
    )
    stage.create(VIP.requests(cpu="1"))
    stage.run(until=1.0)
    assert leaving(stage) == {"young"}


def test_pods_of_equal_priority_are_never_victims() -> None:
    stage = stage_with(victim("equal", "n1", priority=100), nodes=1)
    stage.create(VIP)
    stage.run()
    assert leaving(stage) == set()
    assert stage.message("vip").endswith(
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_a_protected_pod_is_evicted_if_no_other_victim_helps() -> None:
    stage = stage_with(victim("protected", "n1"), nodes=1)
    stage.create(pdb("budget", app="protected"), VIP)
    stage.run(until=1.0)
    assert leaving(stage) == {"protected"}


def test_a_budget_that_still_allows_disruptions_protects_no_pod() -> None:
    stage = stage_with(victim("a", "n1"), victim("b", "n2", priority=50))
    stage.create(pdb("budget", app="a").allows(1), VIP)
    stage.run(until=1.0)
    assert nominated(stage) == "n1"


def test_a_pod_that_must_not_preempt_waits() -> None:
    stage = stage_with(victim("low", "n1"), nodes=1)
    stage.create(VIP.never_preempting())
    stage.run()
    assert leaving(stage) == set()
    assert nominated(stage) == ""
    assert stage.message("vip").endswith("preemption: not eligible due to preemptionPolicy=Never.")


def test_no_pod_is_evicted_if_preemption_cannot_help() -> None:
    stage = stage_with(victim("low", "n1"), nodes=1)
    stage.create(VIP.requests(cpu="3"))
    stage.run()
    assert leaving(stage) == set()
    assert stage.message("vip").endswith(
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )


# After the decision.


def test_victims_get_a_condition_and_the_pod_gets_the_node_when_they_are_gone() -> None:
    stage = stage_with(victim("low", "n1"), nodes=1)
    stage.create(VIP, at=10.0)
    stage.run(until=14.9)
    assert nominated(stage) == "n1"
    assert stage.node_of("vip") == ""
    condition = stage.condition("low", "DisruptionTarget")
    assert (condition.status, condition.reason) == ("True", "PreemptionByScheduler")
    assert condition.message == "longshore: preempting to accommodate a higher priority pod"
    assert stage.told("low") == [("Preempted", f"Preempted by pod {VIP.metadata.uid} on node n1")]
    stage.run()
    assert stage.node_of("vip") == "n1"
    assert stage.now == 15.0
    assert "default/low" not in stage.cluster.pods


def test_no_other_pod_is_evicted_while_the_victims_are_leaving() -> None:
    stage = stage_with(victim("low", "n1"), victim("other", "n2", priority=50))
    stage.create(VIP)
    # An event wakes the pod before its victim is gone.
    stage.create(room("n3", "2").taint("dedicated"), at=1.0)
    stage.run(until=3.0)
    assert len(stage.told("vip")) == 2
    assert leaving(stage) == {"low"}
    assert nominated(stage) == "n1"


def test_a_pod_that_is_already_leaving_is_not_evicted_again() -> None:
    stage = stage_with(victim("low", "n1"), nodes=1)
    stage.update(victim("low", "n1").deleting())
    stage.run()
    stage.create(VIP)
    stage.run(until=1.0)
    assert nominated(stage) == "n1"
    assert stage.told("low") == []


def test_if_another_node_gets_free_meanwhile_the_pod_goes_there() -> None:
    stage = stage_with(victim("low", "n1"), nodes=1)
    stage.create(VIP, at=10.0)
    stage.create(room("n2", "2"), at=11.0)
    stage.run(until=12.0)
    assert stage.node_of("vip") == "n2"


def test_nominations_of_lesser_pods_to_the_node_are_removed() -> None:
    stage = stage_with(victim("low", "n1"), nodes=1)
    stage.create(VIP.priority(50), at=1.0)
    stage.create(pod("king").requests(cpu="2").priority(1000), at=2.0)
    stage.run(until=3.0)
    assert nominated(stage, "king") == "n1"
    assert nominated(stage, "vip") == ""
    stage.run()
    assert (stage.node_of("king"), stage.node_of("vip")) == ("n1", "")


class HoldsLesser:
    """Holds pods without priority in Permit."""

    name = "HoldsLesser"
    wakes_on = ()
    handle: Handle

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> Wait | None:
        return None if pod.pod.spec.priority else Wait(600.0)


def test_a_victim_that_waits_on_permit_gives_way_without_being_deleted() -> None:
    stage = Stage(HoldsLesser(), defaults=True)
    stage.create(room("n1", "2"), pod("low").requests(cpu="2"))
    stage.create(VIP, at=5.0)
    stage.run(until=6.0)
    assert stage.node_of("vip") == "n1"
    assert leaving(stage) == set()
    assert stage.node_of("low") == ""
    assert stage.used(CPU, "n1") == 2000
    assert stage.told("low") == [
        ("FailedScheduling", "waiting on permit for pod: preempted"),
        ("Preempted", f"Preempted by pod {VIP.metadata.uid} on node n1 (in kube-scheduler memory)."),
        *stage.told("low")[2:],
    ]


def test_if_an_eviction_fails_the_pod_is_tried_again_at_once() -> None:
    engine = engine_of(defaults=True)
    for thing in (room("n1", "2"), victim("low", "n1"), VIP):
        engine.receive(Change(None, thing), now=0.0)
    evictions = [r for r in engine.advance(now=0.0) if isinstance(r.effect, Evict)]
    engine.receive(Done(evictions[0].id, Failed("the API server is away")), now=0.1)
    again = [r for r in engine.advance(now=0.1) if isinstance(r.effect, Evict)]
    assert [r.effect.name for r in again] == ["low"]  # type: ignore[union-attr]


def test_a_victim_that_is_gone_already_counts_as_evicted() -> None:
    engine = engine_of(defaults=True)
    for thing in (room("n1", "2"), victim("low", "n1"), VIP):
        engine.receive(Change(None, thing), now=0.0)
    (eviction,) = [r for r in engine.advance(now=0.0) if isinstance(r.effect, Evict)]
    engine.receive(Done(eviction.id, Gone("not found")), now=0.1)
    assert not [r for r in engine.advance(now=0.1) if isinstance(r.effect, Evict | Nominate | SetCondition)]


def test_the_nomination_is_gone_from_the_engine_once_the_pod_is_bound() -> None:
    stage = stage_with(victim("low", "n1"), nodes=1)
    stage.create(VIP)
    stage.run()
    assert stage.node_of("vip") == "n1"
    assert not stage.engine.cluster.nominations


@pytest.mark.parametrize("deleted_at", [2.0, 7.0])
def test_a_preemptor_that_is_deleted_leaves_no_nomination_behind(deleted_at: float) -> None:
    stage = stage_with(victim("low", "n1"), nodes=1)
    stage.create(VIP, at=1.0)
    stage.delete(VIP, at=deleted_at)
    stage.create(pod("next").requests(cpu="2"), at=3.0)
    stage.run()
    assert not stage.engine.cluster.nominations
    assert stage.node_of("next") == "n1"
