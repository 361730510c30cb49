"""PreBind, Bind and PostBind."""

import asyncio
from collections.abc import Awaitable, Generator
from typing import Any

import pytest
from tests.engine.stage import Stage, engine_of, room

from longshore.api import Change, PersistentVolume, Pod
from longshore.cluster import CPU, PodInfo
from longshore.engine import Bind, Conflict, Done, Engine, Failed, PatchObject, Request, Succeeded
from longshore.framework import SKIP, CycleState, Status
from longshore.framework.effects import Effect, Outcome, Until
from longshore.testing import pod, pv

A = pod("a").requests(cpu="1")
B = pod("b").requests(cpu="1")
Steps = Generator[Effect, Outcome, Status | None]


class Base:
    wakes_on = ()

    def __init__(self, name: str = "Prepares", answer: Status | None = None) -> None:
        self.name = name
        self.answer = answer
        self.calls: list[str] = []

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        state["reserved"] = node

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self.calls.append(f"unreserve {pod.pod.metadata.name}")


class Plain(Base):
    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        self.calls.append(f"{pod.pod.metadata.name} {state['reserved']}")
        return self.answer


class Patches(Base):
    """Writes the pod's name into a volume."""

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Steps:
        labels = {"metadata": {"labels": {"for": pod.pod.metadata.name}}}
        outcome = yield PatchObject(PersistentVolume, "", "disk", labels)
        if not isinstance(outcome, Succeeded):
            return Status.error(f"the volume: {outcome.message}")
        self.calls.append("patched")
        return self.answer


class Sleeps(Base):
    """Takes three seconds."""

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Awaitable[Status | None]:
        async def work() -> Status | None:
            await asyncio.sleep(3.0)
            self.calls.append("slept")
            return self.answer

        return work()


def stage_with(*plugins: Any, cpu: str = "1") -> Stage:
    stage = Stage(*plugins, defaults=True)
    stage.create(room("n1", cpu))
    return stage


# PreBind.


def test_a_plain_pre_bind_is_called_with_the_node_and_the_state_of_reserve() -> None:
    plugin = Plain()
    stage = stage_with(plugin)
    stage.create(A)
    stage.run()
    assert plugin.calls == ["a n1"]
    assert stage.node_of("a") == "n1"


def test_a_generator_yields_effects_and_is_resumed_with_their_outcome() -> None:
    plugin = Patches()
    stage = stage_with(plugin)
    stage.create(pv("disk"), A)
    stage.run()
    assert plugin.calls == ["patched"]
    assert stage.cluster.others[PersistentVolume]["disk"].metadata.labels == {"for": "a"}
    assert stage.node_of("a") == "n1"


def test_a_generator_is_resumed_with_the_failure_of_its_effect() -> None:
    stage = stage_with(Patches())
    stage.create(A)
    stage.run(until=0.5)
    assert (
        stage.message("a")
        == 'running PreBind plugin "Prepares": the volume: persistentvolumes "disk" not found'
    )


def test_a_generator_may_wait_for_the_cluster_to_change() -> None:
    class Waits(Base):
        stage: Stage

        def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Steps:
            cluster = self.stage.engine.cluster
            outcome = yield Until(
                lambda: Succeeded() if cluster.get(PersistentVolume, "disk") else None, 60.0, "no disk came"
            )
            return None if isinstance(outcome, Succeeded) else Status.error(outcome.message)

    plugin = Waits()
    plugin.stage = stage = stage_with(plugin, cpu="4")
    stage.create(A)
    stage.create(pv("disk"), at=7.0)
    stage.run(until=6.9)
    assert stage.node_of("a") == ""
    stage.run()
    assert (stage.node_of("a"), stage.now) == ("n1", 7.0)
    stage.delete(pv("disk"))
    stage.run()
    stage.create(B)
    stage.run(until=67.5)
    assert stage.message("b") == 'running PreBind plugin "Prepares": no disk came'


def test_an_async_pre_bind_takes_its_time_and_the_others_go_on() -> None:
    class SleepsForA(Sleeps):
        def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
            return None if pod.pod.metadata.name == "a" else SKIP

    plugin = SleepsForA()
    stage = stage_with(plugin, cpu="4")
    stage.create(A, B)
    stage.run(until=2.9)
    assert (stage.node_of("a"), stage.node_of("b")) == ("", "n1")
    stage.run()
    assert (stage.node_of("a"), stage.now) == ("n1", 3.0)
    assert plugin.calls == ["slept"]


def test_an_async_pre_bind_that_raises_fails_its_pod_under_its_name() -> None:
    class Breaks(Base):
        async def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
            raise OSError("the storage is down")

    stage = stage_with(Breaks())
    stage.create(A)
    stage.run(until=0.5)
    assert stage.message("a").startswith('running PreBind plugin "Prepares": ')
    assert "the storage is down" in stage.message("a")


def test_a_pod_that_has_work_at_pre_bind_is_nominated() -> None:
    stage = stage_with(Sleeps())
    stage.create(A)
    stage.run(until=1.0)
    assert stage.pod("a").status.nominated_node_name == "n1"


def test_a_pod_that_has_no_work_at_pre_bind_is_not_nominated() -> None:
    class Nothing(Plain):
        def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node: str) -> Status:
            return SKIP

    plugin = Nothing()
    stage = stage_with(plugin)
    stage.create(A)
    stage.run()
    assert plugin.calls == []
    assert stage.pod("a").status.nominated_node_name == ""


