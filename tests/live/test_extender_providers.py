"""`longshore extender` with load-watcher and with metrics-server, behind a stock kube-scheduler."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from tests.live.stock import MANIFEST, World, among, loaded
from tests.measure.test_load_watcher import metric
from tests.measure.weblistener import listening
from tests.serve.extenders import about_names
from tests.waiting import eventually

from longshore.agents.safe import REASON_RISK
from longshore.measure.metrics_server import PATH
from longshore.testing import PodBuilder

pytestmark = pytest.mark.control_plane

CALM, WARM, BUSY = "calm", "warm", "busy"
CPU_RISK = REASON_RISK.format(utilization=90, resource="cpu", percentile=30)
APPROVED = {"api-approved.kubernetes.io": "unapproved, for tests"}
KINDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="module")
def world(stock_cluster: World) -> Iterator[World]:
    """Nodes of 8 cores without annotations about their load."""
    nodes = [loaded(name).capacity(cpu="8", memory="16Gi") for name in (CALM, WARM, BUSY)]
    with stock_cluster.having(*nodes) as made:
        yield made


def small(world: World) -> PodBuilder:
    return world.named("web").requests(cpu="500m")


def _measurements(folder: Path, **said: str) -> str:
    file = folder / "measurements.yaml"
    # The pods of these tests are not measured, and must not count.
    file.write_text(yaml.safe_dump(said | {"settle": "0s"}))
    return f"--measurements={file}"


async def test_by_what_load_watcher_says(world: World, tmp_path: Path) -> None:
    """The load-watcher is a stub. In the spec, a mean of 70 % and a deviation of 6.25 % score 8 of 10."""
    loads = {CALM: (10, 5), WARM: (70, 6.25), BUSY: (95, 2)}
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        nodes = {
            name: {"metrics": [metric("CPU", "AVG", mean), metric("CPU", "STD", deviation)]}
            for name, (mean, deviation) in loads.items()
        }
        now = int(time.time())
        window = {"duration": "15m", "start": now - 900, "end": now}
        return web.json_response(
            {"timestamp": now, "window": window, "source": "any", "data": {"NodeMetricsMap": nodes}}
        )

    def place(address: str) -> None:
        measurements = _measurements(tmp_path, provider="load-watcher", address=address)
        with world.behind("safe", "safe-overload", measurements) as scheduler:
            every = among(small(world), *loads)
            assert scheduler.place(every).node == CALM
            assert scheduler.extender_scores(every) == {CALM: 10, WARM: 8}
            assert f"1 {CPU_RISK}" in scheduler.place(among(small(world), BUSY)).message

    async with listening(answer) as port:
        await asyncio.to_thread(place, f"http://127.0.0.1:{port}")
    assert set(asked) == {"/watcher"}


def _definition() -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "nodes.metrics.k8s.io", "annotations": APPROVED},
        "spec": {
            "group": "metrics.k8s.io",
            "scope": "Cluster",
            "names": {"plural": "nodes", "kind": "NodeMetrics"},
            "versions": [version],
        },
    }


def _usage(cpu: str, *, ago: float = 0.0) -> dict[str, Any]:
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - ago))
    return {"timestamp": at, "window": "20s", "usage": {"cpu": cpu, "memory": "1Gi"}}


@pytest.fixture
def measured(world: World) -> Iterator[World]:
    """The API server serves the path of metrics-server, without objects yet."""
    world.api.request("POST", KINDS, _definition())
    eventually(lambda: _is_served(world), what="serving node metrics")
    yield world
    world.api.request("DELETE", f"{KINDS}/nodes.metrics.k8s.io")


def _is_served(world: World) -> bool:
    found = world.api.request("GET", f"{KINDS}/nodes.metrics.k8s.io")["status"]["conditions"] or ()
    conditions = {each["type"]: each["status"] for each in found}
    return conditions.get("Established") == "True"


@pytest.fixture
def allowed(world: World) -> Iterator[None]:
    """The right for this provider, which is a comment in the manifest."""
    said = MANIFEST.read_text()
    lines = ("- apiGroups: [metrics.k8s.io]", "  resources: [nodes]", "  verbs: [list]")
    before, after = ("\n".join(start + line for line in lines) for start in ("  # ", "  "))
    assert said.count(before) == 1
    world.plane.apply(said.replace(before, after))
    yield
    world.plane.apply(MANIFEST)


@pytest.mark.usefixtures("allowed")
def test_by_what_metrics_server_says(measured: World, tmp_path: Path) -> None:
    """The API server is real and serves its path from objects of the test, by a CustomResourceDefinition.

    What is not there is metrics-server itself, which would need kubelets to ask.
    """
    world = measured
    # Each at another time, and the first of the busy node falls out of the window when the next one comes.
    used = {CALM: _usage("800m"), WARM: _usage("5600m", ago=5), BUSY: _usage("7600000000n", ago=60)}
    head = {"apiVersion": "metrics.k8s.io/v1beta1", "kind": "NodeMetrics"}
    for name, said in used.items():
        world.api.request("POST", PATH, head | {"metadata": {"name": name}} | said)
    measurements = _measurements(tmp_path, provider="metrics-server", interval="500ms", window="30s")
    with (
        world.extender("safe", measurements) as extender,
        world.scheduler(extender.entry("safe-overload", filters=True)) as scheduler,
    ):
        scores = extender.post("priorities/safe-balance", about_names(small(world), list(used)))
        # Half of the share that is used with the pod is the risk: of 1300, 6100 and all 8000.
        assert {each["Host"]: each["Score"] for each in scores} == {CALM: 9, WARM: 6, BUSY: 5}
        assert f"1 {CPU_RISK}" in scheduler.place(among(small(world), BUSY)).message
        assert scheduler.place(among(small(world), BUSY, WARM)).node == WARM

        world.api.request("PATCH", f"{PATH}/{BUSY}", _usage("1"))
        eventually(
            lambda: extender.post("predicates/safe-overload", about_names(small(world), [BUSY])),
            lambda answer: answer["NodeNames"],
        )
        # A new one: nothing tells kube-scheduler to try the other again.
        assert scheduler.place(among(small(world), BUSY)).node == BUSY
