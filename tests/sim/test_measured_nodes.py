"""The load of nodes in a simulation: from their annotations, or from the scenario."""

from longshore.agents.annotations import MEASURED_AT
from longshore.agents.safe import SafeOverload
from longshore.config import default_configuration
from longshore.config.registry import register
from longshore.config.setup import enable
from longshore.engine import Engine
from longshore.sim import Simulation, schedule
from longshore.testing import NodeBuilder, node, pod

WEB = pod("web").requests(cpu="500m")


def loaded(name: str, free: int) -> NodeBuilder:
    annotations = {"mean-free-cpu": str(free), "std-free-cpu": "200"}
    return node(name).allocatable(cpu="8").annotations(**annotations)


FULL, IDLE = loaded("a", 300), loaded("b", 6000)


def simulation() -> Simulation:
    agent = register(SafeOverload)
    return Simulation(Engine(enable(default_configuration(), [agent]), plugins={agent.name: agent}))


def test_an_agent_goes_by_the_annotations_of_the_nodes() -> None:
    assert schedule(nodes=[FULL, IDLE], pods=[WEB]) == {"web": "a"}
    assert schedule(nodes=[FULL, IDLE], pods=[WEB], plugins=[SafeOverload]) == {"web": "b"}


def test_measurements_of_the_scenario_count_instead() -> None:
    measured = {"cpu/mean": {"a": 1000.0, "b": 7800.0}}
    placed = schedule(nodes=[FULL, IDLE], pods=[WEB], plugins=[SafeOverload], measured=measured)
    assert placed == {"web": "a"}


def test_annotations_that_change_while_time_passes_are_read_again() -> None:
    cluster = simulation()
    cluster.create(FULL, WEB)
    cluster.create(loaded("a", 6000), at=30.0)
    cluster.run(until=20.0)
    assert cluster.bindings == {}
    cluster.run(until=60.0)
    assert cluster.bindings == {"default/web": "a"}


def test_an_engine_that_takes_over_reads_them_as_well() -> None:
    cluster = simulation()
    cluster.create(FULL, IDLE)
    cluster.run()
    cluster.restart(simulation().engine)
    cluster.create(WEB)
    cluster.run()
    assert cluster.bindings == {"default/web": "b"}


def test_pods_that_exist_at_the_start_are_in_the_measurements() -> None:
    timed = loaded("a", 3000).annotations(**{MEASURED_AT: "1970-01-01T00:00:00Z"})
    there = pod("there").requests(cpu="5").on("a")
    placed = schedule(nodes=[timed], pods=[there, WEB], plugins=[SafeOverload])
    assert placed == {"there": "a", "web": "a"}
