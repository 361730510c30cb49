"""Congestion compared with the golden file; and Foo, which changes nothing."""

from typing import Any

import pytest
import structlog
from tests.agents.one_agent import golden, made, scores
from tests.plugins.one_plugin import cluster_of

from longshore.agents.congestion import Congestion
from longshore.agents.foo import Foo
from longshore.cluster import PodInfo
from longshore.errors import UserError
from longshore.framework import CycleState
from longshore.testing import NodeBuilder, node, pod

VECTORS = golden()["congestion"]
WEB = pod("web")


def congested(name: str, factor: str | None) -> NodeBuilder:
    built = node(name)
    return built if factor is None else built.annotations(**{"congestion-factor": factor})


@pytest.mark.parametrize("vector", VECTORS, ids=[f"{v['annotation']}-of-{v['max']}" for v in VECTORS])
def test_a_factor_is_scored_as_in_the_golden_file(vector: dict[str, Any]) -> None:
    cluster = cluster_of(congested("n1", vector["annotation"]))
    agent = made(Congestion, cluster, **Congestion.environment({"CONGESTION_FACTOR_MAX": str(vector["max"])}))
    assert scores(agent, WEB, cluster) == {"n1": vector["score"] * 10}


@pytest.mark.parametrize("factor", ["7_0", " 70", "70 ", "\u0667\u0660", "7e1", "0x46", "NaN", "inf"])
def test_a_factor_that_is_not_an_integer_is_no_congestion(factor: str) -> None:
    cluster = cluster_of(congested("n1", factor))
    assert scores(made(Congestion, cluster), WEB, cluster) == {"n1": 100}


@pytest.mark.parametrize("digits", [300, 5000])
def test_an_enormous_factor_is_full_congestion(digits: int) -> None:
    cluster = cluster_of(congested("n1", "9" * digits))
    assert scores(made(Congestion, cluster), WEB, cluster) == {"n1": 0}


@pytest.mark.parametrize(("missing", "score"), [("Neutral", 100), ("FailOpen", 50), ("FailClosed", 0)])
def test_a_node_without_a_factor_follows_the_policy(missing: str, score: int) -> None:
    cluster = cluster_of(congested("bare", None), congested("free", "0"))
    assert scores(made(Congestion, cluster, missing=missing), WEB, cluster) == {"bare": score, "free": 100}


def test_a_measured_factor_takes_precedence_over_the_annotation_even_if_that_is_missing() -> None:
    cluster = cluster_of(congested("n1", "50"), congested("n2", None))
    agent = made(Congestion, cluster)
    cluster.measures.put({"congestion": {"n1": (20.0, 0.0), "n2": (70.0, 0.0)}}, now=1.0)
    assert scores(agent, WEB, cluster) == {"n1": 80, "n2": 30}
    cluster.add_node(congested("n2", None).labels(zone="a"))
    assert scores(agent, WEB, cluster) == {"n1": 80, "n2": 30}


def test_a_change_of_the_annotation_counts_immediately() -> None:
    cluster = cluster_of(congested("n1", "50"))
    agent = made(Congestion, cluster)
    assert scores(agent, WEB, cluster) == {"n1": 50}
    cluster.add_node(congested("n1", "80"))
    assert scores(agent, WEB, cluster) == {"n1": 20}
    cluster.add_node(congested("n1", None))
    assert scores(agent, WEB, cluster) == {"n1": 100}


def test_nodes_of_another_cluster_are_read_too() -> None:
    agent = made(Congestion, cluster_of())
    assert scores(agent, WEB, cluster_of(congested("n1", "30"))) == {"n1": 70}


@pytest.mark.parametrize("text", ["0", "-1", "ten", "1.5"])
def test_an_invalid_maximum_in_the_environment_is_ignored_with_a_warning(text: str) -> None:
    with structlog.testing.capture_logs() as logged:
        assert Congestion.environment({"CONGESTION_FACTOR_MAX": text}) == {}
    assert [line["value"] for line in logged] == [text]


def test_an_invalid_maximum_in_a_configuration_is_an_error() -> None:
    with pytest.raises(UserError, match=r"arguments of Congestion: .*factorMax"):
        made(Congestion, cluster_of(), factorMax=0)


def test_foo_accepts_everything_and_gives_the_same_score_to_all() -> None:
    cluster = cluster_of(node("n1"), node("n2"))
    agent = made(Foo, cluster, **Foo.environment({"FOO": "bar"}))
    assert list(agent.filter(CycleState(), PodInfo.of(WEB), cluster.all_nodes())) == []
    assert scores(agent, WEB, cluster) == {"n1": 10, "n2": 10}


def test_foo_accepts_no_arguments() -> None:
    with pytest.raises(UserError, match=r"arguments of Foo: .*speed"):
        made(Foo, cluster_of(), speed=1)