@pytest.mark.parametrize("plugin", [Plain, Sleeps], ids=["plain", "async"])
def test_a_failed_pre_bind_is_undone_reported_and_repeated(plugin: type[Base]) -> None:
    faulty = plugin(answer=Status.error("no disk"))
    stage = stage_with(faulty)
    stage.create(A)
    stage.run(until=3.5)
    assert stage.condition("a").reason == "SchedulerError"
    assert stage.message("a") == 'running PreBind plugin "Prepares": no disk'
    assert "unreserve a" in faulty.calls
    assert stage.pod("a").status.nominated_node_name == ""
    faulty.answer = None
    stage.run()
    assert stage.node_of("a") == "n1"


def test_a_rejection_at_pre_bind_is_an_error_and_does_not_make_the_pod_unschedulable() -> None:
    stage = stage_with(Plain(answer=Status.unschedulable("no disk")))
    stage.create(A)
    stage.run(until=0.5)
    assert (stage.condition("a").reason, stage.message("a")) == ("SchedulerError", "no disk")
    assert stage.place("a") == "backoff"


def test_when_pre_bind_fails_pods_that_found_no_room_are_tried() -> None:
    class FailsA(Sleeps):
        def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
            return None if pod.pod.metadata.name == "a" else SKIP

    stage = stage_with(FailsA(answer=Status.error("no disk")))
    stage.create(A)
    stage.create(B, at=1.0)
    stage.run(until=2.9)
    assert stage.message("b").startswith("0/1 nodes are available: 1 Insufficient cpu.")
    stage.run(until=3.5)
    assert stage.node_of("b") == "n1"


def test_several_pre_binds_run_in_order_and_the_first_failure_ends_it() -> None:
    one, two, three = Plain("One"), Plain("Two", Status.error("no")), Plain("Three")
    stage = stage_with(one, two, three)
    stage.create(A)
    stage.run(until=0.5)
    assert (one.calls[0], two.calls[0]) == ("a n1", "a n1")
    assert "a n1" not in three.calls


# Bind.


class Binder:
    wakes_on = ()

    def __init__(self, name: str, answer: Status | None, *, effect: bool = False) -> None:
        self.name = name
        self._answer = answer
        self._effect = effect
        self.bound: list[str] = []

    def bind(self, state: CycleState, pod: PodInfo, node: str) -> Any:
        return self._steps(pod, node) if self._effect else self._answer

    def _steps(self, pod: PodInfo, node: str) -> Steps:
        yield Bind.of(pod.pod, node)
        self.bound.append(pod.pod.metadata.name)
        return self._answer


def test_a_binder_that_skips_leaves_the_pod_to_the_next() -> None:
    stage = stage_with(Binder("Skips", SKIP))
    stage.create(A)
    stage.run()
    assert stage.node_of("a") == "n1"


def test_the_first_binder_that_does_not_skip_decides() -> None:
    first, second = Binder("First", None, effect=True), Binder("Second", Status.error("never asked"))
    stage = stage_with(Binder("Skips", SKIP), first, second)
    stage.create(A)
    stage.run()
    assert first.bound == ["a"]
    assert stage.node_of("a") == "n1"
    assert [reason for reason, _ in stage.told("a")] == ["Scheduled"]


def test_a_binder_that_fails_is_not_followed_by_another() -> None:
    stage = stage_with(Binder("Fails", Status.error("the gate is shut")))
    stage.create(A)
    stage.run(until=0.5)
    assert stage.message("a") == 'running Bind plugin "Fails": the gate is shut'
    assert stage.used(CPU, "n1") == 0


def test_the_default_binder_after_one_that_skips_meets_a_conflict() -> None:
    engine = engine_of(Binder("Skips", SKIP), defaults=True)
    (request,) = binds_of(engine, A)
    engine.receive(Done(request.id, Conflict("already assigned")), now=0.1)
    assert int(engine.cluster.requested[CPU].sum()) == 0


# PostBind.


def test_post_bind_is_called_for_bound_pods_only() -> None:
    heard: list[str] = []

    class Hears:
        name = "Hears"

        def post_bind(self, state: CycleState, pod: PodInfo, node: str) -> None:
            heard.append(f"{pod.pod.metadata.name} on {node}")

    stage = stage_with(Hears())
    stage.create(A, B)
    stage.run()
    assert heard == ["a on n1"]


# Other writers.


def binds_of(engine: Engine, waiting: Pod) -> list[Request]:
    engine.receive(Change(None, room("n1", "1")), now=0.0)
    engine.receive(Change(None, waiting), now=0.0)
    return [request for request in engine.advance(now=0.0) if isinstance(request.effect, Bind)]


def test_a_pod_bound_by_another_scheduler_is_not_tried_again_and_counts_on_its_node() -> None:
    engine = engine_of(defaults=True)
    (request,) = binds_of(engine, A)
    engine.receive(Done(request.id, Conflict("already assigned to node n2")), now=0.1)
    engine.receive(Change(A, A.on("n2")), now=0.2)
    assert engine.advance(now=100.0) == []
    assert engine.queue.find(A) is None
    assert engine.cluster.node_of(A) == "n2"


def test_a_bind_that_fails_is_undone_for_plugins_although_its_room_stays_taken() -> None:
    plugin = Base()
    engine = engine_of(plugin, defaults=True)
    (request,) = binds_of(engine, A)
    engine.receive(Done(request.id, Failed("connection reset")), now=0.1)
    assert plugin.calls == ["unreserve a"]
    assert engine.cluster.node_of(A) == "n1"
