"""Measurements from a real Prometheus, for nodes with a known load."""

import statistics
import time
from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs
from tests.measure.nodeload import GIB, TOTAL, Load, addressed, history, node_name, steady

from longshore.api import Node
from longshore.config import MeasurementSettings
from longshore.dev.prometheus import MonitoredNodes
from longshore.measure.prometheus import Prometheus
from longshore.measure.providers import ProviderFailed, Values
from longshore.testing import node

MEASURES = ["cpu/mean", "cpu/std", "memory/mean", "memory/std"]


async def measured(
    prometheus: MonitoredNodes, names: Sequence[str], settings: MeasurementSettings | None = None
) -> Values:
    nodes = [node(name) for name in names]
    settings = replace(settings or MeasurementSettings(), provider="prometheus", address=prometheus.url)
    return await asked(Prometheus(settings), nodes)


async def asked(provider: Prometheus, nodes: Sequence[Node]) -> Values:
    try:
        return await provider.measure(nodes)
    finally:
        await provider.close()


def of(values: Values, name: str) -> dict[str, float]:
    return {measure: by_node[name][0] for measure, by_node in values.items() if name in by_node}


async def test_a_steady_load_has_its_mean_and_no_deviation(prometheus: MonitoredNodes) -> None:
    """The deviation is that of the load, not that of the counter over a quarter of an hour."""
    name = node_name("steady")
    prometheus.put(history(f"{name}:9100", until=time.time(), cores=steady(0.04), memory=steady(3 * GIB)))
    found = of(await measured(prometheus, [name]), name)
    assert found == {
        "cpu/mean": pytest.approx(40, rel=1e-3),
        "cpu/std": pytest.approx(0, abs=0.01),
        "memory/mean": pytest.approx(3 * GIB),
        "memory/std": pytest.approx(0, abs=1),
    }
    counter = f'stddev_over_time(node_cpu_seconds_total{{instance="{name}:9100",mode="user"}}[15m])'
    assert all(float(series["value"][1]) > 1 for series in prometheus.query(counter))


def _expected(load: Load, now: float) -> tuple[float, float]:
    """Mean and deviation of the use over 2 minutes, for each half minute of a quarter of an hour."""
    ends = [end for end in range(int(now) - 900, int(now) + 1) if end % 30 == 0]
    used = [statistics.fmean(load(now - second) for second in range(end - 120, end)) for end in ends]
    return statistics.fmean(used), statistics.pstdev(used)


async def test_a_load_that_varies_has_its_mean_and_its_deviation(prometheus: MonitoredNodes) -> None:
    name = node_name("varying")

    def cores(before: float) -> float:
        return 3.5 if before % 480 < 240 else 0.5

    def memory(before: float) -> float:
        return 12 * GIB if before % 480 < 240 else 2 * GIB

    now = time.time()
    prometheus.put(history(f"{name}:9100", until=now, cores=cores, memory=memory))
    found = of(await measured(prometheus, [name]), name)
    mean, deviation = _expected(cores, now)
    # The ends of a rate fall between two samples.
    assert found["cpu/mean"] == pytest.approx(1000 * mean, rel=0.05)
    assert found["cpu/std"] == pytest.approx(1000 * deviation, rel=0.08)
    samples = [memory(before) for before in range(0, 900, 30)]
    assert found["memory/mean"] == pytest.approx(statistics.fmean(samples), rel=0.05)
    assert found["memory/std"] == pytest.approx(statistics.pstdev(samples), rel=0.05)


async def test_values_have_the_time_of_the_newest_sample(prometheus: MonitoredNodes) -> None:
    """The time is not that of the query, so an exporter that has been silent for ten minutes is noticed."""
    fresh, old = node_name("fresh"), node_name("old")
    now = time.time()
    for name, until in ((fresh, now), (old, now - 600)):
        prometheus.put(history(name, until=until, cores=steady(1), memory=steady(GIB)))
    values = await measured(prometheus, [fresh, old])
    for measure in MEASURES:
        assert values[measure][fresh][1] == pytest.approx(now, abs=1)
        assert values[measure][old][1] == pytest.approx(now - 600, abs=1)


async def test_a_node_without_an_exporter_is_missing_in_the_answer(prometheus: MonitoredNodes) -> None:
    here, missing = node_name("here"), node_name("missing")
    prometheus.put(history(here, until=time.time(), memory=steady(GIB)))
    values = await measured(prometheus, [here, missing])
    assert {name for by_node in values.values() for name in by_node} == {here}


@pytest.mark.parametrize("amount", [float("nan"), float("inf"), -GIB], ids=["nan", "infinite", "negative"])
async def test_a_value_that_is_not_an_amount_is_left_out_and_counted(
    prometheus: MonitoredNodes, amount: float
) -> None:
    bad, good = node_name("bad"), node_name("good")
    now = time.time()
    prometheus.put(history(bad, until=now, cores=steady(1), memory=steady(amount)))
    prometheus.put(history(good, until=now, memory=steady(GIB)))
    provider = Prometheus(MeasurementSettings(provider="prometheus", address=prometheus.url))
    with capture_logs() as told:
        values = await asked(provider, [node(bad), node(good)])
    assert of(values, good)["memory/mean"] == GIB
    assert bad not in values["memory/mean"]
    assert of(values, bad)["cpu/mean"] == pytest.approx(1000, rel=1e-3)
    assert provider.dropped > 0
    assert [line["event"] for line in told] == ["values ignored: not a number, negative, or of unknown age"]


