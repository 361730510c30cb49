"""The answers of an extender to a kube-scheduler: filter and prioritize."""

import time
from collections.abc import Callable

import pytest
from tests.serve.extendernodes import CALM, FILTER, FULL, PRIORITIES, RISK, WEB, with_free
from tests.serve.extenders import (
    Made,
    about_names,
    about_nodes,
    by_host,
    make,
)

from longshore.api import Change
from longshore.serve.extender.refusals import UNKNOWN_NODE
from longshore.testing import NodeBuilder, PodBuilder, node, pod


def test_a_node_that_is_refused_is_named_with_its_reason_where_preemption_cannot_help(safe: Made) -> None:
    assert safe.post(FILTER, about_names(WEB, ["calm", "full"])) == (
        200,
        {
            "Nodes": None,
            "NodeNames": ["calm"],
            "FailedNodes": {},
            "FailedAndUnresolvableNodes": {"full": RISK},
            "Error": "",
        },
    )


def test_a_refusal_that_evicting_pods_may_cure_is_among_the_failed_nodes(file: str) -> None:
    made = make(file)
    made.put(node("small").allocatable(cpu="2"), CALM)
    _, answer = made.post("predicates/mild", about_names(WEB, ["small", "calm"]))
    assert (answer["FailedNodes"], answer["FailedAndUnresolvableNodes"]) == (
        {"small": "node(s) were too hot"},
        {},
    )


def test_nodes_that_pass_come_back_as_they_were_sent(safe: Made) -> None:
    said = about_nodes(WEB, [FULL, CALM])
    said["Nodes"]["items"][1]["spec"] = {"podCIDR": "10.0.0.0/24", "neverHeardOf": [1, {"x": None}]}
    _, answer = safe.post(FILTER, said)
    assert answer["Nodes"]["items"] == [said["Nodes"]["items"][1]]
    assert (answer["NodeNames"], answer["FailedAndUnresolvableNodes"]) == (None, {"full": RISK})


def test_an_unknown_node_fails_with_a_reason_and_is_never_echoed(safe: Made) -> None:
    _, answer = safe.post(FILTER, about_names(WEB, ["calm", "who"]))
    assert answer["NodeNames"] == ["calm"]
    assert answer["FailedAndUnresolvableNodes"] == {"who": UNKNOWN_NODE}


def test_a_node_that_is_gone_is_unknown(safe: Made) -> None:
    safe.post(FILTER, about_names(WEB, ["calm"]))
    safe.engine.receive(Change(CALM, None), now=time.monotonic())
    _, answer = safe.post(FILTER, about_names(WEB, ["calm"]))
    assert answer["NodeNames"] == []


def test_pods_that_came_since_the_measurement_count(safe: Made) -> None:
    timed = CALM.annotations(**{"longshore.dev/measured-at": "2026-01-01T00:00:00Z"})
    safe.put(timed, *(pod(f"new-{n}").requests(cpu="500m").on("calm") for n in range(3)))
    _, answer = safe.post(FILTER, about_names(WEB, ["calm"]))
    assert answer["FailedAndUnresolvableNodes"] == {"calm": RISK}


def test_an_annotation_that_changes_counts_at_once(safe: Made) -> None:
    assert safe.post(FILTER, about_names(WEB, ["calm"]))[1]["NodeNames"] == ["calm"]
    safe.put(with_free("calm", 100))
    assert safe.post(FILTER, about_names(WEB, ["calm"]))[1]["NodeNames"] == []


def test_a_node_that_is_sent_again_with_another_load_is_judged_by_it(safe: Made) -> None:
    safe.post(FILTER, about_nodes(WEB, [CALM]))
    _, answer = safe.post(FILTER, about_nodes(WEB, [with_free("calm", 100)]))
    assert answer["Nodes"]["items"] == []


def test_a_filter_that_answers_node_by_node(file: str) -> None:
    made = make(file)
    made.put(CALM, FULL)
    _, answer = made.post("predicates/plain", about_names(WEB, ["calm", "full"]))
    assert (answer["NodeNames"], answer["FailedNodes"]) == (["calm"], {"full": "not this one"})


