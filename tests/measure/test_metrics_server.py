"""metrics-server under its path of the API server. It is a stub: a real metrics-server needs kubelets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from tests.measure.weblistener import listening

from longshore.dev import ControlPlane
from longshore.kube.client import Client
from longshore.kube.config import Connection, load
from longshore.kube.credentials import Fixed
from longshore.measure.metrics_server import PATH, MetricsServer
from longshore.measure.providers import ProviderFailed
from longshore.testing import node

NODES = [node("a"), node("b")]


def item(name: str, at: str, cpu: str = "", memory: str = "") -> dict[str, Any]:
    usage = {resource: text for resource, text in (("cpu", cpu), ("memory", memory)) if text}
    return {"metadata": {"name": name}, "timestamp": at, "window": "20s", "usage": usage}


class StandIn:
    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []
        self.status = 200

    async def answer(self, request: web.Request) -> web.Response:
        assert request.path == PATH
        if self.status != 200:
            refusal = {"kind": "Status", "code": self.status, "reason": "Any", "message": "the reason"}
            return web.json_response(refusal, status=self.status)
        listed = {"kind": "NodeMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "items": self.items}
        return web.json_response(listed)


@asynccontextmanager
async def provider(stand_in: StandIn, *, window: float = 900.0) -> AsyncIterator[MetricsServer]:
    async with listening(stand_in.answer) as port:
        connection = Connection(server=f"http://127.0.0.1:{port}", credentials=Fixed(None), ssl=None)
        async with Client(connection) as client:
            yield MetricsServer(client, window=window, max_age=300.0)


async def test_quantities_are_read_with_the_time_of_each_node() -> None:
    stand_in = StandIn()
    stand_in.items = [
        item("a", "2026-01-01T00:00:00Z", "123456789n", "1234Ki"),
        item("b", "2026-01-01T00:00:10Z", "2", "1Gi"),
    ]
    async with provider(stand_in) as asked:
        found = await asked.measure(NODES)
    start = 1767225600.0
    assert found["cpu/mean"] == {"a": (124.0, start), "b": (2000.0, start + 10)}
    assert found["memory/mean"] == {"a": (1234 * 1024.0, start), "b": (2.0**30, start + 10)}
    assert "cpu/std" not in found


async def test_mean_deviation_and_percentiles_come_from_earlier_samples() -> None:
    stand_in = StandIn()
    async with provider(stand_in) as asked:
        for second, cpu in ((0, "1"), (15, "3"), (15, "3")):
            stand_in.items = [item("a", f"2026-01-01T00:00:{second:02}Z", cpu)]
            found = await asked.measure(NODES)
    at = 1767225615.0
    assert found == {
        "cpu/mean": {"a": (2000.0, at)},
        "cpu/std": {"a": (pytest.approx(1414.2136), at)},
        "cpu/p50": {"a": (2000.0, at)},
        "cpu/p90": {"a": (2800.0, at)},
        "cpu/p95": {"a": (2900.0, at)},
        "cpu/p99": {"a": (2980.0, at)},
    }


async def test_a_node_that_is_no_longer_measured_keeps_the_time_of_its_last_sample() -> None:
    stand_in = StandIn()
    async with provider(stand_in) as asked:
        stand_in.items = [item("a", "2026-01-01T00:00:00Z", "1")]
        await asked.measure(NODES)
        stand_in.items = []
        found = await asked.measure(NODES)
    assert found["cpu/mean"] == {"a": (1000.0, 1767225600.0)}


@pytest.mark.parametrize(
    "bad",
    [
        item("a", "2026-01-01T00:00:00Z", "-1"),
        item("a", "2026-01-01T00:00:00Z", "lots"),
        item("a", "2026-01-01T00:00:00Z"),
        item("a", "yesterday", "1"),
        item("stranger", "2026-01-01T00:00:00Z", "1"),
        {},
    ],
    ids=["negative", "no quantity", "no usage", "no time", "an unknown node", "nothing"],
)
async def test_unusable_values_are_ignored(bad: dict[str, Any]) -> None:
    stand_in = StandIn()
    stand_in.items = [bad, item("b", "2026-01-01T00:00:00Z", "1")]
    async with provider(stand_in) as asked:
        found = await asked.measure(NODES)
    assert found.keys() == {"cpu/mean", "cpu/p50", "cpu/p90", "cpu/p95", "cpu/p99"}
    assert all(set(by_node) == {"b"} for by_node in found.values())


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (403, "permission to list nodes of metrics.k8s.io is missing: the reason"),
        (503, "metrics-server does not answer the API server: the reason"),
        (500, f"{PATH}: the reason (500 Any)"),
    ],
)
async def test_refusals_are_one_line(status: int, message: str) -> None:
    stand_in = StandIn()
    stand_in.status = status
    async with provider(stand_in) as asked:
        with pytest.raises(ProviderFailed) as failure:
            await asked.measure(NODES)
    assert str(failure.value) == message


async def test_a_cluster_without_metrics_server(control_plane: ControlPlane) -> None:
    """The real API server has no metrics-server to forward the request to."""
    async with Client(load(str(control_plane.kubeconfig))) as client:
        with pytest.raises(ProviderFailed) as failure:
            await MetricsServer(client, window=900.0, max_age=300.0).measure(NODES)
    assert (
        str(failure.value)
        == "the cluster does not have the API metrics.k8s.io/v1beta1: install metrics-server"
    )
