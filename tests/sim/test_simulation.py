"""Virtual time: the order of events, and that the same scenario gives the same run."""

import random

import pytest

from longshore.api import Change, Node, Pod
from longshore.engine import Engine, Event
from longshore.sim import Faults, Simulation
from longshore.testing import PodBuilder, node, pod

N1 = node("n1").allocatable(cpu="1", memory="1Gi")


def job(name: str) -> PodBuilder:
    return pod(name).requests(cpu="1")


def test_a_pod_is_bound_and_runs_and_ends_at_its_times() -> None:
    simulation = Simulation(bind_latency=0.5, start_time=2.0, run_time=10.0)
    simulation.create(N1, job("a"))

    def phase_at(time: float) -> tuple[str, str]:
        simulation.run(until=time)
        a = simulation.cluster.pods["default/a"]
        return a.spec.node_name, a.status.phase

    assert phase_at(0.4) == ("", "Pending")
    assert phase_at(0.5) == ("n1", "Pending")
    assert phase_at(2.5) == ("n1", "Running")
    assert phase_at(12.4) == ("n1", "Running")
    assert phase_at(12.5) == ("n1", "Succeeded")


def test_an_evicted_pod_is_gone_after_its_stop_time() -> None:
    simulation = Simulation(stop_time=30.0)
    simulation.create(N1, job("low"))
    simulation.create(job("high").priority(1), at=10.0)
    simulation.run(until=39.9)
    assert simulation.cluster.pods["default/low"].metadata.deletion_timestamp is not None
    simulation.run()
    assert simulation.cluster.pods.keys() == {"default/high"}
    assert simulation.bindings["default/high"] == "n1"
    assert 40.0 <= simulation.now < 42.0


def test_a_pod_that_waits_for_the_first_node_does_not_keep_time_going() -> None:
    simulation = Simulation()
    simulation.create(job("a"))
    simulation.run()
    assert simulation.now == 0.0


def test_a_run_advances_the_time_to_its_end() -> None:
    simulation = Simulation()
    simulation.run(until=7.0)
    assert simulation.now == 7.0


def test_pods_take_turns_on_a_node_too_small_for_all() -> None:
    simulation = Simulation(run_time=10.0)
    simulation.create(N1, *(job(f"p{i}") for i in range(3)))
    simulation.run()
    assert simulation.bindings == {f"default/p{i}": "n1" for i in range(3)}
    assert 30.0 < simulation.now < 50.0


def test_objects_come_and_go_at_their_times() -> None:
    simulation = Simulation()
    simulation.create(job("a"))
    simulation.create(N1, at=10.0)
    simulation.delete(job("a"), at=20.0)
    simulation.create(job("b"), at=30.0)
    simulation.delete(N1, at=40.0)
    simulation.create(pod("c"), at=50.0)
    simulation.run()
    assert simulation.bindings == {"default/a": "n1", "default/b": "n1"}
    assert [event.reason for event in simulation.cluster.events] == [
        "FailedScheduling",
        "Scheduled",
        "Scheduled",
        "FailedScheduling",
    ]


@pytest.mark.parametrize("fault", ["failed", "conflict", "lost"])
def test_a_pod_is_finally_bound_after_any_temporary_fault(fault: str) -> None:
    simulation = Simulation(faults=Faults(**{fault: 1.0}, until=20.0))
    simulation.create(N1, job("a"))
    simulation.run()
    assert simulation.cluster.pods["default/a"].spec.node_name == "n1"
    assert (simulation.now > 20.0) == (fault != "lost")


def test_a_run_is_the_same_each_time_and_follows_its_seed() -> None:
    def run(seed: int) -> tuple[dict[str, str], float, int]:
        simulation = Simulation(Engine(seed=seed), faults=Faults(failed=0.3, lost=0.2, until=60.0), seed=seed)
        simulation.create(*(node(f"n{i}").allocatable(cpu="4", memory="8Gi") for i in range(5)))
        simulation.create(*(job(f"p{i}") for i in range(15)))
        simulation.run()
        return simulation.bindings, simulation.now, len(simulation.cluster.events)

    assert run(1) == run(1)
    assert run(1) != run(2)


# A recorded run: n1 has room for one pod; n2 comes later.