def test_a_pod_that_is_refused_altogether_is_refused_on_every_node(file: str) -> None:
    made = make(file)
    made.put(CALM, FULL)
    _, answer = made.post("predicates/only-calm", about_names(WEB, ["calm", "full"]))
    assert answer["FailedAndUnresolvableNodes"] == dict.fromkeys(
        ["calm", "full"], "the pod has no label keep"
    )


def test_a_filter_that_narrows_the_nodes_down(file: str) -> None:
    made = make(file)
    made.put(CALM, FULL)
    _, answer = made.post("predicates/only-calm", about_names(WEB.labels(keep="yes"), ["calm", "full"]))
    assert answer["NodeNames"] == ["calm"]
    assert list(answer["FailedAndUnresolvableNodes"]) == ["full"]


# Pods on nodes that are sent whole.


def asking(name: str, on: str = "calm") -> PodBuilder:
    return pod(name).requests(cpu="1500m").on(on)


def left_of_sent(made: Made, *nodes: NodeBuilder) -> list[str]:
    _, answer = made.post(FILTER, about_nodes(WEB, nodes))
    return [item["metadata"]["name"] for item in answer["Nodes"]["items"]]


@pytest.fixture
def by_requests() -> Made:
    """A node without measurements counts with the requests of its pods."""
    made = make("safe", arguments={"SafeOverload": {"missing": "Requests"}})
    made.put(BARE)
    return made


BARE = node("bare").allocatable(cpu="4")


def test_pods_of_a_node_that_is_sent_are_those_of_the_watch(by_requests: Made) -> None:
    pods = [asking(name, on="bare") for name in "abc"]
    by_requests.put(*pods)
    assert left_of_sent(by_requests, BARE) == []
    by_requests.engine.receive(Change(pods[0], None), now=time.monotonic())
    assert left_of_sent(by_requests, BARE) == ["bare"]
    by_requests.put(asking("d", on="bare"))
    assert left_of_sent(by_requests, BARE) == []


def test_a_pod_of_the_same_name_runs_on_another_node_that_is_sent(by_requests: Made) -> None:
    other = node("other").allocatable(cpu="2")
    by_requests.put(other, asking("a", on="other"))
    assert left_of_sent(by_requests, BARE, other) == ["bare"]
    gone = asking("a", on="other")
    by_requests.engine.receive(Change(gone, None), now=time.monotonic())
    by_requests.put(*(asking(name, on="bare").uid(f"{name}-2") for name in "abc"))
    assert left_of_sent(by_requests, BARE, other) == ["other"]


def test_a_node_is_sent_whose_name_took_the_place_of_another(by_requests: Made) -> None:
    """The pods of the earlier node are neither left out nor counted for the new node."""
    first, second = node("first").allocatable(cpu="1"), node("second").allocatable(cpu="1")
    by_requests.put(first, asking("a", on="first"))
    assert left_of_sent(by_requests, first, second) == ["second"]
    for gone in (asking("a", on="first"), first):
        by_requests.engine.receive(Change(gone, None), now=time.monotonic())
    by_requests.put(second, asking("b", on="second"))
    assert left_of_sent(by_requests, first, second) == ["first"]


