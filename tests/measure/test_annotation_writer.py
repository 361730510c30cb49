"""Passes over the nodes of the real control plane, with measurements from the test."""

import asyncio
import json
import re
import secrets
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.live.pods import create, manifest, pods, wait_until_running

from longshore.agents.annotations import ALLOCATED_AT
from longshore.api import Node
from longshore.api.timestamps import parse_timestamp
from longshore.cluster.measures import Measured
from longshore.dev import ControlPlane
from longshore.errors import UserError
from longshore.kube import Client, load
from longshore.measure.annotation_writer import Annotator, Pass
from longshore.measure.providers import ProviderFailed

LIST_NODES = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}
PATCH_NODES = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["patch"]}
LOAD = {"cpu/mean": 2000.0, "cpu/std": 0.0, "memory/mean": 8.0 * 2**30, "memory/std": 2.0**30}


class ByHand:
    """A provider that reports the same load for every node, or fails."""

    def __init__(self, load: Mapping[str, float], *, age: float = 0.0) -> None:
        self.load, self.age = load, age
        self.failure: Exception | None = None

    async def measure(self, nodes: Sequence[Node]) -> dict[str, dict[str, Measured]]:
        if self.failure is not None:
            raise self.failure
        at = time.time() - self.age
        return {name: {n.metadata.name: (value, at) for n in nodes} for name, value in self.load.items()}

    async def close(self) -> None: ...


class Counting(Client):
    """A writer that counts patches."""

    def __init__(self, kubeconfig: Path) -> None:
        super().__init__(load(kubeconfig))
        self.patched: list[str] = []

    async def request(self, method: str, path: str, **more: Any) -> bytes:
        if method == "PATCH":
            self.patched.append(path.rpartition("/")[2])
        return await super().request(method, path, **more)


@pytest.fixture
def nodes(control_plane: ControlPlane) -> Iterator[list[str]]:
    """Two nodes of 8 cores and 32 GiB with a label that no other node has."""
    label = f"annotated-{secrets.token_hex(3)}"
    names = control_plane.add_nodes(2, prefix=f"{label}-", labels={"set": label})
    yield names
    control_plane.kubectl("delete", "node", *names)


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[Counting]:
    async with Counting(control_plane.kubeconfig) as made:
        yield made


def annotator(client: Client, nodes: list[str], provider: ByHand | None = None, **more: Any) -> Annotator:
    label = nodes[0].rpartition("-")[0]
    options: dict[str, Any] = {"allocation": False, "max_age": 300.0} | more
    return Annotator(client=client, provider=provider, selector=f"set={label}", **options)


def written(plane: ControlPlane, node: str) -> dict[str, str]:
    """Return the annotations of the node that Longshore writes."""
    found = json.loads(plane.kubectl("get", "node", node, "-o", "json"))["metadata"]["annotations"]
    return {key: text for key, text in found.items() if re.search("free-|requested-|allocated-", key)}


async def test_a_pass_writes_the_load_of_each_node(
    control_plane: ControlPlane, client: Counting, nodes: list[str]
) -> None:
    done = await annotator(client, nodes, ByHand(LOAD)).once()
    assert [node.name for node in done.nodes] == nodes
    assert sorted(client.patched) == nodes
    for name in nodes:
        assert written(control_plane, name) == {
            "mean-free-cpu": "6000",
            "std-free-cpu": "0",
            "mean-free-memory": str(24 * 2**30),
            "std-free-memory": str(2**30),
        }


async def test_a_second_pass_writes_only_what_changed(client: Counting, nodes: list[str]) -> None:
    provider = ByHand(LOAD)
    await annotator(client, nodes, provider).once()
    provider.load = LOAD | {"cpu/mean": 3000.0}
    done = await annotator(client, nodes, provider).once()
    assert [set(node.set) for node in done.nodes] == [{"mean-free-cpu", "longshore.dev/measured-at"}] * 2


