"""The amounts that nodes offer, for division: floats only where exact, and up to date after a change."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from longshore.cluster import CPU, ClusterState
from longshore.cluster.divisors import Offer, OfferOfOne
from longshore.testing import node


@st.composite
def parts(draw: st.DrawFn) -> tuple[int, int]:
    """A whole and a part of it, often one whose percentage is close to an integer."""
    whole = draw(st.integers(0, 2**53) | st.integers(2**46 - 3, 2**46 + 3))
    percent = draw(st.integers(0, 100))
    near = -(-whole * percent // 100) - draw(st.integers(0, 1))
    return min(max(near, 0), whole), whole


@given(st.lists(parts(), min_size=1, max_size=20))
def test_percentages_are_rounded_down_exactly_for_many_nodes_and_for_one(
    pairs: list[tuple[int, int]],
) -> None:
    offered = Offer(np.array([whole for _, whole in pairs]))
    percentages = offered.percentage(np.array([part for part, _ in pairs]))
    assert percentages.tolist() == [part * 100 // max(whole, 1) for part, whole in pairs]
    assert percentages.tolist() == [OfferOfOne(whole).percentage(part) for part, whole in pairs]


@given(st.lists(parts(), min_size=1, max_size=20))
def test_shares_of_many_nodes_equal_those_of_each(pairs: list[tuple[int, int]]) -> None:
    shares = Offer(np.array([whole for _, whole in pairs])).share(np.array([part for part, _ in pairs]))
    assert shares.tolist() == [OfferOfOne(whole).share(part) for part, whole in pairs]


def test_a_changed_node_changes_the_divisors() -> None:
    cluster = ClusterState()
    cluster.add_node(node("a").allocatable(cpu="2"))
    assert cluster.all_nodes().offer(CPU).everywhere
    cluster.add_node(node("a").allocatable(cpu="3", **{"example.com/gpu": "1"}))
    cluster.add_node(node("b").allocatable(memory="1Gi"))
    offered = cluster.all_nodes().offer(CPU)
    assert np.asarray(offered.amount).tolist() == [3000, 0]
    assert not offered.everywhere
