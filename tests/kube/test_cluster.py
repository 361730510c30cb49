"""The real cluster beyond what all clusters have in common: what effects write, and how it ends."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from tests.live.pods import condition, create, manifest, pods
from tests.waiting import eventually_async

from longshore.api import Namespace, PodCondition
from longshore.dev import ControlPlane
from longshore.engine import Answered, Evict, Failed, Gone, Nominate, Outcome, Run, SetCondition
from longshore.framework.effects import Operation, Tell
from longshore.kube import Client, EventRecorder, Pool, Writer, load
from longshore.kube.cluster import KubeCluster
from longshore.kube.operations import Operations
from longshore.kube.pool import Response
from longshore.kube.writer import Transport

REFUSED = PodCondition(
    type="PodScheduled", status="False", reason="Unschedulable", message="no", observed_generation=1
)
PREEMPTED = PodCondition(
    type="DisruptionTarget", status="True", reason="PreemptionByScheduler", message="for x"
)


class Effects:
    def __init__(self, transport: Transport, *, most_requests: int = 256) -> None:
        no_client = cast(Client, None)
        writer = Writer(transport)
        self.cluster = KubeCluster(
            no_client,
            Operations(writer),
            EventRecorder(writer, controller="test"),
            most_requests=most_requests,
        )

    async def outcome(self, operation: Operation) -> Outcome:
        outcomes: asyncio.Queue[Outcome] = asyncio.Queue()
        self.cluster.perform(operation, outcomes.put_nowait)
        async with asyncio.timeout(20):
            return await outcomes.get()

    async def report(self, tell: Tell) -> None:
        """Make the report and wait until it is written."""
        self.cluster.report(tell)
        await self.cluster.drain(within=20)


@asynccontextmanager
async def effects(plane: ControlPlane) -> AsyncIterator[Effects]:
    async with Pool(load(plane.kubeconfig)) as pool:
        yield Effects(pool)


def created(plane: ControlPlane, namespace: str, body: dict[str, Any]) -> dict[str, Any]:
    create(plane, namespace, body)
    found: dict[str, Any] = json.loads(
        plane.kubectl("get", body["kind"], body["metadata"]["name"], "-n", namespace, "-o", "json")
    )
    return found


async def test_a_condition_is_written_along_with_the_nomination(
    control_plane: ControlPlane, namespace: str
) -> None:
    uid = created(control_plane, namespace, manifest("web", scheduler="none"))["metadata"]["uid"]
    async with effects(control_plane) as to:
        await to.report(SetCondition(namespace, "web", uid, REFUSED, "node-9"))
        first = pods(control_plane, namespace)["web"]
        await asyncio.sleep(1.1)
        await to.report(SetCondition(namespace, "web", uid, REFUSED, "", transition=False))
    second = pods(control_plane, namespace)["web"]
    assert first["status"]["nominatedNodeName"] == "node-9"
    told = condition(first)
    assert (told["status"], told["reason"], told["message"]) == ("False", "Unschedulable", "no")
    assert told["observedGeneration"] == 1
    assert "nominatedNodeName" not in second["status"]
    assert condition(second)["lastTransitionTime"] == told["lastTransitionTime"]


async def test_a_nomination_alone_comes_and_goes(control_plane: ControlPlane, namespace: str) -> None:
    uid = created(control_plane, namespace, manifest("web", scheduler="none"))["metadata"]["uid"]
    async with effects(control_plane) as to:
        await to.report(Nominate(namespace, "web", uid, "node-9"))
        assert pods(control_plane, namespace)["web"]["status"]["nominatedNodeName"] == "node-9"
        await to.report(Nominate(namespace, "web", uid, ""))
        assert "nominatedNodeName" not in pods(control_plane, namespace)["web"]["status"]


async def test_a_successor_of_the_same_name_is_not_touched(
    control_plane: ControlPlane, namespace: str
) -> None:
    create(control_plane, namespace, manifest("web", scheduler="none"))
    async with effects(control_plane) as to:
        await to.report(SetCondition(namespace, "web", "another", REFUSED))
        await to.report(Nominate(namespace, "web", "another", "node-9"))
        assert isinstance(await to.outcome(Evict(namespace, "web", "another", PREEMPTED)), Gone)
    left = pods(control_plane, namespace)["web"]
    assert condition(left) == condition(left, "DisruptionTarget") == {}
    assert "nominatedNodeName" not in left["status"]
    assert "deletionTimestamp" not in left["metadata"]


async def test_a_pod_replaced_between_the_two_writes_of_its_eviction(
    control_plane: ControlPlane, namespace: str
) -> None:
    create(control_plane, namespace, manifest("web", scheduler="none"))
    async with Pool(load(control_plane.kubeconfig)) as pool:

        class PatchesCameBefore:
            async def send(self, method: str, *arguments: Any, **more: Any) -> Response:
                if method == "PATCH":
                    return Response(200, b"{}", None)
                return await pool.send(method, *arguments, **more)

        to = Effects(PatchesCameBefore())
        assert isinstance(await to.outcome(Evict(namespace, "web", "another", PREEMPTED)), Gone)
    assert "deletionTimestamp" not in pods(control_plane, namespace)["web"]["metadata"]


# What `async def` plugins do; no API server is needed for that.


async def answers() -> str:
    await asyncio.sleep(0.01)
    return "done"


async def breaks() -> None:
    raise LookupError("no such disk")


async def gives_up() -> None:
    raise asyncio.CancelledError


async def exits() -> None:
    raise SystemExit(3)


class NoTransport:
    async def send(self, *_arguments: Any, **_more: Any) -> Any:
        raise AssertionError("nothing should be written")


@pytest.mark.parametrize(
    ("work", "outcome"),
    [
        (answers, Answered("done")),
        (breaks, Failed("LookupError('no such disk')")),
        (gives_up, Failed("the plugin cancelled its own work")),
        (exits, Failed("SystemExit(3)")),
    ],
)
async def test_every_end_of_the_work_of_a_plugin_is_an_outcome(work: Any, outcome: Outcome) -> None:
    to = Effects(NoTransport())
    assert await to.outcome(Run("Mine", work())) == outcome


async def test_work_of_plugins_is_given_up_at_the_end() -> None:
    ended: list[str] = []
    began = asyncio.Event()

    async def waits() -> None:
        began.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append("tidied up")

    to = Effects(NoTransport())
    outcomes: list[Outcome] = []
    to.cluster.perform(Run("Mine", waits()), outcomes.append)
    async with asyncio.timeout(20):
        await began.wait()
        await to.cluster.drain(within=5)
    assert ended == ["tidied up"]
    # The attempt is not said to have failed: the next scheduler makes it again.
    assert outcomes == []


async def test_decisions_go_on_when_reports_have_been_written() -> None:
    room = asyncio.Event()
    to = Effects(AcceptsEverything(), most_requests=2)
    to.cluster.on_room = room.set
    for number in range(2):
        to.cluster.report(SetCondition("default", f"pod-{number}", "uid", REFUSED))
    assert not to.cluster.has_room
    async with asyncio.timeout(5):
        await room.wait()
    assert to.cluster.has_room


class AcceptsEverything:
    """An API server that accepts every write."""

    async def send(self, *_arguments: Any, **_more: Any) -> Response:
        await asyncio.sleep(0.01)
        return Response(200, b"{}", None)


@pytest.mark.parametrize("end", ["cancel", "close"])
async def test_a_watch_that_ends_while_it_reports_what_exists_reports_nothing_more(
    control_plane: ControlPlane, end: str
) -> None:
    """A cluster has several namespaces from the beginning, and they come all at once."""
    heard: list[str] = []
    async with Client(load(control_plane.kubeconfig)) as client:
        cluster = KubeCluster(client)

        def hear(_change: object) -> None:
            heard.append("change")
            cancel() if end == "cancel" else cluster.close()

        cancel = cluster.watch([Namespace], hear, lambda: heard.append("synced"))
        await eventually_async(lambda: heard, what="heard")
        await cluster.drain(within=5.0)
    assert heard == ["change"]
