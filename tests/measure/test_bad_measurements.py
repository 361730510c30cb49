"""Measurements that a real Prometheus may return, even absurd ones, and the scores of agents with them."""

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.measure.nodeload import GIB, TOTAL, Load, history, node_name, steady

from longshore.agents.load import COLUMNS, REASON_NO_MEASUREMENTS
from longshore.agents.safe import SafeOverload
from longshore.cluster import ClusterState, PodInfo
from longshore.config import MeasurementSettings
from longshore.dev.prometheus import MonitoredNodes
from longshore.engine import Measurements
from longshore.errors import UserError
from longshore.framework import CycleState
from longshore.measure.prometheus import Prometheus
from longshore.measure.providers import Measuring
from longshore.serve.extender.agent_choice import choose
from longshore.testing import node, pod

CORES = 8.0
WORDS = ("idle", "missing", "old", "nan", "negative", "spike")
# One resource of each node is measured, and the other is unknown.
NAMES = {resource: {word: node_name(f"{resource}-{word}") for word in WORDS} for resource in COLUMNS}
# Prometheus takes a falling counter for one that was reset, so its increase is far too large.
FULL = {"cpu": ("negative", "spike"), "memory": ("spike",)}
UNKNOWN = {"cpu": ("missing", "old", "nan"), "memory": ("missing", "old", "nan", "negative")}
WEB = PodInfo.of(pod("web").requests(cpu="500m", memory="1Gi"))
POLICIES = {"Neutral": 0, "FailOpen": 50, "FailClosed": 0}


def _by_load() -> Iterator[Any]:
    """All agent plugins that use requests in place of an unknown load."""
    for agent in choose(["all"]):
        for plugin in agent.plugins:
            try:
                _made(plugin.thing, ClusterState(), "Requests")
            except UserError:
                continue
            yield plugin.thing


def _made(kind: Any, cluster: ClusterState, missing: str) -> Any:
    return kind({"missing": missing}, handle=SimpleNamespace(cluster=cluster))


BY_LOAD = list(_by_load())


def _spike(most: float, usual: float) -> Load:
    # The mean is that of whole minutes: of two minutes, one is always among them.
    return lambda before_end: 100 * most if before_end < 120 else usual


@pytest.fixture(scope="module")
def played(prometheus: MonitoredNodes) -> MonitoredNodes:
    now = time.time()
    for resource, most, usual in (("cpu", CORES, 1.0), ("memory", TOTAL, GIB)):
        for word, until, used in (
            ("idle", now, steady(usual)),
            ("old", now - 600, steady(usual)),
            ("nan", now, steady(float("nan"))),
            ("negative", now, steady(-3 * usual)),
            ("spike", now, _spike(most, usual)),
        ):
            cores, memory = (used, None) if resource == "cpu" else (None, used)
            prometheus.put(history(NAMES[resource][word], until=until, cores=cores, memory=memory))
    return prometheus


def _cluster(*names: str) -> ClusterState:
    cluster = ClusterState()
    for name in names:
        cluster.add_node(node(name).allocatable(cpu="8", memory="16Gi"))
    return cluster


async def _measured(played: MonitoredNodes, **queries: str) -> ClusterState:
    cluster = _cluster(*(name for names in NAMES.values() for name in names.values()))
    settings = MeasurementSettings(provider="prometheus", address=played.url, queries=queries)
    provider = Prometheus(settings)

    def tell(event: Measurements) -> None:
        cluster.measures.put(event.values, now=time.time())

    measuring = Measuring(settings, provider, cluster, tell)
    tell(Measurements(await measuring.measure()))
    await provider.close()
    return cluster


def _by_name(column: Any, cluster: ClusterState) -> dict[str, Any]:
    nodes = cluster.all_nodes()
    return dict(zip(nodes.names, np.broadcast_to(column, len(nodes)).tolist(), strict=True))


def _scores(agent: Any, cluster: ClusterState) -> dict[str, int]:
    return _by_name(agent.score(CycleState(), WEB, cluster.all_nodes()), cluster)


