"""How long an extender takes to answer, asked as kube-scheduler asks it.

One connection that stays open, first the filter and then the priorities of the same pod, by the names of all
nodes, in another order for each pod. What counts is the time from the first byte of a question to the last
byte of its answer; questions are written beforehand, and answers are looked at afterwards.
"""

import http.client
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from longshore.errors import UserError
from longshore.testing import PodBuilder, pod

WARM_UP = 20
_SECONDS = 30.0
# kube-scheduler's threads find nodes in another order for each pod; here the list is turned by so many.
_NEXT = 7
_JSON = {"Content-Type": "application/json"}


class Seconds(NamedTuple):
    """Of a filter and the priorities after it, together."""

    median: float
    p99: float


def alike(number: int) -> PodBuilder:
    return pod(f"pod-{number}").requests(cpu="100m", memory="128Mi")


def different(number: int) -> PodBuilder:
    """No two of them ask for the same."""
    return pod(f"pod-{number}").requests(cpu=f"{100 + number}m", memory=f"{100 + number}Mi")


def ask(
    port: int, verb: str, nodes: Sequence[str], pods: Callable[[int], PodBuilder], *, count: int
) -> Seconds:
    """Raises UserError at an answer that leaves a node out."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
    names = list(nodes)
    taken: list[float] = []
    try:
        for number in range(WARM_UP + count):
            first = number * _NEXT % len(names)
            asked = names[first:] + names[:first]
            body = msgspec.json.encode({"Pod": pods(number), "Nodes": None, "NodeNames": asked})
            began = time.perf_counter()
            passed = _post(connection, f"/scheduler/predicates/{verb}", body)
            ranked = _post(connection, f"/scheduler/priorities/{verb}", body)
            taken.append(time.perf_counter() - began)
            _check(passed, ranked, set(names))
    finally:
        connection.close()
    taken = taken[WARM_UP:]
    return Seconds(statistics.median(taken), statistics.quantiles(taken, n=100, method="inclusive")[98])


def _post(connection: http.client.HTTPConnection, path: str, body: bytes) -> bytes:
    connection.request("POST", path, body=body, headers=_JSON)
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != 200:
        raise UserError(f"{path} answered {answer.status}: {content[:200].decode(errors='replace')}")
    return content


def _check(passed: bytes, ranked: bytes, names: set[str]) -> None:
    """Every node is accepted or rejected with a reason, and every one has a score."""
    filtered: dict[str, Any] = msgspec.json.decode(passed)
    if filtered.get("Error"):
        raise UserError(f"the filter answered an error: {filtered['Error']}")
    rejected = {
        **(filtered.get("FailedNodes") or {}),
        **(filtered.get("FailedAndUnresolvableNodes") or {}),
    }
    if set(filtered["NodeNames"] or ()) | rejected.keys() != names or not all(rejected.values()):
        raise UserError("the filter did not answer for every node")
    if {each["Host"] for each in msgspec.json.decode(ranked)} != names:
        raise UserError("the priorities were not those of every node")
