"""Unusual requests: malformed ones, agents that fail, verbs that no agent answers, and many at once."""

import json
import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs
from tests.serve.extendernodes import CALM, FILTER, FULL, PRIORITIES, WEB, with_free
from tests.serve.extenders import (
    Made,
    about_names,
    about_nodes,
    document,
    make,
    make_fresh,
    on_a_port,
    post,
    request,
)

from longshore import __version__
from longshore.serve.extender.routes import NO_BIND, STANDALONE
from longshore.testing import pod


def test_an_agent_that_raises_is_an_error_that_kube_scheduler_shows(file: str) -> None:
    made = make(file)
    made.put(CALM)
    status, answer = made.post("predicates/fails", about_names(WEB, ["calm"]))
    assert (status, answer["NodeNames"]) == (200, None)
    assert answer["Error"] == """running "Fails" filter plugin: RuntimeError('boom')"""


def test_an_agent_that_raises_has_no_priorities(file: str) -> None:
    made = make(file)
    made.put(CALM)
    status, answer = made.post("priorities/fails", about_names(WEB, ["calm"]))
    assert (status, answer) == (500, {"Error": """running Score plugin "Fails": RuntimeError('boom')"""})


@pytest.mark.parametrize("verb", [FILTER, PRIORITIES, "preemption"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"7",
        b'{"Pod": 7, "NodeNames": []}',
        b'{"Pod": {}, "NodeNames": "n1"}',
        b'{"Pod": {}, "Nodes": {"items": [{}]}}',
        b'{"Pod": {}, "Nodes": {"items": 7}}',
        b'{"Pod": null, "NodeNames": []}',
        b'{"Pod": {}}',
        b'{"Pod": {"metadata": {"name": "\xff\xfe"}}, "NodeNames": []}',
        b"[" * 200_000,
        b'{"Pod": ' + b'{"spec": ' * 100_000,
        b'{"Pod": {"metadata": {"labels": ' + b"[" * 900 + b"]" * 900 + b'}}, "NodeNames": []}',
    ],
    ids=lambda body: body[:30],
)
def test_malformed_requests_get_one_line(safe: Made, verb: str, body: bytes) -> None:
    status, answer = safe.post(verb, body)
    assert (status, list(answer)) == (400, ["Error"])
    assert "\n" not in answer["Error"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
PARTS = st.sampled_from(["Pod", "pod", "Nodes", "nodeNames", "NodeNameToVictims", "nodenametometavictims"])


@settings(max_examples=150, deadline=None)
@given(
    said=st.dictionaries(
        PARTS, JSON | st.fixed_dictionaries({"metadata": JSON, "spec": JSON, "items": JSON}), max_size=4
    )
)
def test_any_json_is_answered(said: dict[str, object]) -> None:
    for verb in (FILTER, PRIORITIES, "preemption", "bind"):
        status, _ = SHARED.post(verb, json.dumps(said).encode())
        assert status in (200, 400)


@settings(max_examples=100, deadline=None)
@given(body=st.binary(max_size=200))
def test_any_bytes_are_answered(body: bytes) -> None:
    assert SHARED.post(FILTER, body)[0] in (200, 400)


SHARED = make("safe")


def test_a_null_field_counts_as_absent(safe: Made) -> None:
    said = about_names(WEB, ["calm"])
    said["Pod"]["metadata"]["labels"] = None
    said["Pod"]["spec"]["tolerations"] = None
    assert safe.post(FILTER, said)[1]["NodeNames"] == ["calm"]


def test_names_without_a_cluster_are_answered_with_an_instruction() -> None:
    made = make("safe", cached=False)
    status, answer = made.post(FILTER, about_names(WEB, ["calm"]))
    assert (status, answer["Error"]) == (200, STANDALONE)
    assert made.post(PRIORITIES, about_names(WEB, ["calm"])) == (400, {"Error": STANDALONE})


def test_nodes_as_they_are_need_no_cluster() -> None:
    _, answer = make("safe", cached=False).post(FILTER, about_nodes(WEB, [CALM, FULL]))
    assert [item["metadata"]["name"] for item in answer["Nodes"]["items"]] == ["calm"]


def test_until_the_cache_is_full_no_node_is_refused_for_good() -> None:
    made = make("safe", hindrance="nodes are still being listed")
    status, answer = made.post(FILTER, about_names(WEB, ["calm"]))
    assert (status, answer["FailedNodes"]) == (200, {})
    assert answer["Error"] == "the extender is not ready: nodes are still being listed"
    assert made.post(PRIORITIES, about_names(WEB, ["calm"]))[0] == 503
    assert made.extender.answer("GET", "/readyz", b"").status == 503
    assert made.extender.answer("GET", "/healthz", b"").status == 200


def test_errors_are_counted_for_any_status_and_logged_once() -> None:
    made = make("safe", hindrance="nodes are still being listed")
    with capture_logs() as told:
        for _ in range(3):
            made.post(FILTER, about_names(WEB, ["calm"]))
        made.post(PRIORITIES, about_names(WEB, ["calm"]))
    text = made.extender.answer("GET", "/metrics", b"").body.decode()
    assert f'longshore_extender_errors_total{{verb="{FILTER}"}} 3.0' in text
    assert f'longshore_extender_errors_total{{verb="{PRIORITIES}"}} 1.0' in text
    warnings = [line for line in told if line["log_level"] == "warning"]
    assert [line["reason"] for line in warnings] == ["nodes are still being listed"]


def test_nodes_that_are_sent_wait_for_their_pods_and_measurements() -> None:
    made = make("safe", hindrance="the first measurements have not arrived")
    _, answer = made.post(FILTER, about_nodes(WEB, [CALM]))
    assert answer["Error"] == "the extender is not ready: the first measurements have not arrived"
    assert made.post(PRIORITIES, about_nodes(WEB, [CALM]))[0] == 503


def test_bind_is_refused_with_what_to_do(safe: Made) -> None:
    assert safe.post("bind", {"PodName": "web"}) == (200, {"Error": NO_BIND})


def test_victims_are_echoed_by_their_uids(safe: Made) -> None:
    victims = [document(pod("a").uid("1")), document(pod("b").uid("2"))]
    said = {"Pod": {}, "NodeNameToVictims": {"n1": {"Pods": victims, "NumPDBViolations": 1}}}
    expected = {"n1": {"Pods": [{"UID": "1"}, {"UID": "2"}], "NumPDBViolations": 1}}
    assert safe.post("preemption", said) == (200, {"NodeNameToMetaVictims": expected})


def test_victims_that_are_named_by_uid_are_echoed(safe: Made) -> None:
    said = {"pod": {}, "nodenametometavictims": {"n1": {"pods": [{"uid": "1"}]}}, "nodeNameToVictims": None}
    expected = {"n1": {"Pods": [{"UID": "1"}], "NumPDBViolations": 0}}
    assert safe.post("preemption", said) == (200, {"NodeNameToMetaVictims": expected})


def test_a_victim_without_uid_is_no_victim(safe: Made) -> None:
    said = {"Pod": {}, "NodeNameToVictims": {"n1": {"Pods": [{"metadata": {"name": "a"}}]}}}
    assert safe.post("preemption", said)[0] == 400


def test_version_and_probes(safe: Made) -> None:
    with on_a_port(safe.extender) as port:
        found = {path: request(port, "GET", path)[:2] for path in ("/version", "/healthz", "/readyz")}
    assert found == {
        "/version": (200, __version__.encode()),
        "/healthz": (200, b"ok"),
        "/readyz": (200, b"ok"),
    }


def test_unknown_paths_and_wrong_methods_are_refused(safe: Made) -> None:
    with on_a_port(safe.extender) as port:
        assert request(port, "POST", "/scheduler/predicates/safe-balance")[0] == 404
        assert request(port, "POST", "/scheduler/priorities/congestion")[0] == 404
        assert request(port, "GET", "/")[0] == 404
        status, _, headers = request(port, "GET", f"/scheduler/{FILTER}")
        assert (status, headers["allow"]) == (405, "POST")
        assert request(port, "POST", "/version")[0] == 405


def test_answers_are_json(safe: Made) -> None:
    with on_a_port(safe.extender) as port:
        body = json.dumps(about_names(WEB, ["calm"])).encode()
        _, _, headers = request(port, "POST", f"/scheduler/{FILTER}?timeout=5s", body)
    assert headers["content-type"] == "application/json"


def test_two_hundred_requests_at_once_are_answered_as_one_after_the_other() -> None:
    nodes = [with_free(f"n{i}", 500 + 30 * i) for i in range(100)]
    made = make("safe")
    made.put(*nodes)
    rng = random.Random(7)
    questions = []
    for number in range(200):
        web = pod(f"web-{number}").requests(cpu=f"{rng.randrange(1, 20) * 50}m")
        some = rng.sample(nodes, 40)
        names = [each.metadata.name for each in some]
        said = about_names(web, names) if number % 2 else about_nodes(web, some)
        questions.append((rng.choice([FILTER, PRIORITIES, "priorities/safe-balance"]), said))
    alone = [make_fresh(nodes).post(*question) for question in questions[:20]]
    with on_a_port(made.extender) as port, ThreadPoolExecutor(200) as pool:
        sequential = [post(port, *question) for question in questions]
        together = list(pool.map(lambda question: post(port, *question), questions))
    assert together == sequential
    assert sequential[:20] == alone
