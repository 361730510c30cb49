"""The follower on the real API server, with writes that hang and leases that come and go."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from tests.kube.proxy import AnswerLate, Proxy
from tests.live.pods import condition, create, manifest, placed, pods
from tests.waiting import eventually_async

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


class SeenPods:
    """The pods that the engine has taken in."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def __call__(self, event: Event, _now: float) -> None:
        if isinstance(event, Change) and isinstance(event.object, Pod):
            self.names.add(event.object.metadata.name)

    async def wait_for(self, *names: str, within: float = 20.0) -> None:
        await eventually_async(lambda: self.names, lambda seen: seen >= set(names), within=within)


async def test_watches_are_drained_while_no_write_is_answered(
    control_plane: ControlPlane, namespace: str
) -> None:
    seen = SeenPods()
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
            on_event=seen,
        ),
    ):
        first = [manifest(f"first-{n}", scheduler=namespace) for n in range(20)]
        await asyncio.to_thread(create, control_plane, namespace, *first)
        await eventually_async(lambda: proxy.faults, what="delayed by the proxy")
        more = [manifest(f"more-{n}", scheduler="none") for n in range(20)]
        await asyncio.to_thread(create, control_plane, namespace, *more)
        await seen.wait_for(*(f"more-{n}" for n in range(20)), within=3.0)


async def test_nothing_is_decided_without_the_lease(control_plane: ControlPlane, namespace: str) -> None:
    seen, leading = SeenPods(), Leading()
    engine = Engine(scheduler_name=namespace)
    async with following(control_plane, engine, leading=leading, on_event=seen) as follower:
        await eventually_async(lambda: follower.ready, what="ready")
        for name in ("web", "later"):
            await asyncio.to_thread(create, control_plane, namespace, manifest(name, scheduler=namespace))
            await seen.wait_for(name)
        # The turn of the loop that received the first pod was over before the second one came.
        assert (follower.requests_in_flight, placed(control_plane, namespace)) == (0, {})
        leading.leads = True
        follower.nudge()
        await eventually_async(lambda: placed(control_plane, namespace), lambda found: len(found) == 2)


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
async def test_a_write_is_not_started_once_the_lease_is_lost(
    control_plane: ControlPlane, namespace: str, effect: Operation
) -> None:
    """The engine receives a failure."""
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
        await eventually_async(lambda: pods(plane, "default")["a-pending"], condition)
    told = condition(pods(plane, "default")["a-pending"])
    assert (told["status"], told.get("reason")) == ("False", "Unschedulable")
