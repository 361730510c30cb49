"""The table of rewards: golden numbers, expectations for unseen pairs, drift, and its size."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.agents.reward.columns import RewardColumns, tens
from longshore.agents.reward.table import Pair, Rewards
from longshore.cluster import ClusterState
from longshore.testing import node

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "extender-agents-golden.json").read_text())
DAY = 86_400.0


def table(*, half_life: float = 0.0, most: int = 1000) -> Rewards:
    return Rewards(half_life=half_life, most=most)


def scores(rewards: Rewards, type_: str, *nodes: str, time: float = 0.0) -> list[int]:
    cluster = ClusterState()
    for name in nodes:
        cluster.add_node(node(name))
    found: list[int] = tens(RewardColumns(rewards).expected(type_, cluster, time=time)).tolist()
    return found


@pytest.mark.parametrize("case", GOLDEN["kuberl_ewma_failures"], ids=lambda case: str(case["failures"]))
def test_failures_in_a_row_give_the_golden_values(case: dict[str, object]) -> None:
    rewards = table()
    for _ in range(int(str(case["failures"]))):
        rewards.reward("D", "n1", 0.0, time=0.0)
    found = rewards.at(Pair("D", "n1"), 0.0)
    assert found is not None
    assert f"{found:.6f}" == case["etcd"]
    assert scores(rewards, "D", "n1", "n2") == [int(str(case["score"])) * 10, 100]


def test_rewards_of_all_kinds_give_the_golden_values() -> None:
    rewards = table()
    told = []
    for reward in (0.5, 0.0, 0.0, 1.0, 1.0, 1.0):
        rewards.reward("D", "n1", reward, time=0.0)
        told.append((f"{rewards.at(Pair('D', 'n1'), 0.0):.6f}", scores(rewards, "D", "n1")[0]))
    assert told == [
        ("0.950000", 90),
        ("0.855000", 80),
        ("0.769500", 70),
        ("0.792550", 70),
        ("0.813295", 80),
        ("0.831966", 80),
    ]


def test_where_nothing_is_known_the_best_is_expected() -> None:
    assert scores(table(), "D", "n1", "n2") == [100, 100]


def test_a_new_type_is_expected_to_fail_where_others_fail() -> None:
    rewards = table()
    for _ in range(5):
        rewards.reward("D", "n1", 0.0, time=0.0)
    assert scores(rewards, "new", "n1", "n2") == [50, 100]


def test_a_type_that_fails_where_others_succeed_is_expected_to_fail_elsewhere() -> None:
    rewards = table()
    for _ in range(20):
        rewards.reward("D", "n1", 0.0, time=0.0)
        for _ in range(20):
            rewards.reward("E", "n1", 1.0, time=0.0)
    # The node has seen so many pods of type E that it is hardly to blame.
    assert scores(rewards, "D", "n1", "n2") == [10, 10]
    assert scores(rewards, "E", "n1", "n2") == [100, 100]


def test_a_type_that_fails_on_nodes_without_other_types_is_not_to_blame() -> None:
    rewards = table()
    for name in ("n1", "n2") * 5:
        rewards.reward("D", name, 0.0, time=0.0)
    assert scores(rewards, "D", "n1", "n2", "n3") == [50, 50, 100]


def test_a_type_whose_nodes_are_gone_is_expected_to_do_as_in_general() -> None:
    rewards = table()
    for _ in range(5):
        rewards.reward("D", "gone", 0.0, time=0.0)
    assert scores(rewards, "D", "n1") == [50]


def test_values_drift_halfway_back_in_each_half_life() -> None:
    rewards = table(half_life=DAY)
    for _ in range(10):
        rewards.reward("D", "n1", 0.0, time=0.0)
    drifted = [rewards.at(Pair("D", "n1"), time) for time in (0.0, DAY, 2 * DAY, 20 * DAY)]
    assert drifted == pytest.approx([0.348678, 0.674339, 0.837170, 0.999999], abs=1e-6)
    assert [scores(rewards, "D", "n1", time=time)[0] for time in (0.0, DAY, 2 * DAY, 30 * DAY)] == [
        30,
        60,
        80,
        100,
    ]


def test_a_late_outcome_counts_at_the_time_of_the_existing_value() -> None:
    rewards = table(half_life=DAY)
    rewards.reward("D", "n1", 0.0, time=DAY)
    rewards.reward("D", "n1", 0.0, time=0.0)
    assert rewards.at(Pair("D", "n1"), DAY) == pytest.approx(0.81)


def test_the_least_recently_rewarded_values_are_dropped_if_there_are_too_many() -> None:
    rewards = table(most=6)
    for name in ("a", "b", "c"):
        rewards.reward(name, "n1", 0.0, time=0.0)
    assert len(rewards) == 6
    kept = {pair for pair, _ in rewards}
    assert Pair("a", "n1") not in kept
    assert {Pair("c", "n1"), Pair("c", ""), Pair("", "n1"), Pair("b", "n1")} <= kept
    assert list(rewards.nodes_of("a")) == []


def test_columns_follow_the_rewards_and_the_nodes() -> None:
    rewards, cluster = table(), ClusterState()
    cluster.add_node(node("n1"))
    columns = RewardColumns(rewards)

    def ask() -> list[int]:
        found: list[int] = tens(columns.expected("D", cluster, time=0.0)).tolist()
        return found

    assert ask() == [100]
    rewards.reward("D", "n1", 0.0, time=0.0)
    assert ask() == [90]
    rewards.reward("D", "n2", 0.0, time=0.0)
    cluster.add_node(node("n2"))
    cluster.add_node(node("n3"))
    assert ask() == [90, 90, 100]
    for _ in range(5):
        rewards.reward("E", "n3", 0.0, time=0.0)
    assert ask() == [90, 90, 50]
    for _ in range(4):
        rewards.reward("D", "n1", 0.0, time=0.0)
    for _ in range(200):
        rewards.reward("E", "n1", 1.0, time=0.0)
    # Now D does worse than others on n1.
    assert ask() == [50, 90, 30]
    cluster.remove_node("n1")
    assert ask()[1:] == [90, 50]


def test_columns_follow_more_changes_than_there_are_values() -> None:
    rewards, cluster = table(most=3), ClusterState()
    cluster.add_node(node("n1"))
    columns = RewardColumns(rewards)
    for name in "abcdef":
        columns.expected("f", cluster, time=0.0)
        rewards.reward(name, "n1", 0.0, time=0.0)
        rewards.reward(name, "n2", 0.0, time=0.0)
        rewards.reward(name, "n1", 0.0, time=0.0)
    assert tens(columns.expected("f", cluster, time=0.0)).tolist() == [90]


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"), st.sampled_from(["n1", "n2", "gone"]), st.floats(0, 1), st.floats(0, 1e10)
        ),
        max_size=60,
    ),
    st.floats(0, 1e10),
    st.sampled_from([0.0, 1.0, DAY]),
)
def test_scores_stay_in_range_for_any_outcomes(
    told: list[tuple[str, str, float, float]], time: float, half_life: float
) -> None:
    rewards = table(half_life=half_life, most=5)
    for type_, name, reward, at in told:
        rewards.reward(type_, name, reward, time=at)
    for type_ in "abcd":
        assert set(scores(rewards, type_, "n1", "n2", "n3", time=time)) <= set(np.arange(0, 101, 10).tolist())
