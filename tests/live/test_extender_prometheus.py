"""`longshore extender` with measurements from a real Prometheus, behind a stock kube-scheduler."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from tests.live.stock import World, among, entry, free_port, loaded, policy
from tests.measure.nodeload import GIB, history, node_name, steady

from longshore.agents.load import REASON_NO_MEASUREMENTS, Missing
from longshore.agents.safe import REASON_RISK
from longshore.dev.prometheus import MonitoredNodes
from longshore.testing import PodBuilder

pytestmark = pytest.mark.control_plane

MEMORY_RISK = REASON_RISK.format(utilization=90, resource="memory", percentile=30)


@dataclass(frozen=True)
class Names:
    """Nodes of 16 GiB: one that uses nearly all, one that uses little, one without recent measurements."""

    busy: str
    calm: str
    silent: str


@pytest.fixture(scope="module")
def names(prometheus: MonitoredNodes) -> Names:
    now = time.time()
    names = Names(node_name("busy"), node_name("calm"), node_name("silent"))
    for name, used, until in (
        (names.busy, 15.5, now),
        (names.calm, 1, now),
        (names.silent, 1, now - 600),
    ):
        load = steady(used * GIB)
        prometheus.put(history(f"{name}:9100", until=until, cores=steady(0.5), memory=load))
    return names


@pytest.fixture(scope="module")
def world(stock_cluster: World, names: Names) -> Iterator[World]:
    with stock_cluster.having(*map(loaded, (names.busy, names.calm, names.silent))) as made:
        yield made


@pytest.fixture
def measurements(prometheus: MonitoredNodes, tmp_path: Path) -> str:
    file = tmp_path / "measurements.yaml"
    file.write_text(yaml.safe_dump({"provider": "prometheus", "address": prometheus.url}))
    return f"--measurements={file}"


def small(world: World) -> PodBuilder:
    return world.named("web").requests(cpu="500m", memory="1Gi")


def test_pods_that_wait_for_the_extender_do_not_slip_onto_the_loaded_node(
    world: World, names: Names, measurements: str
) -> None:
    """The extender is asked as soon as it listens, and answers once it has measurements."""
    port = free_port()
    with world.scheduler(entry(port, "safe-overload", filters=True)) as scheduler:
        waiting = [among(small(world), names.busy, names.calm) for _ in range(6)]
        scheduler.submit(*waiting)
        assert all("connection refused" in scheduler.fate(web).message for web in waiting)
        with world.extender("safe", f"--port={port}", measurements):
            assert {scheduler.lands(web) for web in waiting} == {names.calm}
            refused = scheduler.place(among(small(world), names.busy))
    assert refused.node == ""
    assert f"1 {MEMORY_RISK}" in refused.message


@pytest.mark.parametrize("missing", ["FailClosed", "FailOpen"])
def test_a_node_that_fell_silent_is_dealt_with_by_policy(
    world: World, names: Names, measurements: str, tmp_path: Path, missing: Missing
) -> None:
    with world.behind("safe", "safe-overload", measurements, policy(tmp_path, missing)) as scheduler:
        fate = scheduler.place(among(small(world), names.silent))
        assert scheduler.place(among(small(world), names.busy)).node == ""
    if missing == "FailOpen":
        assert fate.node == names.silent
    else:
        assert f"1 {REASON_NO_MEASUREMENTS}" in fate.message
