"""Load variation risk balancing: the published numbers, and missing measurements."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agents.loaded import Loaded

from longshore.agents.load_variation import LoadVariationRiskBalancing
from longshore.errors import UserError
from longshore.testing import node, pod

NODE = node("n1").allocatable(cpu="4", memory="4Ki")
POD = pod("a").requests(cpu="500m")


def score(mean: float, deviation: float, **args: object) -> int:
    nodes = Loaded(NODE, load={"cpu/mean": {"n1": mean}, "cpu/std": {"n1": deviation}})
    return nodes.scores(nodes.agent(LoadVariationRiskBalancing, **args), POD)["n1"]


@pytest.mark.parametrize(
    ("mean", "args", "expected"),
    [
        (2000, {}, 64),
        (2000, {"safeVarianceSensitivity": 2}, 53),
        (3000, {"safeVarianceMargin": 3}, 41),
    ],
)
def test_the_risk_is_halfway_between_mean_and_weighed_deviation(
    mean: float, args: dict[str, object], expected: int
) -> None:
    assert score(mean, 400, **args) == expected


def test_with_a_sensitivity_of_0_only_the_largest_deviation_counts() -> None:
    assert score(1500, 3999, safeVarianceSensitivity=0) == 75
    assert score(1500, 4000, safeVarianceSensitivity=0) == 25


def test_the_riskiest_resource_counts() -> None:
    load = {"cpu/mean": {"n1": 0.0}, "memory/mean": {"n1": 2048.0}}
    nodes = Loaded(NODE, load=load)
    assert nodes.scores(nodes.agent(LoadVariationRiskBalancing), pod("a")) == {"n1": 75}


def test_a_pod_that_came_after_the_measurement_counts_with_its_request() -> None:
    nodes = Loaded(NODE, load={"cpu/mean": {"n1": 0}})
    nodes.tell(pod("new").requests(cpu="2").on("n1"))
    assert nodes.scores(nodes.agent(LoadVariationRiskBalancing), pod("a")) == {"n1": 75}


@pytest.mark.parametrize(
    ("missing", "expected"), [("Neutral", 0), ("FailOpen", 50), ("FailClosed", 0), ("Requests", 75)]
)
def test_a_node_without_measurements_is_scored_by_the_policy(missing: str, expected: int) -> None:
    nodes = Loaded(NODE, pod("there").requests(cpu="2").on("n1"))
    agent = nodes.agent(LoadVariationRiskBalancing, missing=missing)
    assert nodes.scores(agent, pod("a")) == {"n1": expected}


@pytest.mark.parametrize("args", [{"safeVarianceMargin": -1}, {"safeVarianceSensitivity": -0.5}])
def test_invalid_arguments_are_reported_in_one_line(args: dict[str, object]) -> None:
    with pytest.raises(UserError, match=r"^arguments of LoadVariationRiskBalancing: .*$"):
        Loaded().agent(LoadVariationRiskBalancing, **args)


@given(
    mean=st.floats(),
    deviation=st.floats(),
    cpu=st.integers(0, 10**6),
    margin=st.floats(0, 1e9),
    sensitivity=st.floats(0, 1e9),
)
def test_scores_stay_in_range_for_any_measurements(
    mean: float, deviation: float, cpu: int, margin: float, sensitivity: float
) -> None:
    nodes = Loaded(
        node("n1").allocatable(cpu=f"{cpu}m"), load={"cpu/mean": {"n1": mean}, "cpu/std": {"n1": deviation}}
    )
    agent = nodes.agent(
        LoadVariationRiskBalancing, safeVarianceMargin=margin, safeVarianceSensitivity=sensitivity
    )
    assert 0 <= nodes.scores(agent, POD)["n1"] <= 100
