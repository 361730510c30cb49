"""The golden numbers over HTTP: nodes by name and whole nodes, with keys in either case."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from tests.agents.one_agent import golden
from tests.agents.test_pigeon import KEPT, asking, policy, title, used
from tests.serve.extenders import Made, about_names, about_nodes, by_host, make, on_a_port, post

from longshore.api import Change, Node, Pod
from longshore.api.pod_run import PodRun, PodRunSpec, PodRunStatus
from longshore.engine import Done, Gone, Request, Succeeded
from longshore.framework.effects import GetObject
from longshore.testing import NodeBuilder, node, pod

SINGLE = golden()["safe_single_resource"]
CLUSTER = golden()["safe_cluster"]
ANNOTATIONS = ("mean-free-cpu", "std-free-cpu", "forcasted-free-cpu")


@pytest.fixture(params=["names", "nodes"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[str, str.lower], ids=["PascalCase", "lowercase"])
def case(request: pytest.FixtureRequest) -> Callable[[str], str]:
    found: Callable[[str], str] = request.param
    return found


def asked(
    made: Made,
    way: str,
    case: Callable[[str], str],
    nodes: Sequence[Node],
    questions: Sequence[tuple[str, Pod]],
) -> list[Any]:
    """Return the answers of the extender to each verb and pod in turn."""
    if way == "names":
        made.put(*nodes)
    answers = []
    with on_a_port(made.extender) as port:
        for verb, web in questions:
            names = [each.metadata.name for each in nodes]
            said = about_names(web, names) if way == "names" else about_nodes(web, nodes)
            status, answer = post(port, verb, {case(key): value for key, value in said.items()})
            assert status == 200, answer
            answers.append(answer)
    return answers


def passed(answer: Mapping[str, Any]) -> list[str]:
    """Return the names of the nodes that passed the filter."""
    if answer["NodeNames"] is not None:
        return list(answer["NodeNames"])
    return [item["metadata"]["name"] for item in answer["Nodes"]["items"]]


def measured(name: str, vector: Mapping[str, Any]) -> NodeBuilder:
    amounts = (vector["mean_free"], vector["std_free"], vector["forecast_free"])
    found = {key: str(amount) for key, amount in zip(ANNOTATIONS, amounts, strict=True) if amount is not None}
    return node(name).allocatable(cpu=f"{vector['capacity']}m").annotations(**found)


@pytest.mark.parametrize("vector", SINGLE, ids=[vector["name"] for vector in SINGLE])
def test_safe_about_one_resource(vector: Mapping[str, Any], way: str, case: Callable[[str], str]) -> None:
    environ = {key: str(vector[key]) for key in vector if key.startswith("SAFE")}
    web = pod("web").requests(cpu=f"{vector['request']}m")
    verbs = ("predicates/safe-overload", "priorities/safe-overload", "priorities/safe-balance")
    questions = [(verb, web) for verb in verbs]
    left, overload, balance = asked(
        make("safe", environ=environ), way, case, [measured("a", vector)], questions
    )
    assert (passed(left), by_host(overload), by_host(balance)) == (
        ["a"] if vector["accepted"] else [],
        {"a": vector["overload_score"]},
        {"a": vector["balance_score"]},
    )


def test_safe_about_the_cluster(way: str, case: Callable[[str], str]) -> None:
    nodes = [
        node(each["node"]).allocatable(**each["allocatable"]).annotations(**each["annotations"])
        for each in CLUSTER["nodes"]
    ]
    web = pod("web").requests(**CLUSTER["pod_request"])
    verbs = ("predicates/safe-overload", "priorities/safe-overload", "priorities/safe-balance")
    left, overload, balance = asked(make("safe"), way, case, nodes, [(verb, web) for verb in verbs])
    assert passed(left) == [each["node"] for each in CLUSTER["nodes"] if each["accepted"]]
    assert by_host(overload) == {each["node"]: each["overload_score"] for each in CLUSTER["nodes"]}
    assert by_host(balance) == {each["node"]: each["balance_score"] for each in CLUSTER["nodes"]}


@pytest.mark.parametrize("most", sorted({each["max"] for each in golden()["congestion"]}))
def test_congestion_scores_as_its_golden_vectors_say(most: int, way: str, case: Callable[[str], str]) -> None:
    vectors = {f"n{i}": each for i, each in enumerate(golden()["congestion"]) if each["max"] == most}
    nodes: list[Node] = []
    for name, vector in vectors.items():
        said = {} if vector["annotation"] is None else {"congestion-factor": vector["annotation"]}
        nodes.append(node(name).allocatable(cpu="4").annotations(**said))
    made = make("congestion", environ={"CONGESTION_FACTOR_MAX": str(most)})
    [scores] = asked(made, way, case, nodes, [("priorities/congestion", pod("web"))])
    assert by_host(scores) == {name: vector["score"] for name, vector in vectors.items()}
    assert [each["Host"] for each in scores] == list(vectors)


@pytest.mark.parametrize("scenario", KEPT, ids=map(title, KEPT))
def test_pigeon_scores_as_its_golden_scenarios_say(
    scenario: Mapping[str, Any], way: str, case: Callable[[str], str]
) -> None:
    arguments: dict[str, object] = {
        "policyObjective": policy(dict(scenario)),
        "policyResourceIndex": scenario["policyResourceIndex"],
        "numResources": scenario["NUM_RESOURCES"],
    }
    made = make("pigeon", arguments={"PigeonHoling": arguments})
    nodes = [used(each["name"], each["capacity"], each["usage"]) for each in scenario["nodes"]]
    questions = [("priorities/pigeon-holing", asking(each["demand"])) for each in scenario["pods"]]
    answers = asked(made, way, case, nodes, questions)
    assert [by_host(answer) for answer in answers] == [each["scores"] for each in scenario["pods"]]


@pytest.mark.parametrize("vector", golden()["kuberl_ewma_failures"], ids=lambda each: each["failures"])
def test_rewards_after_failures_in_a_row(vector: Mapping[str, Any], way: str) -> None:
    made = make("reward")
    engine, now = made.engine, time.monotonic()
    for request in engine.advance(now=now, max_cycles=0):
        if isinstance(request, Request):
            nothing = Gone() if isinstance(request.effect, GetObject) else Succeeded()
            engine.receive(Done(request.id, nothing), now=now)
    for number in range(vector["failures"]):
        web = pod(f"web-{number}").labels(podtype="D")
        begun = PodRun(web.metadata, PodRunSpec("bad"), PodRunStatus("Running"))
        ended = PodRun(web.metadata, PodRunSpec("bad"), PodRunStatus("Failed"))
        engine.receive(Change(None, begun), now=now)
        engine.receive(Change(begun, ended), now=now)
    nodes = [node("bad"), node("good")]
    question = ("priorities/rl-priority", pod("new").labels(podtype="D"))
    [scores] = asked(made, way, str, nodes, [question])
    assert by_host(scores)["bad"] == vector["score"]
