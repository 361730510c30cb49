"""For any numbers: scores are in range, and a single node gets the same result as among many."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agents.one_agent import loaded, made

from longshore.agents.annotations import read_congestion
from longshore.agents.congestion import Congestion
from longshore.agents.pigeon import PigeonHoling
from longshore.agents.safe import SafeBalance, SafeOverload
from longshore.cluster import ClusterState, PodInfo
from longshore.framework import CycleState
from longshore.testing import NodeBuilder, node, pod
from longshore.testing.strategies import pods

_ODD = ["NaN", "Inf", "-Inf", "", "N/A", "-5", "1e308", "-1e308", "1e-308", "1.5", str(2**53), "9" * 400]
_TEXTS = st.sampled_from(_ODD) | st.integers(-10, 5000).map(str) | st.floats().map(repr)
_KEYS = [
    *(f"{kind}-free-{resource}" for kind in ("mean", "std", "forcasted") for resource in ("cpu", "memory")),
    *(f"requested-{resource}" for resource in ("cpu", "memory", "pods", "gpu", "ephemeral-storage")),
    "congestion-factor",
]
_AMOUNTS = st.sampled_from(["0", "1m", "500m", "4", "1Ki", "8Gi", "9E", "-1", "x"])
_MISSING = st.sampled_from(["Neutral", "FailOpen", "FailClosed", "Requests"])
_PERCENT = st.integers(0, 100)


@st.composite
def odd_nodes(draw: st.DrawFn, name: str) -> NodeBuilder:
    built = node(name).annotations(**draw(st.dictionaries(st.sampled_from(_KEYS), _TEXTS)))
    names = ["cpu", "memory", "pods", "gpu", "nvidia.com/gpu", "ephemeral-storage"]
    return built.allocatable(**draw(st.dictionaries(st.sampled_from(names), _AMOUNTS)))


@st.composite
def clusters(draw: st.DrawFn) -> ClusterState:
    count = draw(st.integers(1, 4))
    cluster = loaded(*(draw(odd_nodes(f"n{number}")) for number in range(count)))
    read_congestion(cluster)
    if draw(st.booleans()):
        values = {f"n{number}": (draw(st.floats()), 100.0) for number in range(count)}
        cluster.measures.put({draw(st.sampled_from(["cpu/mean", "memory/std"])): values}, now=100.0)
    for number in range(draw(st.integers(0, 2))):
        cluster.add_pod(draw(pods(name=f"there-{number}")).on(f"n{draw(st.integers(0, count - 1))}"))
    return cluster


def check(agent: Any, info: PodInfo, cluster: ClusterState) -> None:
    nodes = cluster.all_nodes()
    found = agent.score(CycleState(), info, nodes)
    assert found.dtype == np.int64
    assert found.shape == (len(nodes),)
    assert ((found >= 0) & (found <= 100)).all()
    assert (found % 10 == 0).all()
    if agent.name == "PigeonHoling":
        return
    for row, expected in enumerate(found.tolist()):
        assert agent.score(CycleState(), info, cluster.one_node(row)) == expected
        assert agent.score(CycleState(), info, cluster.one_node(row).as_nodes()).tolist() == [expected]


@settings(max_examples=60, deadline=None)
@given(clusters(), pods(), _PERCENT, _PERCENT, _PERCENT, _MISSING)
def test_safe_overload_is_in_range_and_consistent_for_any_numbers(
    cluster: ClusterState, web: Any, utilization: int, percentile: int, weight: int, missing: str
) -> None:
    agent = made(
        SafeOverload,
        cluster,
        utilization=utilization,
        percentile=percentile,
        forecastWeight=weight,
        missing=missing,
    )
    info = PodInfo.of(web)
    check(agent, info, cluster)
    together = [
        rejection.where.tolist() for rejection in agent.filter(CycleState(), info, cluster.all_nodes())
    ]
    for row in range(len(cluster.known)):
        alone = [bool(each.where) for each in agent.filter(CycleState(), info, cluster.one_node(row))]
        assert alone == [where[row] for where in together]


@settings(max_examples=60, deadline=None)
@given(clusters(), pods(), _PERCENT, _MISSING)
def test_safe_balance_is_in_range_and_consistent_for_any_numbers(
    cluster: ClusterState, web: Any, weight: int, missing: str
) -> None:
    check(made(SafeBalance, cluster, forecastWeight=weight, missing=missing), PodInfo.of(web), cluster)


@settings(max_examples=60, deadline=None)
@given(clusters(), st.integers(1, 2**53), st.sampled_from(["Neutral", "FailOpen", "FailClosed"]))
def test_congestion_is_in_range_and_consistent_for_any_numbers(
    cluster: ClusterState, most: int, missing: str
) -> None:
    check(made(Congestion, cluster, factorMax=most, missing=missing), PodInfo.of(pod("web")), cluster)


@settings(max_examples=60, deadline=None)
@given(
    clusters(),
    st.lists(pods(), min_size=1, max_size=3),
    st.integers(1, 5),
    st.sampled_from(["A_BINPACK", "LOAD_BALANCE", "CONSOLIDATE"]),
    st.data(),
)
def test_pigeon_holing_is_in_range_for_any_numbers(
    cluster: ClusterState, webs: list[Any], resources: int, policy: str, data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, resources - 1))
    agent = made(
        PigeonHoling, cluster, policyObjective=policy, policyResourceIndex=index, numResources=resources
    )
    for web in webs:
        check(agent, PodInfo.of(web), cluster)
