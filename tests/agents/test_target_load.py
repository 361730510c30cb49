"""Target load packing: the published numbers, the predicted usage of a pod, and missing measurements."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.agents.loaded import Loaded

from longshore.agents.target_load import TargetLoadPacking
from longshore.cluster import PodInfo
from longshore.errors import UserError
from longshore.testing import node, pod

NODE = node("n1").allocatable(cpu="4", memory="8Gi")
# A pod that uses nothing, according to its limit.
IDLE = pod("idle").requests(cpu="0").limits(cpu="0")


def score(used: float, **args: object) -> int:
    nodes = Loaded(NODE, load={"cpu/mean": {"n1": used * 40}})
    return nodes.scores(nodes.agent(TargetLoadPacking, **args), IDLE)["n1"]


@pytest.mark.parametrize(
    ("used", "expected"),
    [(0, 40), (10, 55), (20, 70), (40, 100), (41, 39), (60, 27), (80, 13), (100, 0), (130, 0)],
)
def test_the_score_grows_up_to_the_target_and_falls_beyond_it(used: float, expected: int) -> None:
    assert score(used) == expected


@pytest.mark.parametrize(("used", "expected"), [(25, 75), (50, 100), (75, 25)])
def test_the_target_can_be_set(used: float, expected: int) -> None:
    assert score(used, targetUtilization=50) == expected


def test_the_pod_counts_with_its_limit_or_more_than_its_request_or_one_core() -> None:
    agent = Loaded().agent(TargetLoadPacking)
    limited = pod("a").requests(cpu="100m").limits(cpu="300m")
    asking = pod("b").requests(cpu="100m")
    predicted = [agent.predicted(PodInfo.of(each)) for each in (limited, asking, pod("c"))]
    assert predicted == [300, 150, 1000]


def test_defaults_for_pods_without_limits_can_be_set() -> None:
    agent = Loaded().agent(TargetLoadPacking, defaultRequests={"cpu": "250m"}, defaultRequestsMultiplier="2")
    asking = pod("b").requests(cpu="100m")
    assert [agent.predicted(PodInfo.of(each)) for each in (asking, pod("c"))] == [200, 250]


def test_usage_is_compared_with_the_capacity_rather_than_allocatable() -> None:
    nodes = Loaded(node("n1").allocatable(cpu="2").capacity(cpu="4"), load={"cpu/mean": {"n1": 1600}})
    assert nodes.scores(nodes.agent(TargetLoadPacking), IDLE) == {"n1": 100}


def test_a_pod_that_came_after_the_measurement_counts_with_its_request() -> None:
    nodes = Loaded(NODE, load={"cpu/mean": {"n1": 0}})
    nodes.tell(pod("new").requests(cpu="800m").on("n1"))
    assert nodes.scores(nodes.agent(TargetLoadPacking), IDLE) == {"n1": 70}


@pytest.mark.parametrize(
    ("missing", "expected"), [("Neutral", 0), ("FailOpen", 50), ("FailClosed", 0), ("Requests", 70)]
)
def test_a_node_without_measurements_is_scored_by_the_policy(missing: str, expected: int) -> None:
    nodes = Loaded(NODE, pod("there").requests(cpu="800m").on("n1"))
    assert nodes.scores(nodes.agent(TargetLoadPacking, missing=missing), IDLE) == {"n1": expected}


@pytest.mark.parametrize(
    "args",
    [
        {"targetUtilization": 0},
        {"targetUtilization": 101},
        {"defaultRequestsMultiplier": "a lot"},
        {"defaultRequestsMultiplier": "-1"},
        {"defaultRequests": {"cpu": "much"}},
        {"watcherAddress": "http://127.0.0.1:2020"},
    ],
)
def test_invalid_arguments_are_reported_in_one_line(args: dict[str, object]) -> None:
    with pytest.raises(UserError, match=r"^arguments of TargetLoadPacking: .*$"):
        Loaded().agent(TargetLoadPacking, **args)


@given(
    used=st.floats(allow_nan=True, allow_infinity=True),
    cpu=st.integers(0, 10**6),
    target=st.integers(1, 100),
    asked=st.integers(0, 10**6),
)
@example(used=1.8e306, cpu=1, target=1, asked=0)
@example(used=-1.8e306, cpu=1, target=1, asked=0)
def test_scores_stay_in_range_for_any_measurements(used: float, cpu: int, target: int, asked: int) -> None:
    nodes = Loaded(node("n1").allocatable(cpu=f"{cpu}m"), load={"cpu/mean": {"n1": used}})
    agent = nodes.agent(TargetLoadPacking, targetUtilization=target)
    assert 0 <= nodes.scores(agent, pod("a").requests(cpu=f"{asked}m"))["n1"] <= 100
