"""Effects on the real API server: the result of each, and the outcome that the engine receives."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.live.pods import condition, create, manifest, pods
from tests.waiting import eventually_async

from longshore.api import PersistentVolumeClaim, PodCondition
from longshore.dev import ControlPlane
from longshore.engine import (
    Answered,
    Conflict,
    Done,
    Evict,
    Failed,
    Gone,
    Nominate,
    Notice,
    Outcome,
    PatchObject,
    RecordEvent,
    Request,
    Run,
    SetCondition,
    Succeeded,
)
from longshore.framework.effects import Operation, Tell
from longshore.kube import EventRecorder, Pool, Writer, load
from longshore.kube.pool import Response
from longshore.live.effects import Performer
from longshore.live.webhook_calls import WebhookCalls

REFUSED = PodCondition(
    type="PodScheduled", status="False", reason="Unschedulable", message="no", observed_generation=1
)
PREEMPTED = PodCondition(
    type="DisruptionTarget", status="True", reason="PreemptionByScheduler", message="for x"
)


class Deeds:
    def __init__(self, writer: Writer) -> None:
        self.done: list[Done] = []
        recorder = EventRecorder(writer, controller="test")
        self.performer = Performer(writer, recorder, WebhookCalls(()), on_done=self.done.append)

    async def outcome(self, effect: Operation | Tell) -> Outcome | None:
        """Return the outcome that the engine received, if there is one."""
        if isinstance(effect, SetCondition | Nominate | RecordEvent):
            self.performer.perform(Notice(effect))
        else:
            self.performer.perform(Request(1, effect))
        await eventually_async(
            lambda: (self.performer.writes_in_flight, self.done),
            lambda found: not found[0] and (found[1] or not isinstance(effect, Run)),
        )
        return self.done.pop().outcome if self.done else None


@asynccontextmanager
async def deeds(plane: ControlPlane) -> AsyncIterator[Deeds]:
    async with Pool(load(plane.kubeconfig)) as pool:
        yield Deeds(Writer(pool))


def created(plane: ControlPlane, namespace: str, body: dict[str, Any]) -> dict[str, Any]:
    create(plane, namespace, body)
    found: dict[str, Any] = json.loads(
        plane.kubectl("get", body["kind"], body["metadata"]["name"], "-n", namespace, "-o", "json")
    )
    return found


async def test_a_condition_is_written_along_with_the_nomination(
    control_plane: ControlPlane, namespace: str
) -> None:
    uid = created(control_plane, namespace, manifest("web", scheduler="nobody"))["metadata"]["uid"]
    async with deeds(control_plane) as to:
        assert await to.outcome(SetCondition(namespace, "web", uid, REFUSED, "node-9")) is None
        first = pods(control_plane, namespace)["web"]
        await asyncio.sleep(1.1)
        again = SetCondition(namespace, "web", uid, REFUSED, "", transition=False)
        assert await to.outcome(again) is None
    second = pods(control_plane, namespace)["web"]
    assert first["status"]["nominatedNodeName"] == "node-9"
    told = condition(first)
    assert (told["status"], told["reason"], told["message"]) == ("False", "Unschedulable", "no")
    assert told["observedGeneration"] == 1
    assert "nominatedNodeName" not in second["status"]
    assert condition(second)["lastTransitionTime"] == told["lastTransitionTime"]


async def test_a_nomination_alone_comes_and_goes(control_plane: ControlPlane, namespace: str) -> None:
    uid = created(control_plane, namespace, manifest("web", scheduler="nobody"))["metadata"]["uid"]
    async with deeds(control_plane) as to:
        await to.outcome(Nominate(namespace, "web", uid, "node-9"))
        assert pods(control_plane, namespace)["web"]["status"]["nominatedNodeName"] == "node-9"
        await to.outcome(Nominate(namespace, "web", uid, ""))
        assert "nominatedNodeName" not in pods(control_plane, namespace)["web"]["status"]


async def test_a_successor_of_the_same_name_is_not_touched(
    control_plane: ControlPlane, namespace: str
) -> None:
    create(control_plane, namespace, manifest("web", scheduler="nobody"))
    async with deeds(control_plane) as to:
        await to.outcome(SetCondition(namespace, "web", "another", REFUSED))
        await to.outcome(Nominate(namespace, "web", "another", "node-9"))
        assert isinstance(await to.outcome(Evict(namespace, "web", "another", PREEMPTED)), Gone)
    left = pods(control_plane, namespace)["web"]
    assert condition(left) == condition(left, "DisruptionTarget") == {}
    assert "nominatedNodeName" not in left["status"]
    assert "deletionTimestamp" not in left["metadata"]


async def test_a_pod_replaced_between_the_two_writes_of_its_eviction(
    control_plane: ControlPlane, namespace: str
) -> None:
    create(control_plane, namespace, manifest("web", scheduler="nobody"))
    async with Pool(load(control_plane.kubeconfig)) as pool:

        class PatchesCameBefore:
            async def send(self, method: str, *arguments: Any, **more: Any) -> Response:
                if method == "PATCH":
                    return Response(200, b"{}", None)
                return await pool.send(method, *arguments, **more)

        to = Deeds(Writer(PatchesCameBefore()))
        assert isinstance(await to.outcome(Evict(namespace, "web", "another", PREEMPTED)), Gone)
    assert "deletionTimestamp" not in pods(control_plane, namespace)["web"]["metadata"]


async def test_evicting_a_pod_that_is_gone(control_plane: ControlPlane, namespace: str) -> None:
    async with deeds(control_plane) as to:
        assert isinstance(await to.outcome(Evict(namespace, "nobody", "some-uid", PREEMPTED)), Gone)


CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "annotations": {"example.com/kept": "yes"}},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "none",
        "resources": {"requests": {"storage": "1Gi"}},
    },
}


def annotated(namespace: str, version: str) -> PatchObject:
    patch = {"metadata": {"resourceVersion": version, "annotations": {"example.com/new": "yes"}}}
    return PatchObject(PersistentVolumeClaim, namespace, "data", patch)


async def test_a_patch_lands_on_the_version_it_was_made_for_and_on_no_other(
    control_plane: ControlPlane, namespace: str
) -> None:
    claim = created(control_plane, namespace, CLAIM)
    version = claim["metadata"]["resourceVersion"]
    async with deeds(control_plane) as to:
        control_plane.kubectl("label", "pvc", "data", "-n", namespace, "changed=yes")
        assert isinstance(await to.outcome(annotated(namespace, version)), Conflict)
        newer = json.loads(control_plane.kubectl("get", "pvc", "data", "-n", namespace, "-o", "json"))
        assert await to.outcome(annotated(namespace, newer["metadata"]["resourceVersion"])) == Succeeded()
    newest = json.loads(control_plane.kubectl("get", "pvc", "data", "-n", namespace, "-o", "json"))
    annotations = newest["metadata"]["annotations"]
    assert annotations.items() >= {"example.com/kept": "yes", "example.com/new": "yes"}.items()


async def test_patching_an_object_that_is_gone(control_plane: ControlPlane, namespace: str) -> None:
    async with deeds(control_plane) as to:
        assert isinstance(await to.outcome(annotated(namespace, "1")), Gone)


# The work of `async def` plugins, which needs no API server.


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
        raise AssertionError("nothing is to be written")


@pytest.mark.parametrize(
    ("work", "outcome"),
    [
        (answers, Answered("done")),
        (breaks, Failed("LookupError('no such disk')")),
        (gives_up, Failed("the plugin cancelled its own work")),
        (exits, Failed("SystemExit(3)")),
    ],
)
async def test_whatever_a_plugin_does_is_an_outcome(work: Any, outcome: Outcome) -> None:
    to = Deeds(Writer(NoTransport()))
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

    to = Deeds(Writer(NoTransport()))
    work: Awaitable[None] = waits()
    to.performer.perform(Request(1, Run("Mine", work)))
    async with asyncio.timeout(20):
        await began.wait()
        await to.performer.finish(within=5)
    assert ended == ["tidied up"]
    # The attempt is not reported as failed: the next scheduler tries again.
    assert to.done == []


async def test_decisions_continue_when_notices_in_flight_have_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("longshore.live.effects.MAX_IN_FLIGHT", 2)
    room = asyncio.Event()
    writer = Writer(Patched())
    recorder = EventRecorder(writer, controller="test")
    performer = Performer(writer, recorder, WebhookCalls(()), on_done=lambda _: None, on_room=room.set)
    for number in range(2):
        performer.perform(Notice(SetCondition("default", f"pod-{number}", "uid", REFUSED)))
    assert not performer.has_room
    async with asyncio.timeout(5):
        await room.wait()
    assert performer.has_room


class Patched:
    """An API server that accepts every write."""

    async def send(self, *_arguments: Any, **_more: Any) -> Response:
        await asyncio.sleep(0.01)
        return Response(200, b"{}", None)
