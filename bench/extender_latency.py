"""How long an extender takes to answer the requests that kube-scheduler sends.

There is one connection, which stays open. For each pod there is a filter request with the names of all nodes,
in another order each time, and then a prioritize request with the names of the nodes that passed. The time is
measured from the first byte of a request to the last byte of its answer. Requests are encoded before that,
and answers are checked after it.
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
# kube-scheduler sends the nodes in another order for each pod. Here the list is rotated by this number.
_NEXT = 7
_JSON = {"Content-Type": "application/json"}


class Seconds(NamedTuple):
    """The time of a filter and a prioritize request together, and the number of refused nodes."""

    median: float
    p99: float
    refused: int


def alike(number: int) -> PodBuilder:
    return pod(f"pod-{number}").requests(cpu="100m", memory="128Mi")


def different(number: int) -> PodBuilder:
    """Return pods that all have different requests."""
    return pod(f"pod-{number}").requests(cpu=f"{100 + number}m", memory=f"{100 + number}Mi")


def large(number: int) -> PodBuilder:
    """Return pods that all differ. A third of the nodes with `bench.node_loads` refuse them for their CPU."""
    return pod(f"pod-{number}").requests(cpu="14", memory=f"{100 + number}Mi")


def ask(
    port: int, verb: str, nodes: Sequence[str], pods: Callable[[int], PodBuilder], *, count: int
) -> Seconds:
    """Send the requests. The nodes that pass must be the same for all pods.

    Raises UserError if an answer does not include every node.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
    names = list(nodes)
    taken: list[float] = []
    try:
        # This is known in advance, so that the second request can be encoded before the first is answered.
        left = _left(_post(connection, f"/scheduler/predicates/{verb}", _question(pods(0), names)), names)
        for number in range(WARM_UP + count):
            first = number * _NEXT % len(names)
            asked = names[first:] + names[:first]
            filtering = _question(pods(number), asked)
            ranking = _question(pods(number), [name for name in asked if name in left])
            began = time.perf_counter()
            passed = _post(connection, f"/scheduler/predicates/{verb}", filtering)
            ranked = _post(connection, f"/scheduler/priorities/{verb}", ranking)
            taken.append(time.perf_counter() - began)
            _check(passed, ranked, names, left)
    finally:
        connection.close()
    taken = taken[WARM_UP:]
    p99 = statistics.quantiles(taken, n=100, method="inclusive")[98]
    return Seconds(statistics.median(taken), p99, len(names) - len(left))


def _question(web: PodBuilder, names: Sequence[str]) -> bytes:
    return msgspec.json.encode({"Pod": web, "Nodes": None, "NodeNames": names})


def _post(connection: http.client.HTTPConnection, path: str, body: bytes) -> bytes:
    connection.request("POST", path, body=body, headers=_JSON)
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != 200:
        raise UserError(f"{path} answered {answer.status}: {content[:200].decode(errors='replace')}")
    return content


def _left(passed: bytes, names: Sequence[str]) -> set[str]:
    """Return the nodes that passed the filter. It must give a reason for every other node."""
    filtered: dict[str, Any] = msgspec.json.decode(passed)
    if filtered.get("Error"):
        raise UserError(f"the filter answered an error: {filtered['Error']}")
    rejected = {
        **(filtered.get("FailedNodes") or {}),
        **(filtered.get("FailedAndUnresolvableNodes") or {}),
    }
    left = set(filtered["NodeNames"] or ())
    if left | rejected.keys() != set(names) or left & rejected.keys() or not all(rejected.values()):
        raise UserError("the answer of the filter does not include every node")
    return left


def _check(passed: bytes, ranked: bytes, names: Sequence[str], left: set[str]) -> None:
    if _left(passed, names) != left:
        raise UserError("the filter accepted other nodes than before")
    if {each["Host"] for each in msgspec.json.decode(ranked)} != left:
        raise UserError("the priorities are not for the nodes that passed the filter")
