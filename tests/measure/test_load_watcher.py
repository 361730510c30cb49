"""load-watcher's JSON from a stub: a real load-watcher needs a source of measurements itself."""

from typing import Any

import pytest
from aiohttp import web
from tests.measure.weblistener import listening

from longshore.config import MeasurementSettings
from longshore.measure.load_watcher import LoadWatcher
from longshore.measure.providers import ProviderFailed, Values
from longshore.testing import node

NODES = [
    node("a").capacity(cpu="4", memory="8Gi"),
    node("b").capacity(cpu="2500m", memory="1Gi"),
    node("bare"),
]


def metric(kind: str, operator: str, value: float, rollup: str = "15m") -> dict[str, object]:
    return {"name": "any", "type": kind, "operator": operator, "rollup": rollup, "value": value}


def watched(*metrics: dict[str, object], name: str = "a") -> dict[str, Any]:
    return {
        "timestamp": 1700000060,
        "window": {"duration": "15m", "start": 1699999100, "end": 1700000000},
        "source": "Prometheus",
        "data": {
            "NodeMetricsMap": {name: {"metrics": list(metrics), "tags": {}, "metadata": {"dataCenter": ""}}}
        },
    }


async def measured(said: object, status: int = 200) -> Values:
    async def answer(request: web.Request) -> web.Response:
        assert request.path == "/watcher"
        return web.json_response(said, status=status)

    async with listening(answer) as port:
        provider = LoadWatcher(
            MeasurementSettings(provider="load-watcher", address=f"http://127.0.0.1:{port}")
        )
        try:
            return await provider.measure(NODES)
        finally:
            await provider.close()


async def test_percentages_of_capacity_are_amounts_at_the_end_of_the_window() -> None:
    said = watched(
        metric("CPU", "AVG", 50),
        metric("CPU", "STD", 10),
        metric("Memory", "AVG", 25),
        metric("Memory", "STD", 5),
    )
    at = 1700000000.0
    assert await measured(said) == {
        "cpu/mean": {"a": (2000.0, at)},
        "cpu/std": {"a": (400.0, at)},
        "memory/mean": {"a": (2.0 * 2**30, at)},
        "memory/std": {"a": (pytest.approx(0.4 * 2**30), at)},
    }


async def test_without_a_window_the_values_have_the_time_of_the_answer() -> None:
    said = watched(metric("CPU", "AVG", 50)) | {"window": {}}
    assert await measured(said) == {"cpu/mean": {"a": (2000.0, 1700000060.0)}}


async def test_values_without_any_time_are_refused() -> None:
    said = watched(metric("CPU", "AVG", 50)) | {"window": {}, "timestamp": 0}
    with pytest.raises(ProviderFailed, match="did not report when it measured"):
        await measured(said)


@pytest.mark.parametrize("operator", ["Latest", ""])
async def test_the_latest_value_stands_in_for_the_mean(operator: str) -> None:
    assert await measured(watched(metric("CPU", operator, 30, ""))) == {
        "cpu/mean": {"a": (1200.0, 1700000000.0)}
    }


async def test_the_mean_and_the_longest_window_take_precedence() -> None:
    said = watched(
        metric("CPU", "Latest", 90, ""),
        metric("CPU", "AVG", 10, "5m"),
        metric("CPU", "AVG", 20, "15m"),
        metric("CPU", "AVG", 30, "10m"),
    )
    assert (await measured(said))["cpu/mean"]["a"][0] == 800.0


async def test_other_resources_operators_and_amounts_are_passed_over() -> None:
    said = watched(
        metric("Energy", "AVG", 10),
        metric("CPU", "P50", 10),
        metric("CPU", "AVG", -3),
        metric("CPU", "STD", 5),
    )
    assert (await measured(said)).keys() == {"cpu/std"}


async def test_a_value_above_the_capacity_is_kept() -> None:
    assert (await measured(watched(metric("CPU", "AVG", 10000))))["cpu/mean"]["a"][0] == 400_000.0


async def test_a_node_without_a_capacity_has_no_amounts() -> None:
    said = watched(metric("CPU", "AVG", 50))
    said["data"]["NodeMetricsMap"]["bare"] = {"metrics": [metric("CPU", "AVG", 50)]}
    assert (await measured(said))["cpu/mean"].keys() == {"a"}


async def test_nodes_of_another_cluster_are_reported() -> None:
    with pytest.raises(ProviderFailed, match="knows nodes such as stranger, but no node of this cluster"):
        await measured(watched(metric("CPU", "AVG", 50), name="stranger"))


@pytest.mark.parametrize("said", [[], {"data": 3}, {"timestamp": "now"}, "text"])
async def test_an_answer_in_another_format_is_one_line(said: object) -> None:
    with pytest.raises(
        ProviderFailed, match=r"/watcher did not answer with load-watcher's JSON: "
    ) as failure:
        await measured(said)
    assert "\n" not in str(failure.value)


async def test_an_error_status_is_reported_with_its_reason() -> None:
    with pytest.raises(ProviderFailed, match=r"/watcher answered 404: .*no metrics"):
        await measured({"message": "no metrics"}, status=404)
