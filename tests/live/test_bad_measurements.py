"""What a real Prometheus may say of nodes, up to nonsense, and what an agent makes of it."""

import time
from types import SimpleNamespace

import numpy as np
import pytest
from tests.live.nodeload import GIB, TOTAL, history, node_name, steady

from longshore.agents.load import REASON_NO_MEASUREMENTS
from longshore.agents.safe import SafeOverload
from longshore.cluster import ClusterState, PodInfo
from longshore.dev.prometheus import MonitoredNodes
from longshore.engine import Measurements
from longshore.framework import CycleState
from longshore.framework.configuration import MeasurementSettings
from longshore.live.measuring import Measuring
from longshore.live.prometheus import Prometheus
from longshore.testing import node, pod

NAMES = {word: node_name(word) for word in ("idle", "missing", "old", "nan", "negative", "spike")}
UNKNOWN = ("missing", "old", "nan", "negative")


def _spike(before_end: float) -> float:
    return 100 * TOTAL if before_end < 60 else GIB


@pytest.fixture(scope="module")
def played(prometheus: MonitoredNodes) -> MonitoredNodes:
    now = time.time()
    for word, until, used in (
        ("idle", now, steady(GIB)),
        ("old", now - 600, steady(GIB)),
        ("nan", now, steady(float("nan"))),
        ("negative", now, steady(-3 * GIB)),
        ("spike", now, _spike),
    ):
        prometheus.put(history(NAMES[word], until=until, memory=used))
    return prometheus


async def _measured(played: MonitoredNodes) -> ClusterState:
    cluster = ClusterState()
    for name in NAMES.values():
        cluster.add_node(node(name).allocatable(cpu="8", memory="16Gi"))
    settings = MeasurementSettings(provider="prometheus", address=played.url)
    provider = Prometheus(settings)

    def tell(event: Measurements) -> None:
        cluster.measures.put(event.values, now=time.time())

    measuring = Measuring(settings, provider, cluster, tell)
    tell(Measurements(await measuring.measure()))
    await provider.close()
    return cluster


async def test_only_what_is_fresh_and_an_amount_is_known(played: MonitoredNodes) -> None:
    cluster = await _measured(played)
    nodes = cluster.all_nodes()
    found = dict(zip(nodes.names, cluster.measures.value("memory/mean", nodes), strict=True))
    assert {word for word, name in NAMES.items() if np.isnan(found[name])} == set(UNKNOWN)
    assert found[NAMES["idle"]] == GIB
    assert found[NAMES["spike"]] > TOTAL
    times = dict(zip(nodes.names, cluster.measures.time("memory/mean", nodes), strict=True))
    assert time.time() - times[NAMES["old"]] > 600
    assert time.time() - times[NAMES["idle"]] < 30


@pytest.mark.parametrize(
    ("missing", "score", "reasons"),
    [
        ("Neutral", 0, set()),
        ("FailOpen", 50, set()),
        ("FailClosed", 0, {REASON_NO_MEASUREMENTS}),
        ("Requests", 100, set()),
    ],
)
async def test_the_policy_decides_about_what_is_not_known(
    played: MonitoredNodes, missing: str, score: int, reasons: set[str]
) -> None:
    cluster = await _measured(played)
    agent = SafeOverload({"missing": missing}, handle=SimpleNamespace(cluster=cluster))
    nodes = cluster.all_nodes()
    asking = PodInfo.of(pod("web").requests(memory="1Gi"))
    # The cpu of all of them is unknown.
    scores = dict(zip(nodes.names, agent.score(CycleState(), asking, nodes).tolist(), strict=True))
    refused: dict[str, set[str]] = {name: set() for name in nodes.names}
    for rejection in agent.filter(CycleState(), asking, nodes):
        for name, bad in zip(nodes.names, np.broadcast_to(rejection.where, len(nodes)), strict=True):
            if bad:
                refused[name].add(rejection.reason)
    assert all(0 <= each <= 100 for each in scores.values())
    assert {word: scores[NAMES[word]] for word in UNKNOWN} == dict.fromkeys(UNKNOWN, score)
    assert {word: refused[NAMES[word]] for word in UNKNOWN} == dict.fromkeys(UNKNOWN, reasons)
    assert scores[NAMES["spike"]] == 0
    assert any("memory" in reason for reason in refused[NAMES["spike"]])
