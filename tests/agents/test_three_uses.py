"""Every agent in its three uses: in the simulator, as an extender, and as a plugin by name.

One of two nodes is worse in everything that agents read, and comes first by name. So an agent that prefers
the other one has read it.
"""

import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.serve.extenders import about_names, about_nodes, by_host, make

from longshore.agents.annotations import read_load
from longshore.api import Change, Node, Pod
from longshore.api.pod_run import PodRun
from longshore.config.setup import set_up
from longshore.engine import Bind, Done, Engine, Instruction, Request
from longshore.framework.effects import GetObject, Gone, Succeeded
from longshore.measure.providers import settings_for
from longshore.serve.extender.agent_choice import choose, known_agents, verbs
from longshore.sim import schedule
from longshore.testing import NodeBuilder, PodBuilder, node, pod

GIB = 2**30
# Each by the name of its agent.
PLUGINS = {plugin.name: (name, plugin) for name in known_agents() for plugin in choose([name])[0].plugins}
# The template gives all nodes the same score.
INDIFFERENT = {"Foo"}

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {{leaderElect: false}}
profiles:
- schedulerName: longshore
  plugins: {{multiPoint: {{enabled: [{{name: {plugin}}}]}}}}
longshore: {{tieBreak: first}}
"""


def there(name: str, *, used: int, congestion: int) -> NodeBuilder:
    """A node with 8000 thousandths of a core, of which this many are used and requested."""
    return (
        node(name)
        .allocatable(cpu="8", memory="16Gi")
        .annotations(
            **{
                "mean-free-cpu": str(8000 - used),
                "std-free-cpu": "400",
                "mean-free-memory": str(12 * GIB),
                "std-free-memory": str(GIB),
                "requested-cpu": str(used),
                "requested-memory": str(4 * GIB),
                "congestion-factor": str(congestion),
            }
        )
    )


def a_pod(name: str) -> PodBuilder:
    return pod(name).labels(podtype="D").requests(cpu="500m", memory="1Gi")


NODES = [there("bad", used=7600, congestion=100), there("good", used=2000, congestion=0)]
# On the bad node, more is used than requested.
THERE = [
    pod(f"on-{name}").requests(cpu="2500m", memory="5Gi").limits(cpu="3", memory="6Gi").on(name)
    for name in ("bad", "good")
]
FAILED = [a_pod(f"failed-{number}").on("bad").phase("Failed") for number in range(5)]
WEB = a_pod("web")


def expected(plugin: str) -> str:
    return "bad" if plugin in INDIFFERENT else "good"


def tell(engine: Engine, objects: Sequence[Node | Pod], *, now: float) -> None:
    for each in objects:
        engine.receive(Change(None, each), now=now)
        if isinstance(each, Pod) and PodRun in engine.watches:
            engine.receive(Change(None, PodRun.of(each)), now=now)


def answer(engine: Engine, requests: Sequence[Instruction], *, now: float) -> None:
    """Answer that no requested object exists, and that every write succeeds."""
    for request in requests:
        if isinstance(request, Request):
            outcome = Gone() if isinstance(request.effect, GetObject) else Succeeded()
            engine.receive(Done(request.id, outcome), now=now)


@pytest.mark.parametrize("plugin", PLUGINS)
def test_every_agent_decides_in_the_simulator(plugin: str) -> None:
    _, registered = PLUGINS[plugin]
    placed = schedule(nodes=NODES, pods=[*THERE, *FAILED, WEB], plugins=[registered.thing])
    assert placed["web"] == expected(plugin)


@pytest.mark.parametrize("sent", [False, True], ids=["by names", "whole nodes"])
@pytest.mark.parametrize("plugin", PLUGINS)
def test_every_agent_decides_as_an_extender_of_kube_scheduler(plugin: str, sent: bool) -> None:
    agent, registered = PLUGINS[plugin]
    made, now = make(agent), time.monotonic()
    tell(made.engine, [*NODES, *THERE, *FAILED], now=now)
    answer(made.engine, made.engine.advance(now=now, max_cycles=0), now=now)
    question = about_nodes(WEB, NODES) if sent else about_names(WEB, ["bad", "good"])
    status, scores = made.post(f"priorities/{verbs(registered)['priorities']}", question)
    assert status == 200
    found = by_host(scores)
    assert found.keys() == {"bad", "good"}
    assert all(0 <= score <= 10 for score in found.values())
    assert max(found, key=lambda name: found[name]) == expected(plugin), found


@pytest.mark.parametrize("plugin", PLUGINS)
def test_every_agent_decides_as_a_plugin_enabled_by_name(plugin: str, tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(CONFIGURATION.format(plugin=plugin))
    setup = set_up(str(file))
    assert setup.warnings == ()
    engine = Engine(setup.configuration, plugins=setup.plugins)
    tell(engine, [*NODES, *THERE, *FAILED], now=0.0)
    measurements = settings_for(setup.configuration, setup.plugins)
    assert measurements is not None
    assert measurements.provider == "annotations"
    read_load(engine.cluster)
    answer(engine, engine.advance(now=0.0), now=0.0)
    tell(engine, [WEB], now=1.0)
    binds = [each.effect for each in engine.advance(now=1.0) if isinstance(each.effect, Bind)]
    assert [(bind.name, bind.node) for bind in binds] == [("web", expected(plugin))]
