"""Balance between the resources of a node."""

import math

import hypothesis.strategies as st
import pytest
from hypothesis import given
from tests.plugins.one_plugin import scores

from longshore.api import Node, Pod
from longshore.config import ResourceSpec
from longshore.plugins import NodeResourcesBalancedAllocation
from longshore.testing import node, pod

BALANCE = NodeResourcesBalancedAllocation()
GPU = "example.com/gpu"
N1 = node("n1").allocatable(cpu="10", memory="1000")


def score(
    incoming: Pod, *objects: Node | Pod, plugin: NodeResourcesBalancedAllocation = BALANCE
) -> int | None:
    given_scores = scores(plugin, incoming, *objects)
    return None if given_scores is None else given_scores["n1"]


def test_a_pod_that_does_not_change_the_balance_scores_75() -> None:
    assert score(pod("a").requests(cpu="2", memory="200"), N1) == 75


def test_a_pod_that_worsens_the_balance_scores_less() -> None:
    # |0.8 - 0| / 2: from 100 to 60
    assert score(pod("a").requests(cpu="8"), N1) == 55


def test_a_pod_that_improves_the_balance_scores_more() -> None:
    tenant = pod("b").requests(cpu="8").on("n1")
    assert score(pod("a").requests(memory="800"), N1, tenant) == 95


def test_use_beyond_the_capacity_counts_as_full() -> None:
    assert score(pod("a").requests(cpu="30"), N1) == score(pod("a").requests(cpu="10"), N1) == 50


def test_on_a_node_with_a_single_resource_there_is_nothing_to_balance() -> None:
    assert score(pod("a").requests(cpu="1"), node("n1").allocatable(cpu="10")) == 75


def test_a_pod_without_requests_is_not_scored() -> None:
    assert score(pod("a"), N1) is None
    assert score(pod("a").requests(**{GPU: "1"}), N1) is None


def test_pod_level_requests_count() -> None:
    assert score(pod("a").pod_requests(cpu="8"), N1) == 55


def test_containers_without_requests_use_nothing_here() -> None:
    assert score(pod("a").requests(cpu="8"), N1, pod("b").on("n1")) == 55


THREE = NodeResourcesBalancedAllocation(
    resources=(ResourceSpec("cpu"), ResourceSpec("memory"), ResourceSpec(GPU))
)


def test_a_third_resource_counts_where_it_is_requested_and_offered() -> None:
    incoming = pod("a").requests(cpu="8", **{GPU: "8"})
    assert score(pod("a").requests(cpu="8"), N1.allocatable(**{GPU: "10"}), plugin=THREE) == 55
    assert score(incoming, N1, plugin=THREE) == 55
    # Shares 0.8, 0 and 0.8: the deviation is 0.377.
    assert score(incoming, N1.allocatable(**{GPU: "10"}), plugin=THREE) == 50 + (50 + 62 - 100) // 2


def plain_balance(shares: list[float]) -> int:
    if len(shares) == 2:
        deviation = abs((shares[0] - shares[1]) / 2)
    elif len(shares) > 2:
        total = 0.0
        for share in shares:
            total += share
        mean, squares = total / len(shares), 0.0
        for share in shares:
            squares += (share - mean) * (share - mean)
        deviation = math.sqrt(squares / len(shares))
    else:
        deviation = 0.0
    return int((1 - deviation) * 100)


AMOUNTS = st.integers(0, 40)


@pytest.mark.parametrize("plugin", [BALANCE, THREE])
@given(
    offered=st.tuples(AMOUNTS, AMOUNTS, AMOUNTS), taken=st.tuples(AMOUNTS, AMOUNTS, AMOUNTS), data=st.data()
)
def test_the_balance_score_equals_a_plain_computation(
    plugin: NodeResourcesBalancedAllocation,
    offered: tuple[int, int, int],
    taken: tuple[int, int, int],
    data: st.DataObject,
) -> None:
    names = ("cpu", "memory", GPU)
    asked = data.draw(st.tuples(AMOUNTS, AMOUNTS, AMOUNTS))

    def amounts(numbers: tuple[int, int, int]) -> dict[str, str]:
        return {name: str(number) for name, number in zip(names, numbers, strict=True)}

    answer = score(
        pod("a").requests(**amounts(asked)),
        node("n1").allocatable(**amounts(offered)),
        pod("b").requests(**amounts(taken)).on("n1"),
        plugin=plugin,
    )
    counted = range(3 if plugin is THREE and asked[2] else 2)
    if not any(asked[i] for i in counted):
        assert answer is None
        return
    before = [min(taken[i] / offered[i], 1.0) for i in counted if offered[i]]
    after = [min((taken[i] + asked[i]) / offered[i], 1.0) for i in counted if offered[i]]
    assert answer == 50 + (50 + plain_balance(after) - plain_balance(before)) // 2
