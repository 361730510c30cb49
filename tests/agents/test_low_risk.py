"""Low risk overcommitment: the published numbers, changing limits, and missing measurements."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.agents.loaded import Loaded

from longshore.agents.low_risk import LowRiskOverCommitment
from longshore.api import Change, Container, ResourceRequirements
from longshore.cluster import CPU
from longshore.errors import UserError
from longshore.testing import node, pod

NODE = node("n1").allocatable(cpu="4", memory="8Gi")
THERE = pod("there").requests(cpu="2").limits(cpu="3").on("n1")
POD = pod("a").requests(cpu="500m").limits(cpu="1500m")
LOAD = {"cpu/mean": {"n1": 2000.0}, "cpu/std": {"n1": 400.0}}


def score(**args: object) -> int:
    nodes = Loaded(NODE, THERE, load=LOAD)
    return nodes.scores(nodes.agent(LowRiskOverCommitment, **args), POD)["n1"]


def test_half_of_the_risk_is_in_the_limits_and_half_in_the_load() -> None:
    # 1 - (0.25 + 0.407407) / 2
    assert score() == 67


def test_only_the_risk_of_the_limits_can_be_weighted() -> None:
    assert score(riskLimitWeights={"cpu": 1}) == 75


def test_only_the_risk_of_the_load_can_be_weighted() -> None:
    assert score(riskLimitWeights={"cpu": 0}) == 59


def test_without_smoothing_the_load_varies_less() -> None:
    # The requests are in the middle of the distribution, but nothing reaches the limits now.
    assert score(riskLimitWeights={"cpu": 0}, smoothingWindowSize=1) == 50


def test_a_pod_without_requests_scores_0() -> None:
    nodes = Loaded(NODE, THERE, load=LOAD)
    assert nodes.scores(nodes.agent(LowRiskOverCommitment), pod("best-effort")) == {"n1": 0}


def test_an_empty_node_has_no_risk() -> None:
    nodes = Loaded(NODE, load={"cpu/mean": {"n1": 0.0}})
    assert nodes.scores(nodes.agent(LowRiskOverCommitment), pod("a").requests(cpu="1")) == {"n1": 100}


def test_load_without_variation_is_a_risk_only_beyond_the_requests() -> None:
    steady = {"cpu/mean": {"n1": 2000.0}}
    nodes = Loaded(NODE, THERE, load=steady)
    args = {"riskLimitWeights": {"cpu": 0}}
    assert nodes.scores(nodes.agent(LowRiskOverCommitment, **args), POD) == {"n1": 100}
    nodes.measure({"cpu/mean": {"n1": 2001.0}}, at=1.0)
    assert nodes.scores(nodes.agent(LowRiskOverCommitment, **args), POD) == {"n1": 0}


@pytest.mark.parametrize(
    ("missing", "expected"), [("Neutral", 0), ("FailOpen", 50), ("FailClosed", 0), ("Requests", 88)]
)
def test_a_node_without_measurements_is_scored_by_the_policy(missing: str, expected: int) -> None:
    nodes = Loaded(NODE, THERE)
    assert nodes.scores(nodes.agent(LowRiskOverCommitment, missing=missing), POD) == {"n1": expected}


def test_limits_are_counted_as_pods_are_added_changed_and_removed() -> None:
    nodes = Loaded(NODE, THERE)
    nodes.agent(LowRiskOverCommitment)
    cluster = nodes.engine.cluster

    def beyond() -> int:
        return int(cluster.limits.beyond(cluster.all_nodes(), CPU)[cluster.row("n1") or 0])

    assert beyond() == 1000
    other = pod("other").requests(cpu="1").on("n1")
    nodes.tell(other.limits(cpu="1500m"), other.limits(cpu="1500m"))
    assert beyond() == 1500
    resized = pod("other").requests(cpu="1100m").limits(cpu="3").on("n1")
    nodes.engine.receive(Change(other, resized), now=1.0)
    assert beyond() == 2900
    nodes.engine.receive(Change(resized, None), now=2.0)
    nodes.engine.receive(Change(THERE, None), now=2.0)
    assert beyond() == 0


def test_limits_count_like_requests_with_sidecars_and_init_containers() -> None:
    def beyond(*containers: str) -> int:
        nodes = Loaded(NODE)
        nodes.agent(LowRiskOverCommitment)
        made = pod("a").limits(cpu="1").on("n1")
        init = tuple(
            Container(
                name=kind,
                resources=ResourceRequirements(limits={"cpu": "2"}),
                restart_policy="Always" if kind == "sidecar" else "",
            )
            for kind in containers
        )
        nodes.tell(replace(made, spec=replace(made.spec, init_containers=init)))
        cluster = nodes.engine.cluster
        return int(cluster.limits.beyond(cluster.all_nodes(), CPU)[cluster.row("n1") or 0])

    assert beyond() == 1000
    assert beyond("init") == 2000
    assert beyond("sidecar") == 3000
    assert beyond("sidecar", "init") == 4000


@pytest.mark.parametrize(
    "args", [{"smoothingWindowSize": 0}, {"riskLimitWeights": {"cpu": 2}}, {"riskLimitWeights": {"gpu": 1}}]
)
def test_invalid_arguments_are_reported_in_one_line(args: dict[str, object]) -> None:
    with pytest.raises(UserError, match=r"^arguments of LowRiskOverCommitment: .*$"):
        Loaded().agent(LowRiskOverCommitment, **args)


_AMOUNTS = st.integers(0, 10**5)


@given(
    mean=st.floats(),
    deviation=st.floats(),
    amounts=st.tuples(_AMOUNTS, _AMOUNTS, _AMOUNTS, _AMOUNTS, _AMOUNTS),
    window=st.integers(1, 1000),
)
def test_scores_stay_in_range_for_any_measurements(
    mean: float, deviation: float, amounts: tuple[int, ...], window: int
) -> None:
    cpu, *asked = (f"{amount}m" for amount in amounts)
    nodes = Loaded(
        node("n1").allocatable(cpu=cpu),
        pod("there").requests(cpu=asked[0]).limits(cpu=asked[1]).on("n1"),
        load={"cpu/mean": {"n1": mean}, "cpu/std": {"n1": deviation}},
    )
    agent = nodes.agent(LowRiskOverCommitment, smoothingWindowSize=window)
    assert 0 <= nodes.scores(agent, pod("a").requests(cpu=asked[2]).limits(cpu=asked[3]))["n1"] <= 100
