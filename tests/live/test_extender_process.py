"""The process `longshore extender`, which is asked over HTTP about a thousand nodes that it watches."""

import http.client
import json
import os
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.live.stock import Extender, World, among, entry, free_port, loaded
from tests.serve.extenders import about_names, post, request

from longshore.serve.extender.refusals import UNKNOWN_NODE
from longshore.testing import PodBuilder, pod

pytestmark = pytest.mark.control_plane

FILTER, PRIORITIES = "predicates/safe-overload", "priorities/safe-overload"
# From overloaded to idle.
NODES = [loaded(f"n{number}", (6 * number, 300), (8, 1)) for number in range(1000)]
NAMES = [each.metadata.name for each in NODES]
IDLE = NAMES[-1]
QUESTIONS = 200
# For filter and prioritize of one pod.
TARGET_SECONDS = 0.050


@pytest.fixture(scope="module")
def world(stock_cluster: World) -> Iterator[World]:
    with stock_cluster.having(*NODES) as made:
        yield made


@pytest.fixture(scope="module")
def extender(world: World) -> Iterator[Extender]:
    with world.extender("safe") as found:
        yield found
        assert found.stop() == 0


def asking(number: int) -> PodBuilder:
    """Return a pod with requests that no other pod has."""
    return pod(f"web-{number}").requests(cpu=f"{100 + 5 * number}m", memory="1Gi")


def test_filter_and_priorities_of_a_thousand_nodes_take_little_processor_time(extender: Extender) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", extender.port, timeout=60)

    def asked(verb: str, said: Any) -> Any:
        connection.request("POST", f"/scheduler/{verb}", json.dumps(said).encode())
        return json.loads(connection.getresponse().read())

    before = processor_seconds(extender.process.pid)
    for number in range(QUESTIONS):
        web = asking(number)
        left = asked(FILTER, about_names(web, NAMES))
        scores = asked(PRIORITIES, about_names(web, left["NodeNames"]))
        assert len(NAMES) > len(left["NodeNames"]) == len(scores) > 0
    connection.close()
    assert (processor_seconds(extender.process.pid) - before) / QUESTIONS < TARGET_SECONDS


def processor_seconds(pid: int) -> float:
    """Return the processor time that a process has used, on which other programs have little influence."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_many_questions_at_once_are_answered_as_one_after_the_other(extender: Extender) -> None:
    rng = random.Random(7)
    verbs = (FILTER, PRIORITIES, "priorities/safe-balance")
    asked = [
        (rng.choice(verbs), about_names(asking(number), rng.sample(NAMES, 40))) for number in range(QUESTIONS)
    ]
    with ThreadPoolExecutor(QUESTIONS) as pool:
        sequential = [post(extender.port, *question) for question in asked]
        together = list(pool.map(lambda question: post(extender.port, *question), asked))
    assert {status for status, _ in sequential} == {200}
    assert together == sequential


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"Pod": 7, "NodeNames": []}', b'{"Pod": {}}', b"\xff"])
def test_a_request_unlike_those_of_kube_scheduler_is_refused_in_one_line(
    extender: Extender, body: bytes
) -> None:
    for verb in (FILTER, PRIORITIES):
        status, answer = post(extender.port, verb, body)
        assert (status, list(answer)) == (400, ["Error"])
        assert "\n" not in answer["Error"]
    assert request(extender.port, "GET", "/healthz")[0] == 200
    assert post(extender.port, FILTER, about_names(asking(0), [IDLE]))[1]["NodeNames"] == [IDLE]


def test_a_node_that_is_not_there_has_its_reason_and_no_place_in_the_answer(extender: Extender) -> None:
    asked = about_names(asking(0), ["nowhere", IDLE])
    assert post(extender.port, FILTER, asked) == (
        200,
        {
            "Nodes": None,
            "NodeNames": [IDLE],
            "FailedNodes": {},
            "FailedAndUnresolvableNodes": {"nowhere": UNKNOWN_NODE},
            "Error": "",
        },
    )
    status, scores = post(extender.port, PRIORITIES, asked)
    assert (status, [each["Host"] for each in scores]) == (200, [IDLE])


def test_only_names_are_exchanged_with_a_caching_extender(world: World) -> None:
    port = free_port()
    with (
        world.scheduler(entry(port, "safe-overload", filters=True)) as scheduler,
        world.extender("safe", f"--port={port}", "--log-level=TRACE") as extender,
    ):
        nodes = [IDLE, NAMES[-2]]
        assert scheduler.place(among(asking(0), *nodes)).node in nodes
        heard = extender.line("request")
    assert heard is not None
    asked, answered = json.loads(heard["body"]), json.loads(heard["reply"])
    assert (asked["Nodes"], sorted(asked["NodeNames"])) == (None, sorted(nodes))
    assert (answered["Nodes"], sorted(answered["NodeNames"])) == (None, sorted(nodes))


def test_agents_that_were_not_chosen_are_not_there_and_a_broken_one_is_left_out(
    world: World, tmp_path: Path
) -> None:
    broken = tmp_path / "pigeon.py"
    broken.write_text("class Pigeon(\n")
    with world.extender(f"congestion,{broken}") as extender:
        found = {
            verb: post(extender.port, verb, about_names(asking(0), NAMES[:2]))[0]
            for verb in ("priorities/congestion", "priorities/pigeon-holing", FILTER, PRIORITIES)
        }
        told = extender.line("an agent is broken and is left out")
    assert found == {
        "priorities/congestion": 200,
        "priorities/pigeon-holing": 404,
        FILTER: 404,
        PRIORITIES: 404,
    }
    assert told is not None
    assert str(broken) in told["reason"]
