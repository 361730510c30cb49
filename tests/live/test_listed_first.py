"""At the start of an extender and of a scheduler: lists come in any order, then the first measurements."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from longshore.api import Change, Node, Pod
from longshore.api.meta import ApiObject
from longshore.cluster import CPU
from longshore.config import MeasurementSettings
from longshore.engine import Engine
from longshore.framework.seam import Cancel, ignore
from longshore.kube.cluster import KubeCluster
from longshore.kube.kinds import KINDS
from longshore.kube.operations import Operations
from longshore.live.extender_host import ExtenderHost
from longshore.live.follower import Follower
from longshore.measure.providers import ProviderFailed, Values
from longshore.testing import node, pod

BUSY = (
    node("busy")
    .allocatable(cpu="8")
    .annotations(**{"mean-free-cpu": "5000", "longshore.dev/measured-at": "2026-01-01T00:00:00Z"})
)
OLD = pod("old").requests(cpu="2").on("busy")
BY_PROMETHEUS = MeasurementSettings(provider="prometheus", address="http://127.0.0.1:9")
AWAITED = "the first measurements have not arrived"


class Listed(KubeCluster):
    """A cluster whose lists and changes come when the test calls for them."""

    def __init__(self) -> None:
        no_server: Any = None
        super().__init__(no_server, Operations(no_server))
        self._left: set[type[ApiObject]] = set()

    @property
    def unlisted(self) -> list[str]:
        return [str(KINDS[kind].resource) for kind in self._left]

    def watch(
        self,
        kinds: Collection[type[ApiObject]],
        on_change: Callable[[Change[Any]], None],
        on_synced: Callable[[], None] = ignore,
    ) -> Cancel:
        self._left = set(kinds)
        self._on_change = on_change
        self._on_synced = on_synced
        return ignore

    def list(self, kind: type[ApiObject], *items: ApiObject) -> None:
        """Report all objects of the kind that exist at the beginning."""
        for item in items:
            self.add(item)
        self._left.discard(kind)
        if not self._left:
            self._on_synced()

    def add(self, item: ApiObject) -> None:
        self._on_change(Change(None, item))


class Held:
    """A provider that waits for the test before it answers."""

    def __init__(self, answer: Values | Exception) -> None:
        self._answer = answer
        self.asked: list[list[str]] = []
        self.let = asyncio.Event()

    async def measure(self, nodes: Sequence[Node]) -> Values:
        self.asked.append([node.metadata.name for node in nodes])
        await self.let.wait()
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    async def close(self) -> None:
        pass


def extender_on(
    cluster: KubeCluster, engine: Engine, settings: MeasurementSettings, provider: Held | None = None
) -> ExtenderHost:
    return ExtenderHost(engine, cluster, measurements=settings, provider=provider)


def scheduler_on(cluster: KubeCluster, engine: Engine, settings: MeasurementSettings) -> Follower:
    return Follower(engine, cluster, kinds=(Pod, Node), measurements=settings)


@asynccontextmanager
async def running(runs: Follower | ExtenderHost) -> Any:
    stop = asyncio.Event()
    task = asyncio.create_task(runs.run(until=stop))
    await asyncio.sleep(0)
    try:
        yield
    finally:
        stop.set()
        await task


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


def unseen(engine: Engine) -> int:
    return int(engine.cluster.measures.unseen(engine.cluster.all_nodes(), CPU)[0])


def mean(engine: Engine) -> float:
    return float(engine.cluster.measures.value("cpu/mean", engine.cluster.all_nodes())[0])


@pytest.mark.parametrize("made", [extender_on, scheduler_on], ids=["extender", "scheduler"])
async def test_nodes_arrive_before_their_pods(
    made: Callable[[KubeCluster, Engine, MeasurementSettings], ExtenderHost | Follower],
) -> None:
    """The measurement already includes the pods, so they are not counted again."""
    cluster, engine = Listed(), Engine()
    runs = made(cluster, engine, MeasurementSettings(max_age=float("inf")))
    async with running(runs):
        cluster.list(Node, BUSY)
        await until(lambda: engine.cluster.node_count == 1)
        cluster.list(Pod, OLD)
        await until(lambda: not runs.hindrance)
        assert (mean(engine), unseen(engine)) == (3000.0, 0)
        cluster.add(pod("new").requests(cpu="1").on("busy"))
        await until(lambda: unseen(engine) == 1000)


async def test_an_extender_is_ready_after_its_first_measurements() -> None:
    cluster, engine = Listed(), Engine()
    provider = Held({"cpu/mean": {"busy": (7000.0, float("nan"))}})
    host = extender_on(cluster, engine, BY_PROMETHEUS, provider)
    async with running(host):
        cluster.list(Node, BUSY)
        await until(lambda: engine.cluster.node_count == 1)
        assert (host.hindrance, provider.asked) == ("pods are still being listed", [])
        cluster.list(Pod)
        await until(lambda: bool(provider.asked))
        assert (host.hindrance, provider.asked) == (AWAITED, [["busy"]])
        provider.let.set()
        await until(lambda: not host.hindrance)
        assert mean(engine) == 7000.0


async def test_a_provider_that_fails_does_not_keep_an_extender_from_being_ready() -> None:
    cluster, provider = Listed(), Held(ProviderFailed("connection refused"))
    host = extender_on(cluster, Engine(), BY_PROMETHEUS, provider)
    async with running(host):
        cluster.list(Node, BUSY)
        cluster.list(Pod)
        await until(lambda: host.hindrance == AWAITED)
        provider.let.set()
        await until(lambda: not host.hindrance)