def test_a_pod_that_follows_another_on_a_node_that_is_sent_is_unseen(
    safe: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next measurement may include neither of them."""
    now = int(time.time())
    before = asking("before")
    safe.put(before)
    assert left_of_sent(safe, _measured_at(now - 5)) == ["calm"]
    safe.engine.receive(Change(before, None), now=time.monotonic())
    safe.put(asking("after"))
    monkeypatch.setattr("longshore.serve.extender.routes.time.time", lambda: now + 40)
    assert left_of_sent(safe, _measured_at(now + 35)) == []


def _measured_at(seconds: float) -> NodeBuilder:
    said = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    return CALM.annotations(**{"longshore.dev/measured-at": said})


def test_the_measurement_of_a_sent_node_includes_its_pods(safe: Made) -> None:
    timed = _measured_at(time.time())
    safe.put(*(asking(f"old-{number}") for number in range(3)))
    assert left_of_sent(safe, timed) == ["calm"]
    safe.put(asking("new"))
    assert left_of_sent(safe, timed) == []


# Priorities.


def test_a_node_that_the_filter_would_refuse_has_its_score_all_the_same(safe: Made) -> None:
    safe.post(FILTER, about_names(WEB, ["calm", "full"]))
    assert by_host(safe.post(PRIORITIES, about_names(WEB, ["full", "calm"]))[1]) == {"full": 0, "calm": 9}


def test_priorities_are_in_the_order_of_the_request_and_leave_unknown_nodes_out(safe: Made) -> None:
    _, answer = safe.post(PRIORITIES, about_names(WEB, ["full", "who", "calm"]))
    assert [each["Host"] for each in answer] == ["full", "calm"]


def test_no_nodes_have_no_priorities(safe: Made) -> None:
    assert safe.post(PRIORITIES, about_names(WEB, [])) == (200, [])


def test_an_agent_that_looks_at_the_nodes_together_sees_those_asked_about_alone(file: str) -> None:
    made = make(file)
    made.put(*(with_free(f"n{i}", 2000) for i in range(60)))
    _, answer = made.post("priorities/counts", about_names(WEB, [f"n{i}" for i in range(30)]))
    assert set(by_host(answer).values()) == {3}


def test_scores_in_between_are_rounded(file: str) -> None:
    made = make(file)
    made.put(CALM, FULL)
    _, answer = made.post("priorities/plain", about_names(WEB, ["calm", "full"]))
    assert by_host(answer) == {"calm": 10, "full": 4}


# Out of 100: 98 and 88, 56 and 51.
NOT_WHOLE = with_free("a", 2400, 500), with_free("b", 2000, 500)


def test_scores_go_up_to_ten_even_if_arguments_ask_for_more() -> None:
    fine = {"fineScores": True}
    made = make("safe", arguments={"SafeOverload": fine, "SafeBalance": fine})
    made.put(*NOT_WHOLE)
    for verb, scores in ((PRIORITIES, {"a": 9, "b": 8}), ("priorities/safe-balance", {"a": 6, "b": 5})):
        assert by_host(made.post(verb, about_names(WEB, ["a", "b"]))[1]) == scores


@pytest.mark.parametrize("about", [about_nodes, about_names])
def test_fine_scores_are_out_of_a_hundred(about: Callable[..., dict[str, object]]) -> None:
    made = make("safe", fine_scores=True)
    made.put(*NOT_WHOLE)
    said = about(WEB, NOT_WHOLE if about is about_nodes else ["a", "b"])
    assert by_host(made.post(PRIORITIES, said)[1]) == {"a": 98, "b": 88}
    assert by_host(made.post("priorities/safe-balance", said)[1]) == {"a": 56, "b": 51}


def test_nodes_that_were_sent_before_do_not_count(file: str) -> None:
    made = make(file)
    made.post("priorities/counts", about_nodes(WEB, [with_free(f"n{i}", 2000) for i in range(50)]))
    _, answer = made.post("priorities/counts", about_nodes(WEB, [CALM]))
    assert by_host(answer) == {"calm": 0}


def test_nodes_that_were_sent_once_are_forgotten() -> None:
    made = make("safe", cached=False)
    for number in range(1200):
        made.post(FILTER, about_nodes(WEB, [with_free(f"n{number}", 2000)]))
    assert made.extender._sent.cluster.node_count < 1100


def test_a_small_request_after_a_large_one_forgets_nothing() -> None:
    made = make("safe", cached=False)
    many = [with_free(f"n{number}", 2000) for number in range(1200)]
    made.post(FILTER, about_nodes(WEB, many))
    made.post(PRIORITIES, about_nodes(WEB, many[:2]))
    assert made.extender._sent.cluster.node_count == 1200
