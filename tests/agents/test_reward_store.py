"""Rewards as the data of a ConfigMap: their readable form, and invalid content."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.agents.reward.store import decoded, encoded
from longshore.agents.reward.table import Pair, Rewards, Value

NOW = 1_785_578_400.0


def table(half_life: float = 0.0) -> Rewards:
    return Rewards(half_life=half_life, most=100_000)


def test_values_have_six_digits_and_a_time() -> None:
    rewards = table()
    for _ in range(5):
        rewards.reward("web", "node-1", 0.0, time=NOW)
    assert encoded(rewards, now=NOW + 1.5) == {
        "until": "2026-08-01T10:00:01.500Z",
        "rewards": "pairs/web/node-1 0.590490 2026-08-01T10:00:00.000Z\n"
        "types/web 0.590490 2026-08-01T10:00:00.000Z\n"
        "nodes/node-1 0.590490 2026-08-01T10:00:00.000Z\n",
    }


def test_a_value_that_is_the_best_anyway_is_not_written() -> None:
    rewards = table(half_life=86_400)
    rewards.reward("good", "n1", 1.0, time=NOW)
    rewards.reward("bad", "n2", 0.0, time=NOW)
    assert "good" not in encoded(rewards, now=NOW)["rewards"]
    assert encoded(rewards, now=NOW + 100 * 86_400)["rewards"] == ""


def test_a_pair_that_succeeds_where_others_fail_is_written() -> None:
    rewards = table()
    rewards.reward("bad", "n1", 0.0, time=NOW)
    rewards.reward("good", "n1", 1.0, time=NOW)
    assert "pairs/good/n1 1.000000" in encoded(rewards, now=NOW)["rewards"]


def test_the_oldest_values_are_dropped_if_there_are_too_many_for_an_object() -> None:
    rewards = table()
    for number in range(30_000):
        rewards.reward("web", f"node-{number}", 0.0, time=NOW)
    data = encoded(rewards, now=NOW)
    assert 800_000 < len(data["rewards"]) < 1_000_000
    values, _ = decoded(data)
    assert Pair("web", "node-29999") in values
    assert Pair("web", "node-0") not in values


def test_an_empty_config_map_has_no_values() -> None:
    assert decoded({}) == ({}, -math.inf)


@pytest.mark.parametrize(
    "data",
    [
        {"config.yaml": "a: b"},
        {"rewards": ""},
        {"until": "2026-08-01T10:00:00.000Z"},
        {"until": "yesterday", "rewards": ""},
        {"until": "2026-08-01T10:00:00", "rewards": ""},
        *(
            {"until": "2026-08-01T10:00:00.000Z", "rewards": line}
            for line in (
                "hello",
                "\n",
                "nodes/n1 0.5",
                "nodes/n1 half 2026-08-01T10:00:00.000Z",
                "nodes/n1 nan 2026-08-01T10:00:00.000Z",
                "nodes/n1 1.5 2026-08-01T10:00:00.000Z",
                "nodes/n1 0.5 soon",
                "nodes/ 0.5 2026-08-01T10:00:00.000Z",
                "pairs/web 0.5 2026-08-01T10:00:00.000Z",
                "pods/web/all 0.5 2026-08-01T10:00:00.000Z",
            )
        ),
    ],
)
def test_invalid_content_is_rejected(data: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        decoded(data)


_NAMES = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?", fullmatch=True)


@given(st.dictionaries(st.tuples(_NAMES, _NAMES), st.floats(0, 0.99), max_size=20), st.integers(0, 2**32))
def test_written_values_are_read_again(found: dict[tuple[str, str], float], time: int) -> None:
    rewards = table()
    values = {Pair(*pair): Value(round(value, 6), float(time)) for pair, value in found.items()}
    rewards.load(values)
    assert decoded(encoded(rewards, now=time)) == (values, time)