N2 = node("n2").allocatable(cpu="1", memory="1Gi")
A, B, C = job("a"), job("b"), job("c")
RECORDED: list[tuple[float, Change[Node] | Change[Pod]]] = [
    (100.0, Change(None, N1)),
    (101.0, Change(None, A)),
    (103.0, Change(None, B)),
    (110.0, Change(None, N2)),
    (120.0, Change(A, None)),
    (121.0, Change(None, C)),
]
CHOSEN = {"default/a": "n1", "default/b": "n2", "default/c": "n1"}


def test_a_replay_of_creations_and_deletions_gives_the_bindings() -> None:
    assert Simulation.replay(RECORDED) == CHOSEN


def test_recorded_consequences_of_binds_may_be_left_in() -> None:
    # The recorded scheduler chose another node, which does not influence the engine.
    consequences: list[tuple[float, Change[Node] | Change[Pod]]] = [
        (101.5, Change(A, A.on("n9"))),
        (102.0, Change(A, A.on("n9").phase("Running"))),
        (103.5, Change(B, B.condition("PodScheduled", "False"))),
        (111.5, Change(B, B.on("n9"))),
    ]
    everything = sorted([*RECORDED, *consequences], key=lambda recorded: recorded[0])
    assert Simulation.replay(everything) == CHOSEN


class RecordingEngine(Engine):
    """Notes every change that it receives, as a recorder next to a live scheduler does."""

    def __init__(self, *, seed: int) -> None:
        super().__init__(seed=seed)
        self.recorded: list[tuple[float, Change[Node] | Change[Pod]]] = []

    def receive(self, event: Event, *, now: float) -> None:
        if isinstance(event, Change):
            self.recorded.append((now, event))
        super().receive(event, now=now)


@pytest.mark.parametrize("seed", range(5))
def test_a_recorded_run_gives_the_same_bindings_again(seed: int) -> None:
    chance = random.Random(seed)
    engine = RecordingEngine(seed=seed)
    simulation = Simulation(engine, bind_latency=0.02, watch_latency=0.01, run_time=20.0)
    for i in range(6):
        simulation.create(node(f"n{i}").allocatable(cpu="4", memory="8Gi"), at=chance.uniform(0, 20))
    for i in range(80):
        member = pod(f"p{i}").requests(cpu=chance.choice(("500m", "1", "2"))).priority(chance.randrange(3))
        # Evictions and their times depend on the latency of binds.
        member = member.never_preempting()
        created = chance.uniform(0, 40)
        simulation.create(member, at=created)
        if i % 5 == 0:
            simulation.delete(member, at=created + chance.uniform(0, 10))
    simulation.run()
    assert len(simulation.bindings) > 60
    assert Simulation.replay(engine.recorded, engine=Engine(seed=seed)) == simulation.bindings


def test_a_replay_makes_room_when_a_recorded_pod_ended() -> None:
    events: list[tuple[float, Change[Node] | Change[Pod]]] = [
        (0.0, Change(None, N1)),
        (0.0, Change(None, A)),
        (1.0, Change(None, B)),
        (9.0, Change(A, pod("a").requests(cpu="1").on("n9").phase("Succeeded"))),
    ]
    assert Simulation.replay(events) == {"default/a": "n1", "default/b": "n1"}


def test_pods_that_were_bound_before_or_by_others_stay_where_they_were_in_a_replay() -> None:
    foreign = pod("foreign").requests(cpu="1").scheduler("default-scheduler")
    before = pod("before").requests(cpu="1").on("n1")
    events: list[tuple[float, Change[Node] | Change[Pod]]] = [
        (0.0, Change(None, N1)),
        (0.0, Change(None, N2)),
        (0.0, Change(None, before)),
        (1.0, Change(None, foreign)),
        (2.0, Change(foreign, foreign.on("n2"))),
        (3.0, Change(before, before.phase("Running"))),
        (4.0, Change(None, A)),
    ]
    assert Simulation.replay(events) == {}


def test_a_replay_of_a_pod_recreated_under_its_name() -> None:
    events: list[tuple[float, Change[Node] | Change[Pod]]] = [
        (0.0, Change(None, N1)),
        (1.0, Change(None, A)),
        (2.0, Change(A, None)),
        (2.5, Change(None, N2.allocatable(cpu="8"))),
        (3.0, Change(None, pod("a").uid("second").requests(cpu="2"))),
    ]
    assert Simulation.replay(events) == {"default/a": "n2"}