async def test_a_value_a_hundred_times_higher_is_kept(prometheus: MonitoredNodes) -> None:
    name = node_name("spike")

    def memory(before: float) -> float:
        return 100 * TOTAL if before < 60 else GIB

    prometheus.put(history(name, until=time.time(), memory=memory))
    assert of(await measured(prometheus, [name]), name)["memory/mean"] > TOTAL


async def test_nodes_that_are_known_by_their_address(prometheus: MonitoredNodes) -> None:
    prometheus.put(history("10.77.0.1:9100", until=time.time(), memory=steady(GIB)))
    prometheus.put(history("[fd77::2]:9100", until=time.time(), memory=steady(2 * GIB)))
    provider = Prometheus(
        MeasurementSettings(provider="prometheus", address=prometheus.url, node_from="internalIP")
    )
    nodes = [addressed("four", "10.77.0.1"), addressed("six", "10.77.0.2", "fd77::2")]
    values = await asked(provider, nodes)
    assert {name: value for name, (value, _) in values["memory/mean"].items()} == {
        "four": GIB,
        "six": 2 * GIB,
    }


async def test_nodes_that_a_pattern_finds_in_the_label(prometheus: MonitoredNodes) -> None:
    name = node_name("rack")
    prometheus.put(history(f"http://{name}.example.org:9100", until=time.time(), memory=steady(GIB)))
    settings = MeasurementSettings(node_pattern=r"//([^.]+)\.")
    values = await measured(prometheus, [name], settings)
    assert of(values, name)["memory/mean"] == GIB


async def test_a_node_that_two_jobs_scrape_does_not_use_twice_as_much(prometheus: MonitoredNodes) -> None:
    name = node_name("twice")
    now = time.time()
    for job in ("node", "again"):
        prometheus.put(history(name, until=now, cores=steady(1), labels=f',job="{job}"'))
    assert of(await measured(prometheus, [name]), name)["cpu/mean"] == pytest.approx(1000, rel=1e-3)


async def test_labels_that_match_no_node_are_shown_with_the_nodes(prometheus: MonitoredNodes) -> None:
    prometheus.put(history("10.78.0.1:9100", until=time.time(), memory=steady(GIB)))
    settings = MeasurementSettings(
        queries=dict.fromkeys(MEASURES, "")
        | {"memory/mean": 'node_memory_MemTotal_bytes{instance=~"10.78.*"}'}
    )
    with pytest.raises(ProviderFailed) as failure:
        await measured(prometheus, ["worker-1", "worker-2", "worker-3", "worker-4"], settings)
    assert str(failure.value) == (
        "no series belongs to a node: the label instance is 10.78.0.1:9100, and the names of nodes are "
        "worker-1, worker-2, worker-3 and 1 more; check nodeLabel, nodeFrom and nodePattern"
    )


async def test_a_custom_query_has_the_time_of_its_samples(prometheus: MonitoredNodes) -> None:
    """A recording rule has such samples. The result of an expression has the time of the query."""
    name = node_name("own")
    until = time.time() - 200
    prometheus.put(history(name, until=until, memory=steady(GIB)))
    total = f'node_memory_MemTotal_bytes{{instance="{name}"}}'

    async def when(**queries: str) -> float:
        chosen = dict.fromkeys(MEASURES, "")
        chosen |= {key.replace("_", "/"): query for key, query in queries.items()}
        values = await measured(prometheus, [name], MeasurementSettings(queries=chosen))
        return values["memory/mean"][name][1]

    assert await when(memory_mean=total) == pytest.approx(until, abs=0.01)
    assert await when(memory_mean=f"{total} * 2", memory_time=f"timestamp({total})") == pytest.approx(
        until, abs=0.01
    )
    assert await when(memory_mean=f"{total} * 2") == pytest.approx(time.time(), abs=10)


async def test_a_query_that_fails_costs_its_measure_alone(prometheus: MonitoredNodes) -> None:
    name = node_name("partly")
    prometheus.put(history(name, until=time.time(), cores=steady(1), memory=steady(GIB)))
    settings = MeasurementSettings(queries={"cpu/mean": "rate(", "congestion": "scalar(vector(1))"})
    with capture_logs() as told:
        values = await measured(prometheus, [name], settings)
    assert of(values, name).keys() == {"cpu/std", "memory/mean", "memory/std"}
    reasons = [line["reason"] for line in told]
    assert len(reasons) == 2
    assert reasons[0].startswith(f"cpu/mean: {prometheus.url} answered 400: ")
    assert (
        "congestion: the query returned scalar, but must return an instant vector: scalar(vector(1))"
        in reasons
    )
