"""The client, compared with the official `kubernetes` package and with a bare HTTP client, in one run.

    make bench-client                 everything, about five minutes on two cores
    .venv/bin/python -m bench.client --pods 2000

It measures four values, each with a bar:

  decode   CPU time from bytes to store, official client / ours      at least 20
  list     time from request to store, official client / ours        at least 5
  memory   growth of the process for each pod in the store           at most 4 KiB
  bind     binds per second, through the writer / bare HTTP client   at least 0.9

Both clients read the same 10,000 pods from the same API server. The sides take turns, and the medians are
compared. For binds it is the median of the ratios of all rounds.
"""

import argparse
import asyncio
import gc
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import uvloop
from bench.realistic_pods import pod, running_status

from longshore.api import Change, Pod
from longshore.dev import ControlPlane
from longshore.engine.events import Succeeded
from longshore.kube.client import Client
from longshore.kube.codec import JsonCodec
from longshore.kube.config import Connection, load
from longshore.kube.pool import Pool
from longshore.kube.reflector import Reflector
from longshore.kube.resources import PODS, Resource
from longshore.kube.writer import Patch, Writer

PODS_JSON = Resource(plural="pods", codec=JsonCodec(Pod))
_IN_FLIGHT = 48
_NODES = 100
_BOUND_SHARE = 0.8


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# The pods.


async def _create(connection: Connection, count: int, *, namespace: str) -> list[str]:
    """Create the pods, bind most of them, and return all UIDs, in order."""
    uids = [""] * count
    async with Pool(connection, size=_IN_FLIGHT) as pool:
        writer = Writer(pool, concurrency=_IN_FLIGHT)

        async def one(index: int) -> None:
            body = pod(index)
            name = body["metadata"]["name"]
            made = json.loads(await writer.create(PODS, namespace, body))
            uids[index] = made["metadata"]["uid"]
            if index % 10 < _BOUND_SHARE * 10:
                await writer.bind(namespace, name, uids[index], f"node-{index % _NODES}")
                status = running_status(index)
                await writer.patch(PODS, namespace, name, status, kind=Patch.STRATEGIC, subresource="status")

        for start in range(0, count, 1000):
            await asyncio.gather(*(one(index) for index in range(start, min(start + 1000, count))))
            _note(f"  {min(start + 1000, count)} of {count} pods")
    return uids


async def _pages(connection: Connection, resource: Resource[Pod], limit: int = 500) -> list[bytes]:
    bodies = []
    params = {"limit": str(limit)}
    async with Client(connection) as client:
        while True:
            body = await client.request(
                "GET", resource.path(), params=params, accept=resource.codec.accept_list
            )
            bodies.append(body)
            token = resource.codec.page(body).continue_token
            if not token:
                return bodies
            params["continue"] = token


# Decoding.


def _ours(bodies: list[bytes], resource: Resource[Pod]) -> dict[str, Pod]:
    store: dict[str, Pod] = {}
    for body in bodies:
        for item in resource.codec.page(body).items:
            store[item.key] = item
    return store


def _official(bodies: list[bytes]) -> dict[tuple[str, str], object]:
    from kubernetes.client import ApiClient

    client = ApiClient()
    store = {}
    for body in bodies:
        for item in client.deserialize(body.decode(), "V1PodList", "application/json").items:
            store[item.metadata.namespace, item.metadata.name] = item
    return store


def _cpu(work: Callable[[], object]) -> float:
    gc.collect()
    started = time.process_time()
    result = work()
    spent = time.process_time() - started
    del result
    return spent


def _bench_decode(json_bodies: list[bytes], pb_bodies: list[bytes], rounds: int) -> float:
    official, ours, ours_json = [], [], []
    for _ in range(rounds):
        official.append(_cpu(lambda: _official(json_bodies)))
        ours.append(_cpu(lambda: _ours(pb_bodies, PODS)))
        ours_json.append(_cpu(lambda: _ours(json_bodies, PODS_JSON)))
    o, p, j = map(statistics.median, (official, ours, ours_json))
    print(f"  official client, JSON      {o * 1e3:8.0f} ms   {_spread(official, 1e3)}")
    print(f"  longshore, protobuf        {p * 1e3:8.0f} ms   {_spread(ours, 1e3)}")
    print(f"  longshore, JSON            {j * 1e3:8.0f} ms   {_spread(ours_json, 1e3)}   {o / j:.1f} times")
    return o / p


# Listing.


async def _list_ours(connection: Connection) -> int:
    async with Client(connection) as client:
        reflector = Reflector(client, PODS, _ignore)
        task = asyncio.create_task(reflector.run())
        await reflector.synced.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return len(reflector.store)