def _score_by_requests(kind: Any) -> int:
    """The score of a node that steadily uses the requests of its pods, which are zero."""
    cluster = _cluster("n1")
    nothing = {f"{resource}/{of}": {"n1": (0.0, 0.0)} for resource in COLUMNS for of in ("mean", "std")}
    cluster.measures.put(nothing, now=0.0)
    return _scores(_made(kind, cluster, "Neutral"), cluster)["n1"]


@pytest.mark.parametrize(
    ("resource", "most", "usual"), [("cpu", 1000 * CORES, 1000.0), ("memory", TOTAL, GIB)]
)
async def test_only_recent_and_valid_amounts_are_known(
    played: MonitoredNodes, resource: str, most: float, usual: float
) -> None:
    cluster = await _measured(played)
    names = NAMES[resource]
    found = _by_name(cluster.measures.value(f"{resource}/mean", cluster.all_nodes()), cluster)
    assert {word for word in WORDS if np.isnan(found[names[word]])} == set(UNKNOWN[resource])
    assert found[names["idle"]] == pytest.approx(usual, rel=1e-3)
    assert {word: used for word in FULL[resource] if (used := found[names[word]]) <= most} == {}
    times = _by_name(cluster.measures.time(f"{resource}/mean", cluster.all_nodes()), cluster)
    assert time.time() - times[names["old"]] > 600
    assert time.time() - times[names["idle"]] < 30


async def test_a_query_that_gives_less_than_nothing(played: MonitoredNodes) -> None:
    used = 'max by (instance) (rate(node_cpu_seconds_total{mode="user"}[2m]))'
    cluster = await _measured(played, **{"cpu/mean": f"-1000 * {used}"})
    found = _by_name(cluster.measures.value("cpu/mean", cluster.all_nodes()), cluster)
    assert np.isnan(list(found.values())).all()


def test_all_agents_that_go_by_the_load_are_looked_at() -> None:
    assert [kind.name for kind in BY_LOAD] == [
        "LoadVariationRiskBalancing",
        "LowRiskOverCommitment",
        "SafeOverload",
        "SafeBalance",
        "TargetLoadPacking",
    ]


@pytest.mark.parametrize("missing", [*POLICIES, "Requests"])
@pytest.mark.parametrize("resource", COLUMNS)
@pytest.mark.parametrize("kind", BY_LOAD, ids=lambda kind: str(kind.name))
async def test_the_policy_applies_to_unknown_loads(
    played: MonitoredNodes, kind: Any, resource: str, missing: str
) -> None:
    cluster = await _measured(played)
    names = NAMES[resource]
    scores = _scores(_made(kind, cluster, missing), cluster)
    assert all(0 <= each <= 100 for each in scores.values())
    expected = _score_by_requests(kind) if missing == "Requests" else POLICIES[missing]
    assert {scores[names[word]] for word in UNKNOWN[resource]} == {expected}
    assert all(scores[names[word]] <= scores[names["idle"]] for word in FULL[resource])


@pytest.mark.parametrize("missing", [*POLICIES, "Requests"])
@pytest.mark.parametrize("resource", COLUMNS)
async def test_the_policy_decides_whether_a_node_is_refused(
    played: MonitoredNodes, resource: str, missing: str
) -> None:
    cluster = await _measured(played)
    agent, names = _made(SafeOverload, cluster, missing), NAMES[resource]
    refused: dict[str, set[str]] = {name: set() for name in names.values()}
    for rejection in agent.filter(CycleState(), WEB, cluster.all_nodes()):
        for name, bad in _by_name(rejection.where, cluster).items():
            if bad and name in refused:
                refused[name].add(rejection.reason)
    closed = {REASON_NO_MEASUREMENTS} if missing == "FailClosed" else set()
    assert all(refused[names[word]] == closed for word in UNKNOWN[resource])
    for word in FULL[resource]:
        assert any(resource in reason for reason in refused[names[word]] - closed)
        assert _scores(agent, cluster)[names[word]] == 0
