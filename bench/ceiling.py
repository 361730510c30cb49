"""The ceiling: a client that makes the writes of a scheduler, but no decisions.

It writes one bind and one Scheduled event for each pod. All requests are encoded in advance. It also reads a
watch of all pods, without decoding it. It runs as a separate process, as a scheduler does: a contest starts
it with the pods in a file, and ends it.

    python -m bench.ceiling KUBECONFIG PODS --in-flight 48
"""

import argparse
import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import uvloop
from bench.observer import watch_from_now

from longshore.kube.client import Client
from longshore.kube.config import Connection, load
from longshore.kube.pool import Pool
from longshore.kube.recorder import EVENTS
from longshore.kube.resources import PODS

_NAME = "ceiling"
_READ_TIMEOUT = 3600.0
_OPEN_SECONDS = 10.0


class Target(NamedTuple):
    """A pod and the node that it goes to."""

    namespace: str
    name: str
    uid: str
    node: str


def _bind(target: Target) -> tuple[str, bytes]:
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": target.name, "namespace": target.namespace, "uid": target.uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": target.node},
    }
    path = PODS.path(namespace=target.namespace, name=target.name, subresource="binding")
    return path, msgspec.json.encode(body)


def _event(target: Target, number: int) -> tuple[str, bytes]:
    """Return the request for an event with the content of a scheduler's."""
    now = datetime.now(UTC)
    body: dict[str, Any] = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {
            "name": f"{target.name}.{int(now.timestamp() * 1e6):x}.{number:x}",
            "namespace": target.namespace,
        },
        "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": _NAME,
        "reportingInstance": f"{_NAME}-{socket.gethostname()}",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": target.namespace,
            "name": target.name,
            "uid": target.uid,
        },
        "note": f"Successfully assigned {target.namespace}/{target.name} to {target.node}",
        "type": "Normal",
    }
    return EVENTS.path(namespace=target.namespace), msgspec.json.encode(body)


async def _write(connection: Connection, targets: list[Target], *, in_flight: int, events: bool) -> None:
    requests = iter(
        [
            [_bind(target), _event(target, number)] if events else [_bind(target)]
            for number, target in enumerate(targets)
        ]
    )
    async with Pool(connection, size=in_flight) as pool:
        # These requests open the connections. The start of a scheduler is not measured either.
        await asyncio.gather(*(pool.send("GET", "/version") for _ in range(in_flight)))

        async def worker(requests: Iterator[list[tuple[str, bytes]]]) -> None:
            for writes in requests:
                for path, body in writes:
                    answer = await pool.send("POST", path, body)
                    if answer.status != 201:
                        raise SystemExit(f"error: {path}: {answer.status} {answer.body.decode()}")

        await asyncio.gather(*(worker(requests) for _ in range(in_flight)))


@asynccontextmanager
async def _open_watch(connection: Connection) -> AsyncIterator[None]:
    async with Client(connection) as client:
        opened = asyncio.Event()

        async def read() -> None:
            while True:  # a busy server can end a watch
                params = await watch_from_now(client, PODS.path())
                async with client.stream(
                    PODS.path(), params=params, accept=PODS.codec.accept_watch, read_timeout=_READ_TIMEOUT
                ) as content:
                    opened.set()
                    while await content.readany():
                        pass

        task = asyncio.create_task(read())
        async with asyncio.timeout(_OPEN_SECONDS):
            await opened.wait()
        yield
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _main(kubeconfig: str, targets: list[Target], *, in_flight: int, events: bool) -> None:
    connection = load(kubeconfig)
    async with _open_watch(connection):
        await _write(connection, targets, in_flight=in_flight, events=events)
        # The contest reads the CPU time and memory of this process before it ends it.
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kubeconfig")
    parser.add_argument("pods", type=Path)
    parser.add_argument("--in-flight", type=int, required=True)
    parser.add_argument("--binds-only", action="store_true")
    options = parser.parse_args()
    uvloop.run(
        _main(
            options.kubeconfig,
            msgspec.json.decode(options.pods.read_bytes(), type=list[Target]),
            in_flight=options.in_flight,
            events=not options.binds_only,
        )
    )