def _ignore(change: Change[Pod]) -> None:
    del change


def _list_official(kubeconfig: Path) -> int:
    from kubernetes import client, config

    config.load_kube_config(str(kubeconfig))
    items = client.CoreV1Api().list_pod_for_all_namespaces().items
    return len({(item.metadata.namespace, item.metadata.name): item for item in items})


def _bench_list(kubeconfig: Path, rounds: int) -> float:
    official, ours = [], []
    for _ in range(rounds):
        started = time.perf_counter()
        theirs = _list_official(kubeconfig)
        official.append(time.perf_counter() - started)
        started = time.perf_counter()
        own = uvloop.run(_list_ours(load(kubeconfig)))
        ours.append(time.perf_counter() - started)
        if theirs != own:
            raise SystemExit(f"the official client lists {theirs} pods, ours {own}")
    o, m = statistics.median(official), statistics.median(ours)
    print(f"  official client            {o:8.2f} s    {_spread(official)}")
    print(f"  longshore                  {m:8.2f} s    {_spread(ours)}")
    return o / m


# Memory: a separate process reads the pods, so that nothing else is counted.

_MEMORY_PROBE = """
import gc, sys, pathlib
from longshore.kube.resources import PODS
def resident():
    gc.collect()
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096
files = sorted(pathlib.Path(sys.argv[1]).iterdir())
before = resident()
store = {}
for file in files:
    store.update((pod.key, pod) for pod in PODS.codec.page(file.read_bytes()).items)
print((resident() - before) / len(store))
"""


def _bench_memory(bodies: list[bytes]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        for number, body in enumerate(bodies):
            (Path(folder) / f"{number:05d}").write_bytes(body)
        command = [sys.executable, "-c", _MEMORY_PROBE, folder]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


# Binding.


async def _bind_through_writer(connection: Connection, targets: list[tuple[str, str]]) -> None:
    async with Pool(connection, size=_IN_FLIGHT) as pool:
        writer = Writer(pool, concurrency=_IN_FLIGHT)

        async def one(name: str, uid: str) -> None:
            outcome = await writer.bind("default", name, uid, "node-0")
            if not isinstance(outcome, Succeeded):
                raise SystemExit(f"{name}: {outcome}")

        await asyncio.gather(*(one(name, uid) for name, uid in targets))


def _binding(name: str, uid: str) -> bytes:
    return (
        f'{{"apiVersion":"v1","kind":"Binding","metadata":{{"name":"{name}","uid":"{uid}"}},'
        f'"target":{{"apiVersion":"v1","kind":"Node","name":"node-0"}}}}'
    ).encode()


async def _bind_bare(connection: Connection, targets: list[tuple[str, str]]) -> None:
    """Send requests that are encoded in advance, over 48 connections, and check only the status codes."""
    requests = iter(
        [(PODS.path(namespace="default", name=n, subresource="binding"), _binding(n, u)) for n, u in targets]
    )
    async with Pool(connection, size=_IN_FLIGHT) as pool:

        async def worker() -> None:
            for target, body in requests:
                answer = await pool.send("POST", target, body)
                if answer.status != 201:
                    raise SystemExit(f"{target}: {answer.status}")

        await asyncio.gather(*(worker() for _ in range(_IN_FLIGHT)))


async def _bind_aiohttp(connection: Connection, targets: list[tuple[str, str]]) -> None:
    requests = iter(
        [(PODS.path(namespace="default", name=n, subresource="binding"), _binding(n, u)) for n, u in targets]
    )
    connector = aiohttp.TCPConnector(limit=_IN_FLIGHT, ssl=connection.ssl or True)
    headers = {"Content-Type": "application/json"}
    authorization = await connection.credentials.authorization()
    if authorization is not None:
        headers["Authorization"] = authorization
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def worker() -> None:
            for target, body in requests:
                async with session.post(connection.server + target, data=body) as answer:
                    await answer.read()
                    if answer.status != 201:
                        raise SystemExit(f"{target}: {answer.status}")

        await asyncio.gather(*(worker() for _ in range(_IN_FLIGHT)))


Binder = Callable[[Connection, list[tuple[str, str]]], Awaitable[None]]


def _bench_bind(kubeconfig: Path, rounds: int, pods: int) -> float:
    """Each side binds new pods in turn. The order rotates, because the server becomes slower as it fills."""
    sides: dict[str, Binder] = {
        "longshore writer": _bind_through_writer,
        "bare pool": _bind_bare,
        "bare aiohttp": _bind_aiohttp,
    }
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for round_ in range(rounds):
        order = list(sides)[round_ % 3 :] + list(sides)[: round_ % 3]
        for name in order:
            targets = asyncio.run(_fresh(load(kubeconfig), pods))
            started = time.perf_counter()
            uvloop.run(sides[name](load(kubeconfig), targets))  # type: ignore[arg-type]
            rates[name].append(pods / (time.perf_counter() - started))
            asyncio.run(_delete(load(kubeconfig), [name for name, _ in targets]))
        _note(f"  round {round_ + 1} of {rounds}")
    for name, seen in rates.items():
        print(f"  {name:<24} {statistics.median(seen):8.0f} binds/s   {_spread(seen)}")
    bare = max(("bare pool", "bare aiohttp"), key=lambda name: statistics.median(rates[name]))
    # The ratio of each round: the server's speed changes more between rounds than within one.
    return statistics.median(
        ours / theirs for ours, theirs in zip(rates["longshore writer"], rates[bare], strict=True)
    )


_made = 0


async def _fresh(connection: Connection, count: int) -> list[tuple[str, str]]:
    global _made
    spec = {
        "schedulerName": "none",
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "c", "image": "i"}],
    }
    async with Pool(connection, size=_IN_FLIGHT) as pool:
        writer = Writer(pool, concurrency=_IN_FLIGHT)

        async def one(number: int) -> tuple[str, str]:
            body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"bind-{number}"}, "spec": spec}
            made = json.loads(await writer.create(PODS, "default", body))
            return made["metadata"]["name"], made["metadata"]["uid"]

        first, _made = _made, _made + count
        return await asyncio.gather(*(one(number) for number in range(first, first + count)))


