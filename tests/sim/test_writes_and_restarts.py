"""Slow and failing writes, and killed schedulers: what the other schedulers see of them."""

from collections.abc import Iterable
from typing import Any

import pytest

from longshore.api import Change, PersistentVolume
from longshore.engine import Conflict, CreateObject, Engine, Failed, Gone, Outcome, PatchObject, Succeeded
from longshore.framework.controllers import Controller, Errand
from longshore.framework.effects import Ask
from longshore.sim import Faults, Simulation
from longshore.sim.api_server import SimulatedApiServer
from longshore.testing import node, pod, pv

DISK = CreateObject(PersistentVolume, "", "disk", {"metadata": {"labels": {"a": "1"}}})


class Asks(Controller):
    """A controller that yields one effect, and notes the changes and the answers with their times."""

    def __init__(self, engine: Engine, effect: Ask) -> None:
        self._engine = engine
        self._effect: Ask | None = effect
        self.heard: list[tuple[float, Change[Any]]] = []
        self.answers: list[tuple[float, Outcome]] = []

    def changed(self, change: Change[Any], *, now: float) -> None:
        self.heard.append((now, change))

    @property
    def deadline(self) -> float | None:
        return None if self._effect is None else 0.0

    def advance(self, *, now: float) -> Iterable[Errand]:
        if self._effect is not None:
            yield self._ask(self._effect)
            self._effect = None

    def _ask(self, effect: Ask) -> Errand:
        outcome = yield effect
        self.answers.append((self._engine.now, outcome))


def asking(effect: Ask = DISK, **scenario: Any) -> tuple[Simulation, Asks]:
    made: list[Asks] = []

    def controller(engine: Engine) -> Asks:
        made.append(Asks(engine, effect))
        return made[0]

    return Simulation(Engine(controllers=[controller]), **scenario), made[0]


def volumes(simulation: Simulation) -> list[str]:
    return list(simulation.cluster.others.get(PersistentVolume, {}))


def test_a_write_its_watch_event_and_its_answer_each_have_their_time() -> None:
    simulation, asks = asking(write_latency=1.0, watch_latency=2.0, answer_latency=0.5)
    simulation.run(until=0.9)
    assert volumes(simulation) == []
    simulation.run(until=1.0)
    assert volumes(simulation) == ["disk"]
    simulation.run(until=10.0)
    assert asks.answers == [(1.5, Succeeded())]
    assert [at for at, _ in asks.heard] == [3.0]


@pytest.mark.parametrize(
    ("fault", "outcome", "lands"),
    [("failed", Failed, False), ("conflict", Conflict, False), ("lost", Failed, True)],
)
def test_a_write_goes_wrong(fault: str, outcome: type[Outcome], lands: bool) -> None:
    simulation, asks = asking(write_faults=Faults(**{fault: 1.0}))
    simulation.run(until=1.0)
    assert [type(answer) for _, answer in asks.answers] == [outcome]
    assert volumes(simulation) == (["disk"] if lands else [])


def test_faults_of_binds_do_not_strike_other_writes() -> None:
    simulation, asks = asking(faults=Faults(failed=1.0))
    simulation.run(until=1.0)
    assert asks.answers == [(0.0, Succeeded())]


def test_an_engine_that_takes_over_learns_what_exists_but_no_answers_to_the_one_before() -> None:
    simulation, first = asking(write_latency=1.0, watch_latency=0.5, answer_latency=1.0)
    simulation.create(node("n1"), pod("a").requests(cpu="1"))
    simulation.run(until=0.8)
    again, second = asking()
    simulation.restart(again.engine)
    assert {change.object.key for _, change in second.heard} == {"n1", "default/a"}
    simulation.run(until=1.2)
    # The effects of the first engine are still carried out.
    assert volumes(simulation) == ["disk"]
    simulation.run(until=10.0)
    assert first.answers == []
    assert [type(answer) for _, answer in second.answers] == [Conflict]
    assert [change.object.key for _, change in second.heard].count("disk") == 1


def test_an_engine_that_takes_over_may_learn_it_in_any_order() -> None:
    simulation, _ = asking()
    simulation.create(*(node(f"n{n}") for n in range(3)))
    simulation.run(until=1.0)
    again, second = asking()
    simulation.restart(again.engine, order=lambda existing: existing.reverse())
    assert [change.object.key for _, change in second.heard] == ["disk", "n2", "n1", "n0"]


def test_generations_count_changes_of_the_spec() -> None:
    cluster = SimulatedApiServer()
    first = cluster.put(pv("disk")).object
    second = cluster.put(pv("disk").labels(a="1")).object
    third = cluster.put(pv("disk").claimed_by("claim")).object
    assert [each.metadata.generation for each in (first, second, third)] == [1, 1, 2]


def test_a_patch_that_names_another_uid_does_not_land() -> None:
    cluster = SimulatedApiServer()
    cluster.put(pv("disk").uid("second"))
    patch = {"metadata": {"uid": "first", "labels": {"a": "1"}}}
    outcome, changes = cluster.perform(PatchObject(PersistentVolume, "", "disk", patch))
    assert (type(outcome), changes) == (Gone, [])
