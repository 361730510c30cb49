"""At the start of an extender and of a scheduler: lists come in any order, then the first measurements."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from longshore.api import Node
from longshore.cluster import CPU
from longshore.config import MeasurementSettings
from longshore.engine import Engine
from longshore.kube.recorder import EventRecorder
from longshore.kube.reflector import Reflector
from longshore.kube.resources import NODES, PODS
from longshore.live.driver import Driver
from longshore.live.extender_host import ExtenderHost
from longshore.measure.providers import ProviderFailed, Values
from longshore.testing import node, pod

BUSY = (
    node("busy")
    .allocatable(cpu="8")
    .annotations(**{"mean-free-cpu": "5000", "longshore.dev/measured-at": "2026-01-01T00:00:00Z"})
)
OLD = pod("old").requests(cpu="2").on("busy")
BY_PROMETHEUS = MeasurementSettings(provider="prometheus", address="http://127.0.0.1:9")
AWAITED = "the first measurements are awaited"


class Listed(Reflector[Any]):
    """A reflector whose list and changes the test controls."""

    made: dict[str, "Listed"]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.made[str(self.resource)] = self

    async def run(self) -> None:
        await asyncio.Event().wait()

    def list(self, *items: Any) -> None:
        self._replace({item.key: item for item in items}, "1")


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


@pytest.fixture(autouse=True)
def lists(monkeypatch: pytest.MonkeyPatch) -> dict[str, Listed]:
    monkeypatch.setattr(Listed, "made", {}, raising=False)
    for module in ("driver", "extender_host"):
        monkeypatch.setattr(f"longshore.live.{module}.Reflector", Listed)
    return Listed.made


@contextmanager
def provided(provider: Held, monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    with monkeypatch.context() as patched:
        patched.setattr("longshore.live.extender_host.make_provider", lambda _settings, _client: provider)
        yield provider


def host_of(engine: Engine, settings: MeasurementSettings) -> ExtenderHost:
    nobody: Any = None
    recorder = EventRecorder(nobody, controller="test")
    return ExtenderHost(engine, nobody, nobody, recorder, measurements=settings)


def driver_of(engine: Engine, settings: MeasurementSettings) -> Driver:
    nobody: Any = None
    recorder = EventRecorder(nobody, controller="test")
    return Driver(engine, nobody, nobody, recorder, others=(NODES,), measurements=settings)


@asynccontextmanager
async def running(runs: Driver | ExtenderHost) -> Any:
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


@pytest.mark.parametrize("made", [host_of, driver_of], ids=["extender", "scheduler"])
async def test_nodes_arrive_before_their_pods(
    made: Callable[[Engine, MeasurementSettings], ExtenderHost | Driver], lists: dict[str, Listed]
) -> None:
    """The measurement already includes the pods, so they are not counted again."""
    engine = Engine()
    runs = made(engine, MeasurementSettings(max_age=float("inf")))
    async with running(runs):
        lists[str(NODES)].list(BUSY)
        await until(lambda: engine.cluster.row("busy") is not None)
        lists[str(PODS)].list(OLD)
        await until(lambda: not runs.hindrance if isinstance(runs, ExtenderHost) else runs.ready)
        assert (mean(engine), unseen(engine)) == (3000.0, 0)
        lists[str(PODS)].list(OLD, pod("new").requests(cpu="1").on("busy"))
        await until(lambda: unseen(engine) == 1000)


async def test_an_extender_is_ready_after_its_first_measurements(
    lists: dict[str, Listed], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine()
    with provided(Held({"cpu/mean": {"busy": (7000.0, float("nan"))}}), monkeypatch) as provider:
        host = host_of(engine, BY_PROMETHEUS)
    async with running(host):
        lists[str(NODES)].list(BUSY)
        for _ in range(20):
            await asyncio.sleep(0)  # a turn of the loop, for everything that could run now
        assert (host.hindrance, provider.asked) == ("pods are still being listed", [])
        lists[str(PODS)].list()
        await until(lambda: bool(provider.asked))
        assert (host.hindrance, provider.asked) == (AWAITED, [["busy"]])
        provider.let.set()
        await until(lambda: not host.hindrance)
        assert mean(engine) == 7000.0


async def test_a_provider_that_fails_does_not_keep_an_extender_from_being_ready(
    lists: dict[str, Listed], monkeypatch: pytest.MonkeyPatch
) -> None:
    with provided(Held(ProviderFailed("nobody listens")), monkeypatch) as provider:
        host = host_of(Engine(), BY_PROMETHEUS)
    async with running(host):
        lists[str(NODES)].list(BUSY)
        lists[str(PODS)].list()
        await until(lambda: host.hindrance == AWAITED)
        provider.let.set()
        await until(lambda: not host.hindrance)