async def _delete(connection: Connection, names: list[str]) -> None:
    async with Pool(connection, size=_IN_FLIGHT) as pool:
        writer = Writer(pool, concurrency=_IN_FLIGHT)
        await asyncio.gather(*(writer.delete(PODS, "default", name) for name in names))


def _spread(seen: list[float], scale: float = 1.0) -> str:
    return f"({min(seen) * scale:.4g} to {max(seen) * scale:.4g})"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pods", type=int, default=10_000, help="pods to decode and to list")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of decoding, listing and binding")
    parser.add_argument("--binds", type=int, default=2000, help="pods bound by each side in a round")
    options = parser.parse_args()

    with ControlPlane.start(nodes=_NODES, kwok=False) as plane:
        _note(f"creating {options.pods} pods on {plane.server}")
        plane.kubectl("create", "namespace", "bench")
        _wait_for_service_account(plane, "bench")
        _wait_for_service_account(plane, "default")
        connection = load(plane.kubeconfig)
        uvloop.run(_create(connection, options.pods, namespace="bench"))
        json_bodies = uvloop.run(_pages(connection, PODS_JSON))
        pb_bodies = uvloop.run(_pages(connection, PODS))
        size, pb_size = (sum(map(len, bodies)) / options.pods for bodies in (json_bodies, pb_bodies))
        print(f"{options.pods} pods, {size:.0f} bytes of JSON each, {pb_size:.0f} of protobuf")
        print("\ndecode, CPU time from bytes to store")
        decode = _bench_decode(json_bodies, pb_bodies, options.rounds)
        print("\nlist, time from request to store")
        listed = _bench_list(plane.kubeconfig, options.rounds)
        memory = _bench_memory(pb_bodies)
        print(f"\nbind, {_IN_FLIGHT} in flight, {options.binds} pods a round")
        bind = _bench_bind(plane.kubeconfig, options.rounds, options.binds)
    results = [
        ("decode: official / longshore", decode, ">=", 20.0, "times"),
        ("list:   official / longshore", listed, ">=", 5.0, "times"),
        ("memory of a pod in the store", memory / 1024, "<=", 4.0, "KiB"),
        ("bind:   longshore / bare", bind, ">=", 0.9, ""),
    ]
    print()
    missed = False
    for name, value, sense, bar, unit in results:
        good = value >= bar if sense == ">=" else value <= bar
        missed = missed or not good
        print(f"{name:<30} = {value:6.2f} {unit:<6} (bar {sense} {bar:g}{'' if good else ', MISSED'})")
    sys.exit(1 if missed else 0)


def _wait_for_service_account(plane: ControlPlane, namespace: str) -> None:
    deadline = time.monotonic() + 30
    while "default" not in plane.kubectl("get", "serviceaccounts", "-n", namespace, "-o", "name"):
        if time.monotonic() > deadline:
            raise SystemExit("the default service account was not created")
        time.sleep(0.2)


if __name__ == "__main__":
    main()
