"""The follower on the real API server, with writes that hang and leases that come and go."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from tests.kube.proxy import AnswerLate, Proxy
from tests.live.pods import condition, create, manifest, placed, pods

from longshore.api import Change, PersistentVolumeClaim, Pod, PodCondition
from longshore.dev import ControlPlane
from longshore.dev.fixtures import OwnCluster
from longshore.engine import Bind, Engine, Event, Evict, Failed, Outcome, PatchObject
from longshore.framework.effects import CallWebhook, Operation
from longshore.kube import Client, Connection, EventRecorder, Pool, Writer, load
from longshore.kube.cluster import KubeCluster
from longshore.kube.operations import Operations
from longshore.live import Follower


class Leading:
    """Whether the follower holds the lease; each test decides when."""

    def __init__(self) -> None:
        self.leads = False

    def __call__(self) -> bool:
        return self.leads


@asynccontextmanager
async def following(
    control_plane: ControlPlane,
    engine: Engine,
    *,
    leading: Leading,
    writes_to: Connection | None = None,
    on_event: Callable[[Event, float], None] = lambda _event, _now: None,
    slice_seconds: float = 0.005,
) -> AsyncIterator[Follower]:
    connection = load(control_plane.kubeconfig)
    stop = asyncio.Event()
    async with Client(connection) as client, Pool(writes_to or connection) as pool:
        writer = Writer(pool)
        recorder = EventRecorder(writer, controller=engine.scheduler_name)
        cluster = KubeCluster(client, Operations(writer, may_write=leading), recorder)
        follower = Follower(engine, cluster, on_event=on_event, slice_seconds=slice_seconds)
        running = asyncio.create_task(follower.run(until=stop))
        try:
            yield follower
        finally:
            stop.set()
            await running


async def until(condition: Callable[[], bool], *, within: float = 20.0) -> None:
    async with asyncio.timeout(within):
        while not condition():
            await asyncio.sleep(0.05)


async def test_watches_are_drained_while_no_write_is_answered(
    control_plane: ControlPlane, namespace: str
) -> None:
    seen: set[str] = set()

    def note(event: Event, _now: float) -> None:
        if isinstance(event, Change) and isinstance(event.object, Pod):
            seen.add(event.object.key)

    leading = Leading()
    leading.leads = True
    proxy = Proxy(load(control_plane.kubeconfig), lambda _asked: AnswerLate(seconds=3.0))
    async with (
        proxy.running(),
        following(
            control_plane,
            Engine(scheduler_name=namespace),
            leading=leading,
            writes_to=proxy.connection,
            on_event=note,
        ),
    ):
        first = [manifest(f"first-{n}", scheduler=namespace) for n in range(20)]
        await asyncio.to_thread(create, control_plane, namespace, *first)
        await until(lambda: proxy.faults > 0)
        more = [manifest(f"more-{n}", scheduler="nobody") for n in range(20)]
        await asyncio.to_thread(create, control_plane, namespace, *more)
        await until(lambda: sum(key.startswith(f"{namespace}/more") for key in seen) == 20, within=3.0)


async def test_nothing_is_decided_without_the_lease(control_plane: ControlPlane, namespace: str) -> None:
    engine, leading = Engine(scheduler_name=namespace), Leading()
    async with following(control_plane, engine, leading=leading) as follower:
        for name in ("web", "marker"):
            await until(lambda: follower.ready)
            await asyncio.to_thread(create, control_plane, namespace, manifest(name, scheduler=namespace))
        # Both wait to be tried, the first one since before the second one came.
        await until(lambda: engine.queue.counts()["active"] == 2)
        assert placed(control_plane, namespace) == {}
        leading.leads = True
        follower.nudge()
        await until(lambda: len(placed(control_plane, namespace)) == 2)


@pytest.mark.parametrize(
    "effect",
    [
        Bind("default", "web", "some-uid", "node-1"),
        Evict("default", "web", "some-uid", PodCondition(type="DisruptionTarget")),
        PatchObject(PersistentVolumeClaim, "default", "data", {"metadata": {"labels": {"a": "b"}}}),
        CallWebhook(0, "bind", b"{}"),
    ],
    ids=lambda effect: type(effect).__name__,
)
async def test_lease_lost_between_decision_and_write(
    control_plane: ControlPlane, namespace: str, effect: Operation
) -> None:
    """It is not done, and the outcome is a failure."""
    outcomes: list[Outcome] = []
    connection = load(control_plane.kubeconfig)
    async with (
        Proxy(connection).running() as proxy,
        Client(connection) as client,
        Pool(proxy.connection) as pool,
    ):
        cluster = KubeCluster(client, Operations(Writer(pool), may_write=Leading()))
        cluster.perform(effect, outcomes.append)
        await cluster.drain(within=5.0)
    assert outcomes == [Failed("this scheduler no longer holds the lease")]
    assert proxy.asked == []


async def test_nothing_is_decided_before_all_bound_pods_are_counted(own_cluster: OwnCluster) -> None:
    """The pending pod comes first in the list, and the inbox is emptied one event at a time."""
    plane = own_cluster(nodes=1, kwok=False, controller_manager=False)  # 8 cores
    bound = [manifest(f"bound-{n}", cpu="200m") for n in range(40)]
    for pod in bound:
        pod["spec"]["nodeName"] = "node-0"
    await asyncio.to_thread(create, plane, "default", manifest("a-pending", cpu="200m"), *bound)
    leading = Leading()
    leading.leads = True
    async with following(plane, Engine(), leading=leading, slice_seconds=-1.0):
        await until(lambda: bool(condition(pods(plane, "default")["a-pending"])))
    told = condition(pods(plane, "default")["a-pending"])
    assert (told["status"], told.get("reason")) == ("False", "Unschedulable")
