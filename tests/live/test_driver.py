"""The driver on the real API server, with writes that hang and leases that come and go."""

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
from longshore.engine import Bind, Done, Engine, Event, Evict, Failed, PatchObject, Request
from longshore.framework.effects import CallWebhook, Operation
from longshore.kube import Client, Connection, EventRecorder, Pool, Writer, load
from longshore.live import Driver
from longshore.live.effects import Performer
from longshore.live.webhook_calls import WebhookCalls


@asynccontextmanager
async def driving(
    control_plane: ControlPlane,
    scheduler: str,
    *,
    writes_to: Connection | None = None,
    on_event: Callable[[Event, float], None] = lambda _event, _now: None,
) -> AsyncIterator[Driver]:
    connection = load(control_plane.kubeconfig)
    stop = asyncio.Event()
    async with Client(connection) as client, Pool(writes_to or connection) as pool:
        writer = Writer(pool)
        recorder = EventRecorder(writer, controller=scheduler)
        driver = Driver(Engine(scheduler_name=scheduler), client, writer, recorder, on_event=on_event)
        # Each test decides when decisions may begin.
        driver.may_bind = lambda: False
        running = asyncio.create_task(driver.run(until=stop))
        try:
            yield driver
        finally:
            stop.set()
            await running


class SeenPods:
    """The pods that the driver has given to the engine."""

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
    proxy = Proxy(load(control_plane.kubeconfig), lambda _asked: AnswerLate(seconds=3.0))
    async with (
        proxy.running(),
        driving(control_plane, namespace, writes_to=proxy.connection, on_event=seen) as driver,
    ):
        driver.may_bind = lambda: True
        first = [manifest(f"first-{n}", scheduler=namespace) for n in range(20)]
        await asyncio.to_thread(create, control_plane, namespace, *first)
        await eventually_async(lambda: proxy.faults, what="delayed by the proxy")
        more = [manifest(f"more-{n}", scheduler="nobody") for n in range(20)]
        await asyncio.to_thread(create, control_plane, namespace, *more)
        await seen.wait_for(*(f"more-{n}" for n in range(20)), within=3.0)


async def test_nothing_is_decided_without_the_lease(control_plane: ControlPlane, namespace: str) -> None:
    seen = SeenPods()
    async with driving(control_plane, namespace, on_event=seen) as driver:
        await eventually_async(lambda: driver.ready, what="ready")
        for name in ("web", "later"):
            await asyncio.to_thread(create, control_plane, namespace, manifest(name, scheduler=namespace))
            await seen.wait_for(name)
        # The turn of the loop that received the first pod was over before the second one came.
        assert (driver.writes_in_flight, placed(control_plane, namespace)) == (0, {})
        driver.may_bind = lambda: True
        driver.nudge()
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
    done: list[Done] = []
    async with Proxy(load(control_plane.kubeconfig)).running() as proxy, Pool(proxy.connection) as pool:
        writer = Writer(pool)
        recorder = EventRecorder(writer, controller=namespace)
        performer = Performer(
            writer, recorder, WebhookCalls(()), on_done=done.append, may_write=lambda: False
        )
        performer.perform(Request(7, effect))
        await performer.finish(within=5.0)
    assert done == [Done(7, Failed("this scheduler no longer holds the lease"))]
    assert proxy.asked == []


async def test_nothing_is_decided_before_all_bound_pods_are_counted(
    own_cluster: OwnCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pending pod comes first in the list, and the inbox is emptied one event at a time."""
    monkeypatch.setattr("longshore.live.driver._SLICE", -1.0)
    plane = own_cluster(nodes=1, kwok=False, controller_manager=False)  # 8 cores
    bound = [manifest(f"bound-{n}", cpu="200m") for n in range(40)]
    for pod in bound:
        pod["spec"]["nodeName"] = "node-0"
    await asyncio.to_thread(create, plane, "default", manifest("a-pending", cpu="200m"), *bound)
    async with driving(plane, "longshore") as driver:
        driver.may_bind = lambda: True
        await eventually_async(lambda: pods(plane, "default")["a-pending"], condition)
    told = condition(pods(plane, "default")["a-pending"])
    assert (told["status"], told.get("reason")) == ("False", "Unschedulable")
