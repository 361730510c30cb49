"""A victim at PreBind is not bound yet: its cycle is canceled, and it is not deleted."""

import asyncio
from collections.abc import Callable, Generator
from typing import Any

import pytest
from tests.engine.stage import Stage, room

from longshore.api import Pod
from longshore.cluster import CPU, PodInfo
from longshore.framework import CycleState, Status
from longshore.framework.effects import Effect, Outcome, Succeeded, Until
from longshore.testing import pod

LOW = pod("low").requests(cpu="2")
VIP = pod("vip").requests(cpu="2").priority(100)
PREEMPTED = 'running PreBind plugin "Prepares": preempted'

Work = Callable[[], Any]


class Prepares:
    """Reserves for all pods. At PreBind it runs the given work for pods without priority."""

    name = "Prepares"
    wakes_on = ()

    def __init__(self, work: Work) -> None:
        self.work = work
        self.calls: list[str] = []

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self.calls.append(f"reserve {pod.pod.metadata.name}")

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self.calls.append(f"unreserve {pod.pod.metadata.name}")

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Any:
        return None if pod.pod.spec.priority else self.work()


async def later() -> None:
    await asyncio.sleep(20.0)


def stepwise() -> Generator[Effect, Outcome, Status | None]:
    outcome = yield Until(lambda: None, 20.0, "in vain")
    return None if isinstance(outcome, Succeeded) else Status.error("in vain")


@pytest.fixture(params=[later, stepwise])
def prepares(request: pytest.FixtureRequest) -> Prepares:
    return Prepares(request.param)


def stage_with(plugin: Prepares) -> Stage:
    """Return a stage with room for one of the two pods; `low` is at PreBind when `vip` comes."""
    stage = Stage(plugin, defaults=True)
    stage.create(room("n1", "2"), LOW)
    stage.create(VIP, at=5.0)
    return stage


def test_the_victim_gives_way_at_once_and_is_not_deleted(prepares: Prepares) -> None:
    stage = stage_with(prepares)
    stage.run(until=5.5)
    assert stage.node_of("vip") == "n1"
    assert (stage.node_of("low"), stage.used(CPU, "n1")) == ("", 2000)
    assert stage.pod("low").metadata.deletion_timestamp is None
    assert not any(c.type == "DisruptionTarget" for c in stage.pod("low").status.conditions)
    assert stage.pod("low").status.nominated_node_name == ""


def test_the_victims_reservation_is_undone_before_the_other_pod_reserves(prepares: Prepares) -> None:
    stage = stage_with(prepares)
    stage.run(until=5.0)
    assert prepares.calls == ["reserve low", "unreserve low", "reserve vip"]


def test_the_victim_gets_events_with_the_reason(prepares: Prepares) -> None:
    stage = stage_with(prepares)
    stage.run(until=5.0)
    note = f"Preempted by pod {VIP.metadata.uid} on node n1 (in kube-scheduler memory)."
    assert stage.told("low")[:2] == [("FailedScheduling", PREEMPTED), ("Preempted", note)]


def test_it_is_tried_again_after_backoff_and_bound_where_there_is_room(prepares: Prepares) -> None:
    stage = stage_with(prepares)
    stage.run(until=5.0)
    assert stage.place("low") in ("backoff", "unschedulable")
    stage.create(room("n2", "2"), at=30.0)
    prepares.work = lambda: None
    stage.run()
    assert stage.node_of("low") == "n2"


def test_an_answer_that_comes_later_changes_nothing(prepares: Prepares) -> None:
    stage = stage_with(prepares)
    # The victim's work ends at 20.
    stage.run(until=60.0)
    assert stage.bindings == {"default/vip": "n1"}
    assert stage.node_of("low") == ""
    assert "unreserve vip" not in prepares.calls


def test_a_generator_at_pre_bind_is_closed() -> None:
    ended: list[str] = []

    def tidy() -> Generator[Effect, Outcome, None]:
        try:
            yield Until(lambda: None, 20.0, "in vain")
        finally:
            ended.append("tidied up")

    stage = stage_with(Prepares(tidy))
    stage.run(until=5.0)
    assert ended == ["tidied up"]


def test_a_generator_that_yields_while_it_is_closed_is_abandoned() -> None:
    def stubborn() -> Generator[Effect, Outcome, None]:
        try:
            yield Until(lambda: None, 20.0, "in vain")
        finally:
            yield Until(lambda: None, 20.0, "in vain again")

    stage = stage_with(Prepares(stubborn))
    stage.run(until=6.0)
    assert stage.node_of("vip") == "n1"
    assert stage.node_of("low") == ""


def test_a_victim_that_is_being_bound_is_deleted() -> None:
    stage = Stage(Prepares(lambda: None), defaults=True, bind_latency=10.0)
    stage.create(room("n1", "2"), LOW)
    stage.create(VIP, at=5.0)
    stage.run(until=5.5)
    low: Pod = stage.pod("low")
    assert low.metadata.deletion_timestamp is not None


def test_a_pod_that_is_being_deleted_at_prebind_gives_its_room_to_the_next(prepares: Prepares) -> None:
    stage = Stage(prepares, defaults=True)
    stage.create(room("n1", "2"), LOW)
    stage.create(pod("next").requests(cpu="2").priority(1).never_preempting(), at=1.0)
    stage.run(until=2.0)
    assert stage.node_of("next") == ""
    stage.update(LOW.deleting(), at=3.0)
    stage.run(until=4.0)
    assert stage.node_of("next") == "n1"
