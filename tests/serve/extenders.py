"""Extenders in this process, each on its own port, and requests as a kube-scheduler sends them."""

import asyncio
import http.client
import json
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
import uvloop

from longshore.api import Change, Node, Pod
from longshore.engine import Engine
from longshore.serve.extender.agent_choice import choose
from longshore.serve.extender.agent_engine import Arguments, make_agent_engine
from longshore.serve.extender.http_server import MAX_BODY, listening
from longshore.serve.extender.routes import Extender, assemble
from longshore.serve.extender.tls import Certificates

LOOPBACK = "127.0.0.1"

Document = dict[str, Any]


@dataclass
class Made:
    """An extender and the engine behind it. `told` has the agents that could not be used."""

    extender: Extender
    engine: Engine
    told: list[tuple[str, str]]

    def put(self, *things: Node | Pod) -> None:
        for thing in things:
            self.engine.receive(Change(None, thing), now=time.monotonic())

    def post(self, verb: str, said: object) -> tuple[int, Any]:
        """Ask the extender directly, without HTTP and without the wait for an unknown node."""
        body = said if isinstance(said, bytes) else json.dumps(said).encode()
        reply = self.extender.answer("POST", f"/scheduler/{verb}", body)
        if reply.early:
            reply = self.extender.answer("POST", f"/scheduler/{verb}", body, waited=0.1)
        return reply.status, json.loads(reply.body)


def make(
    *agents: str,
    environ: Mapping[str, str] | None = None,
    arguments: Arguments | None = None,
    fine_scores: bool = False,
    cached: bool = True,
    hindrance: str = "",
) -> Made:
    from longshore.agents.annotations import read_load

    told: list[tuple[str, str]] = []
    served = make_agent_engine(
        choose(agents, on_broken=lambda *problem: told.append(problem)),
        environ=environ or {},
        arguments=arguments,
        fine_scores=fine_scores,
        on_broken=lambda *problem: told.append(problem),
    )
    read_load(served.engine.cluster)
    return Made(assemble(served, cached=cached, hindrance=lambda: hindrance), served.engine, told)


def make_fresh(nodes: Sequence[Node]) -> Made:
    made = make("safe")
    made.put(*nodes)
    return made


@contextmanager
def on_a_port(
    extender: Extender,
    *,
    certificates: Certificates | None = None,
    max_body: int = MAX_BODY,
    sweep_seconds: float = 5.0,
) -> Iterator[int]:
    """Serve from a separate thread until the block ends."""
    loop = uvloop.new_event_loop()
    stop = asyncio.Event()
    taken: list[int] = []
    started = threading.Event()

    async def run() -> None:
        async with listening(
            extender.answer,
            port=0,
            address=LOOPBACK,
            certificates=certificates,
            max_body=max_body,
            sweep_seconds=sweep_seconds,
        ) as port:
            taken.append(port)
            started.set()
            await stop.wait()

    def serve_it() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(run())

    thread = threading.Thread(target=serve_it, daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield taken[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)


def request(
    port: int, method: str, path: str, body: bytes = b"", **headers: str
) -> tuple[int, bytes, Mapping[str, str]]:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=30)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}
    finally:
        connection.close()


def post(port: int, verb: str, said: object) -> tuple[int, Any]:
    body = said if isinstance(said, bytes) else json.dumps(said).encode()
    status, answer, _ = request(port, "POST", f"/scheduler/{verb}", body)
    return status, json.loads(answer)


def document(thing: Node | Pod) -> Document:
    found: Document = json.loads(msgspec.json.encode(thing))
    return found


def about_names(pod: Pod, names: Iterable[str]) -> Document:
    return {"Pod": document(pod), "Nodes": None, "NodeNames": list(names)}


def about_nodes(pod: Pod, nodes: Sequence[Node]) -> Document:
    return {
        "Pod": document(pod),
        "Nodes": {"metadata": {}, "items": [document(node) for node in nodes]},
        "NodeNames": None,
    }


def by_host(answer: list[Document]) -> dict[str, int]:
    return {each["Host"]: each["Score"] for each in answer}