async def test_allocation_counts_bound_pods_that_do_not_run(
    control_plane: ControlPlane, client: Counting, nodes: list[str], namespace: str
) -> None:
    pod = manifest("waits", cpu="250m")
    pod["spec"]["nodeName"] = nodes[0]
    pod["spec"]["containers"][0]["resources"]["requests"]["memory"] = "1.5Gi"
    create(control_plane, namespace, pod)
    # KWOK sets it to Ready immediately, and does not change it afterwards.
    wait_until_running(control_plane, namespace, 1)
    pending = ("--subresource=status", "--type=merge", "-p", '{"status": {"phase": "Pending"}}')
    control_plane.kubectl("patch", "pod", "waits", "-n", namespace, *pending)
    await annotator(client, nodes, allocation=True).once()
    assert pods(control_plane, namespace)["waits"]["status"]["phase"] == "Pending"
    found = written(control_plane, nodes[0])
    assert (found["requested-cpu"], found["requested-memory"]) == ("250", "1610612736")
    assert (found["requested-pods"], found["free-pods"]) == ("1", "109")
    assert time.time() - parse_timestamp(found[ALLOCATED_AT]) < 60
    assert written(control_plane, nodes[1])["free-cpu"] == "8000"


async def test_nothing_is_written_if_nothing_changed(client: Counting, nodes: list[str]) -> None:
    await annotator(client, nodes, allocation=True).once()
    client.patched.clear()
    done = await annotator(client, nodes, allocation=True).once()
    assert (client.patched, done.nodes, done.unchanged) == ([], (), 2)


@pytest.mark.parametrize(
    ("failure", "problem"),
    [
        (ProviderFailed("Prometheus does not answer"), "Prometheus does not answer"),
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
    ],
    ids=["expected", "unexpected"],
)
async def test_a_provider_that_fails_leaves_values_until_they_are_too_old(
    control_plane: ControlPlane, client: Counting, nodes: list[str], failure: Exception, problem: str
) -> None:
    provider = ByHand(LOAD, age=200.0)
    await annotator(client, nodes, provider).once()
    provider.failure = failure
    done = await annotator(client, nodes, provider).once()
    assert (done.problem, done.nodes, done.unmeasured) == (problem, (), 2)
    await annotator(client, nodes, provider, max_age=100.0).once()
    assert [written(control_plane, name) for name in nodes] == [{}, {}]


async def test_a_node_that_cannot_be_written_does_not_stop_the_others(
    control_plane: ControlPlane, nodes: list[str], namespace: str
) -> None:
    rules = [LIST_NODES, PATCH_NODES | {"resourceNames": nodes[1:]}]
    caller = control_plane.service_account("one-node", namespace=namespace, rules=rules)
    async with Counting(caller) as client:
        done = await annotator(client, nodes, ByHand(LOAD)).once()
    assert [node.name for node in done.failed] == nodes[:1]
    assert "you need permission to patch nodes" in done.failed[0].error
    assert written(control_plane, nodes[0]) == {}
    assert written(control_plane, nodes[1])["mean-free-cpu"] == "6000"


async def test_a_dry_run_changes_nothing(
    control_plane: ControlPlane, client: Counting, nodes: list[str]
) -> None:
    done = await annotator(client, nodes, ByHand(LOAD), dry_run=True).once()
    assert [node.set["mean-free-cpu"] for node in done.nodes] == ["6000", "6000"]
    assert written(control_plane, nodes[0]) == {}


async def test_an_invalid_selector_is_an_error(client: Counting) -> None:
    wrong = Annotator(client=client, provider=None, allocation=True, max_age=300.0, selector="a=b=c")
    with pytest.raises(UserError, match="the API server refused to list nodes"):
        await wrong.once()


async def test_passes_begin_within_the_interval_and_not_in_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values expire soon after that."""
    pauses: list[float] = []

    async def rest(stop: asyncio.Event, seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 40:
            stop.set()

    async def once(self: Annotator) -> Pass:
        return Pass(nodes=(), unchanged=0, unmeasured=0, began=0.0, seconds=0.0)

    monkeypatch.setattr("longshore.measure.annotation_writer.sleep_unless", rest)
    monkeypatch.setattr(Annotator, "once", once)
    alone = Annotator(client=None, provider=None, allocation=True, max_age=300.0)  # type: ignore[arg-type]
    await alone.run(asyncio.Event(), interval=299.0, on_pass=lambda _done: None)
    assert all(260.0 < seconds <= 299.0 for seconds in pauses)
    assert len(set(pauses)) == 40


async def test_passes_repeat_until_a_signal_stops_them(client: Counting, nodes: list[str]) -> None:
    stop = asyncio.Event()
    passes: list[Pass] = []

    def on_pass(done: Pass) -> None:
        passes.append(done)
        if len(passes) == 3:
            stop.set()

    work = annotator(client, nodes, ByHand(LOAD)).run(stop, interval=0.01, on_pass=on_pass)
    await asyncio.wait_for(work, 20)
    assert len(passes) == 3
