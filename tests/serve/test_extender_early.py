"""Nodes that kube-scheduler sees before the extender does: the extender waits for them, once and briefly."""

import json
import re
from pathlib import Path

import pytest
from tests.serve.extendernodes import FILTER, PRIORITIES, WEB
from tests.serve.extenders import Made, about_names, by_host, make, on_a_port, request
from tests.serve.rawhttp import HEAD, WHOLE, exchange, names, whole
from tests.serve.wires import connected
from tests.waiting import eventually_async

from longshore.serve.extender.routes import Reply
from longshore.serve.extender.unknown_nodes import UnknownNodes
from longshore.testing import node

COUNTING = """
class Counting:
    name, verb = "Counting", "counting"

    def __init__(self):
        self.asked = 0

    def score(self, state, pod, nodes):
        self.asked += 1
        return 10 * self.asked
"""

EARLY_BODY = json.dumps(about_names(WEB, ["calm", "late"])).encode()
EARLY = whole(EARLY_BODY)


@pytest.fixture
def late(safe: Made, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each answer was early. The watch reports the node `late` right after the first answer."""
    told_of_early: list[bool] = []
    asked = safe.extender.answer

    def answer(method: str, path: str, body: bytes, *, waited: float | None = None) -> Reply:
        reply = asked(method, path, body, waited=waited)
        told_of_early.append(reply.early)
        safe.put(node("late").allocatable(cpu="8", memory="16Gi"))
        return reply

    monkeypatch.setattr(safe.extender, "answer", answer)
    return told_of_early


def test_a_request_waits_for_a_node_that_becomes_known_soon(safe: Made, late: list[bool]) -> None:
    with on_a_port(safe.extender) as port:
        _, body, _ = request(port, "POST", f"/scheduler/{FILTER}", EARLY_BODY)
    assert names(body) == ["calm", "late"]
    assert late == [True, False]


def test_an_entry_with_priorities_alone_waits_as_well(safe: Made, late: list[bool]) -> None:
    with on_a_port(safe.extender) as port:
        _, body, _ = request(port, "POST", f"/scheduler/{PRIORITIES}", EARLY_BODY)
    assert list(by_host(json.loads(body))) == ["calm", "late"]
    assert late == [True, False]


def test_a_node_that_stays_unknown_is_waited_for_once(safe: Made) -> None:
    replies = [safe.extender.answer("POST", f"/scheduler/{FILTER}", EARLY_BODY) for _ in "12"]
    assert [reply.early for reply in replies] == [True, False]


def test_an_agent_is_not_asked_before_the_node_is_known(tmp_path: Path) -> None:
    """An agent that learns from requests would count a second call as a second pod."""
    file = tmp_path / "counting.py"
    file.write_text(COUNTING)
    made = make(str(file))
    made.put(node("calm"))
    replies = [made.extender.answer("POST", "/scheduler/priorities/counting", EARLY_BODY) for _ in "12"]
    assert [reply.early for reply in replies] == [True, False]
    assert by_host(json.loads(replies[1].body)) == {"calm": 1}


def test_a_node_that_was_forgotten_while_it_was_waited_for_is_answered_about(
    safe: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    early = iter([True, False])
    monkeypatch.setattr(UnknownNodes, "worth_waiting_for", lambda *_args, **_time: next(early))
    reply = safe.extender.answer("POST", f"/scheduler/{FILTER}", EARLY_BODY, waited=0.1)
    assert names(reply.body) == ["calm"]


def test_names_are_forgotten_after_a_minute() -> None:
    """The extender waits again for a node that is created again."""
    unknown = UnknownNodes()
    found = [unknown.worth_waiting_for(["late"], now=now) for now in (100.0, 101.0, 159.0, 161.0, 162.0)]
    assert found == [True, False, False, True, False]


def test_no_request_waits_for_the_nodes_of_another_cluster() -> None:
    unknown = UnknownNodes()
    many = [f"n{number}" for number in range(20_000)]
    found = [unknown.worth_waiting_for(some, now=100.0) for some in (many, many, ["another"])]
    assert found == [True, False, False]


def test_no_request_waits_for_an_invalid_node_name() -> None:
    assert not UnknownNodes().worth_waiting_for(["n" * 254], now=100.0)


def test_a_request_that_waited_is_counted_once_and_with_the_wait(safe: Made) -> None:
    with on_a_port(safe.extender) as port:
        request(port, "POST", f"/scheduler/{FILTER}", EARLY_BODY)
        text = request(port, "GET", "/metrics")[1].decode()
    assert f'longshore_extender_requests_total{{code="200",verb="{FILTER}"}} 1.0' in text
    assert f'longshore_extender_nodes_asked_total{{verb="{FILTER}"}} 2.0' in text
    found = re.search(r'longshore_extender_request_duration_seconds_sum{verb="[^"]*"} (\S+)', text)
    assert found is not None
    assert float(found[1]) >= 0.1


# On the connection.


def test_pipelined_requests_are_answered_in_order_with_an_unknown_node(safe: Made) -> None:
    with on_a_port(safe.extender) as port:
        answers = exchange(port, EARLY + WHOLE + EARLY, answers=3)
    assert [names(body) for _, body in answers] == [["calm"]] * 3


@pytest.mark.parametrize(
    ("then", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01", 400),
        (HEAD + b"Content-Length: 99999\r\nExpect: 100-continue\r\n\r\n", 413),
        (whole(b" " * 2000), 413),
    ],
    ids=["garbage", "one that is announced too large", "one that is too large"],
)
def test_what_follows_does_not_undo_the_answer(safe: Made, then: bytes, status: int) -> None:
    with on_a_port(safe.extender, max_body=1500) as port:
        answers = exchange(port, EARLY + then, answers=2)
    assert [found for found, _ in answers] == [200, status]
    assert names(answers[0][1]) == ["calm"]


def test_the_last_request_of_a_connection(safe: Made) -> None:
    last = whole(EARLY_BODY, more=b"Connection: close\r\n")
    with on_a_port(safe.extender) as port:
        [(status, body)] = exchange(port, last + b"and then some")
    assert (status, names(body)) == (200, ["calm"])


async def test_postponed_requests_are_answered_when_the_extender_stops(
    safe: Made,
) -> None:
    connection = connected(safe, early_seconds=60.0)
    connection.data_received(EARLY)
    connection.close()
    assert (connection.wire.statuses, connection.wire.closing) == ([200], True)


async def test_nothing_is_read_while_an_answer_waits_or_while_answers_are_not_read(
    safe: Made,
) -> None:
    connection = connected(safe, early_seconds=0.01)
    wire = connection.wire
    connection.data_received(EARLY)
    assert (wire.reading, wire.statuses) == (False, [])
    connection.pause_writing()
    connection.resume_writing()
    assert not wire.reading, "the answer still waits"
    connection.pause_writing()
    await eventually_async(lambda: wire.statuses, lambda statuses: statuses == [200])
    assert not wire.reading, "the client has not read the answers yet"
    connection.resume_writing()
    assert wire.reading


async def test_a_closed_connection_gets_no_postponed_answer(
    safe: Made,
) -> None:
    closed, later = connected(safe, early_seconds=0.01), connected(safe, early_seconds=0.02)
    for connection in (closed, later):
        connection.data_received(EARLY)
    closed.connection_lost(None)
    await eventually_async(lambda: later.wire.statuses)
    assert closed.wire.statuses == []
