"""The results for a single node, in plain numbers, equal those for all nodes at once."""

import hypothesis.strategies as st
import numpy as np
from hypothesis import given
from tests.plugins.one_plugin import cluster_of

from longshore.cluster import ClusterState, PodInfo
from longshore.config import ResourceSpec, ScoringStrategy, ShapePoint
from longshore.framework import CycleState, Rejection
from longshore.plugins import NodeResourcesBalancedAllocation, NodeResourcesFit
from longshore.testing import PodBuilder
from longshore.testing.strategies import nodes, pods

RESOURCES = (ResourceSpec("cpu", 1), ResourceSpec("memory", 2), ResourceSpec("example.com/gpu", 5))
SHAPE = (ShapePoint(10, 0), ShapePoint(40, 10), ShapePoint(90, 3))
FITS = [
    NodeResourcesFit(),
    NodeResourcesFit(scoring_strategy=ScoringStrategy("LeastAllocated", RESOURCES)),
    NodeResourcesFit(scoring_strategy=ScoringStrategy("MostAllocated", RESOURCES)),
    NodeResourcesFit(scoring_strategy=ScoringStrategy("RequestedToCapacityRatio", RESOURCES, SHAPE)),
]
BALANCES = [NodeResourcesBalancedAllocation(), NodeResourcesBalancedAllocation(resources=RESOURCES)]
SCORING: list[NodeResourcesFit | NodeResourcesBalancedAllocation] = [*FITS, *BALANCES]


@st.composite
def clusters(draw: st.DrawFn) -> ClusterState:
    names = [f"n{i}" for i in range(draw(st.integers(1, 4)))]
    tenants = [
        draw(pods(name=f"p{i}")).on(draw(st.sampled_from(names))) for i in range(draw(st.integers(0, 6)))
    ]
    return cluster_of(*(draw(nodes(name=name)) for name in names), *tenants)


def reasons_at(place: int, size: int, rejections: list[Rejection]) -> list[tuple[str, bool]]:
    return [
        (r.reason, bool(np.broadcast_to(r.unresolvable, size)[place]))
        for r in rejections
        if np.broadcast_to(r.where, size)[place]
    ]


@given(cluster=clusters(), incoming=pods(name="incoming"))
def test_a_single_node_is_filtered_as_it_is_among_all(cluster: ClusterState, incoming: PodBuilder) -> None:
    info, state, fit = PodInfo.of(incoming), CycleState(), FITS[0]
    together = list(fit.filter(state, info, cluster.all_nodes()))
    for row in range(cluster.node_count):
        alone = list(fit.filter(state, info, cluster.one_node(row)))
        assert reasons_at(0, 1, alone) == reasons_at(row, cluster.node_count, together)


@given(cluster=clusters(), incoming=pods(name="incoming"))
def test_a_single_node_is_scored_as_it_is_among_all(cluster: ClusterState, incoming: PodBuilder) -> None:
    info, size = PodInfo.of(incoming), cluster.node_count
    rows = np.arange(size)[::-1]
    for plugin in SCORING:
        state = CycleState()
        together = np.broadcast_to(plugin.score(state, info, cluster.all_nodes()), size)
        assert ((together >= 0) & (together <= 100)).all()
        some = np.broadcast_to(plugin.score(state, info, cluster.some_nodes(rows)), size)
        assert some.tolist() == together[rows].tolist()
        for row in range(size):
            assert plugin.score(state, info, cluster.one_node(row)) == together[row]


@given(cluster=clusters(), tenant=pods(name="tenant"), incoming=pods(name="incoming"))
def test_a_pod_in_a_dry_run_counts_like_a_real_one(
    cluster: ClusterState, tenant: PodBuilder, incoming: PodBuilder
) -> None:
    info, added = PodInfo.of(incoming), PodInfo.of(tenant)
    imagined = cluster.one_node(0)
    imagined.add(added)
    cluster.assume(added, cluster.node_name(0))
    real = cluster.one_node(0)
    for plugin in SCORING:
        state = CycleState()
        assert plugin.score(state, info, imagined) == plugin.score(state, info, real)
    fit, state = FITS[0], CycleState()
    assert list(fit.filter(state, info, imagined)) == list(fit.filter(state, info, real))
