"""The queries to Prometheus, other servers that may answer instead, and the node that a label refers to."""

import pytest
from aiohttp import web
from tests.measure.nodeload import addressed
from tests.measure.weblistener import listening

from longshore.cluster.measures import Measured
from longshore.config import MeasurementSettings
from longshore.measure.node_names import NodeNames, without_port
from longshore.measure.prometheus import Prometheus, Series
from longshore.measure.promql import queries
from longshore.measure.providers import ProviderFailed
from longshore.testing import node

SETTINGS = MeasurementSettings(provider="prometheus", address="http://127.0.0.1:9")


def test_the_queries_follow_window_and_label() -> None:
    asked = {query.measure: query for query in queries(MeasurementSettings(window=60.0, node_label="node"))}
    assert asked.keys() == {"cpu/mean", "cpu/std", "memory/mean", "memory/std"}
    assert asked["cpu/std"].value == (
        "max by (node) (stddev_over_time((sum without (cpu, mode) (rate(node_cpu_seconds_total"
        '{mode!~"idle|iowait|steal"}[8s])) * 1000)[60s:2s]))'
    )
    assert asked["memory/mean"].time == (
        "max by (node) (timestamp(node_memory_MemAvailable_bytes) "
        "or max_over_time(timestamp(node_memory_MemAvailable_bytes)[60s:2s]))"
    )


def test_a_measure_that_is_asked_for_with_an_empty_text_is_left_out() -> None:
    asked = queries(MeasurementSettings(queries={"cpu/std": "", "congestion": "queue_length"}))
    assert [query.measure for query in asked] == ["cpu/mean", "memory/mean", "memory/std", "congestion"]


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (502, "<html>\n<h1>Bad Gateway</h1></html>", "answered 502: <html> <h1>Bad Gateway</h1></html>"),
        (200, "<html>a login page</html>", "answered 200: <html>a login page</html>"),
        (200, "", "answered 200: no reason given"),
        (200, '{"status": 3}', 'answered 200: {"status": 3}'),
        (503, '{"status":"error","error":"query timed out"}', "answered 503: query timed out"),
        (
            200,
            '{"status":"success","data":{"resultType":"matrix"}}',
            "the query returned matrix, but must return",
        ),
        (
            200,
            '{"status":"success","data":{"resultType":"vector","result":[{"value":["x",1]}]}}',
            "did not answer with a vector: ",
        ),
    ],
)
async def test_answers_that_are_something_else_are_one_line(status: int, body: str, message: str) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(text=body, status=status)

    async with listening(answer) as port:
        provider = Prometheus(MeasurementSettings(provider="prometheus", address=f"http://127.0.0.1:{port}"))
        with pytest.raises(ProviderFailed) as failure:
            await provider.measure([node("a")])
        await provider.close()
    assert message in str(failure.value)
    assert "\n" not in str(failure.value)


async def test_an_answer_without_series_shows_the_query() -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(text='{"status":"success","data":{"resultType":"vector","result":[]}}')

    async with listening(answer) as port:
        provider = Prometheus(MeasurementSettings(provider="prometheus", address=f"http://127.0.0.1:{port}"))
        with pytest.raises(
            ProviderFailed, match=r"^no query returned a series, not even max by \(instance\)"
        ):
            await provider.measure([node("a")])
        await provider.close()


def _found(*series: tuple[str, str, str]) -> dict[str, Measured]:
    """Return the values by node, for series given as label, value and time."""
    values = [Series({"instance": label}, (0.0, value)) for label, value, _ in series]
    times = [Series({"instance": label}, (0.0, at)) for label, _, at in series]
    return Prometheus(SETTINGS)._by_node(values, times, NodeNames(SETTINGS, [node("a")]))


def test_of_two_exporters_of_one_node_the_newer_counts() -> None:
    assert _found(("a:1", "5", "100"), ("a:2", "3", "200")) == {"a": (3.0, 200.0)}


def test_of_two_equally_new_values_the_larger_counts() -> None:
    assert _found(("a:1", "5", "100"), ("a:2", "3", "100")) == {"a": (5.0, 100.0)}


@pytest.mark.parametrize("at", ["NaN", "soon"])
def test_a_value_of_unknown_age_is_left_out(at: str) -> None:
    """Such a value would never expire."""
    assert _found(("a:1", "5", at)) == {}


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("10.0.0.1:9100", "10.0.0.1"),
        ("worker:9100", "worker"),
        ("worker", "worker"),
        ("[fd00::1]:9100", "fd00::1"),
        ("[fd00::1]", "fd00::1"),
        ("fd00::1", "fd00::1"),
        ("", ""),
    ],
)
def test_labels_without_their_port(label: str, name: str) -> None:
    assert without_port(label) == name


def test_a_name_is_no_address() -> None:
    by_address = MeasurementSettings(node_from="internalIP")
    names = NodeNames(by_address, [addressed("a", "10.0.0.1")])
    assert (names.find("10.0.0.1:9100"), names.find("a")) == ("a", None)


def test_a_pattern_that_does_not_match_finds_no_node() -> None:
    names = NodeNames(MeasurementSettings(node_pattern=r"^node/(\w+)$"), [node("a")])
    assert (names.find("node/a"), names.find("a")) == ("a", None)


def test_series_without_the_label_are_reported_with_their_labels() -> None:
    names = NodeNames(MeasurementSettings(node_label="node"), [node("a")])
    assert names.mismatch([{"instance": "x", "job": "y"}]) == (
        "no series has the label node (nodeLabel); found only instance, job"
    )


def test_labels_that_match_no_address_are_reported() -> None:
    settings = MeasurementSettings(node_from="internalIP", node_pattern="(.*):9")
    names = NodeNames(settings, [addressed("a", "10.0.0.1")])
    assert names.mismatch([{"instance": "10.0.0.2:9"}]) == (
        "no series belongs to a node: the label instance is 10.0.0.2:9, with the nodePattern (.*):9, and the "
        "addresses (InternalIP) of nodes are 10.0.0.1; check nodeLabel, nodeFrom and nodePattern"
    )
