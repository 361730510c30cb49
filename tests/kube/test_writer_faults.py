"""A write happens once, whatever happens to its response. The API server is real, the faults are scripted."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.kube.churn import pod_body
from tests.kube.proxy import AnswerLate, Asked, DropBefore, Fault, LandLate, LoseAnswer, Proxy, Refuse
from tests.waiting import eventually_async

from longshore.dev import ControlPlane
from longshore.dev.fixtures import Repetitions
from longshore.engine import Conflict, Failed, Gone, RecordEvent, Succeeded
from longshore.kube.config import load
from longshore.kube.errors import ApiError, ConnectionFailed
from longshore.kube.pool import Pool
from longshore.kube.recorder import EVENTS, EventRecorder
from longshore.kube.resources import PODS
from longshore.kube.writer import Patch, Writer

TIMEOUT = 0.4


@pytest.fixture
async def proxy(control_plane: ControlPlane) -> AsyncIterator[Proxy]:
    async with Proxy(load(control_plane.kubeconfig)).running() as proxy:
        yield proxy


@asynccontextmanager
async def writing(proxy: Proxy, *, give_up_after: float = 30.0) -> AsyncIterator[Writer]:
    async with Pool(proxy.connection, size=16) as pool:
        yield Writer(pool, concurrency=16, timeout=TIMEOUT, give_up_after=give_up_after)


def once(method: str, fault: Fault) -> Callable[[Asked], Fault | None]:
    """A script with a fault for the first request with this method; all others pass."""
    struck = False

    def script(asked: Asked) -> Fault | None:
        nonlocal struck
        if asked.method != method or struck:
            return None
        struck = True
        return fault

    return script


def pod(control_plane: ControlPlane, namespace: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        control_plane.kubectl("get", "pod", name, "-n", namespace, "-o", "json")
    )
    return found


LOST = {
    "answer lost": LoseAnswer(),
    "answered too late": AnswerLate(seconds=3 * TIMEOUT),
    "connection lost before": DropBefore(),
    "landed after we gave up": LandLate(seconds=TIMEOUT * 1.05),
    "too busy": Refuse(429, "TooManyRequests", retry_after=1),
    "broken": Refuse(500, "InternalError"),
    "unavailable": Refuse(503, "ServiceUnavailable"),
}


@pytest.mark.parametrize("fault", LOST.values(), ids=LOST.keys())
async def test_a_bind_survives_each_fault(
    fault: Fault, proxy: Proxy, control_plane: ControlPlane, namespace: str
) -> None:
    async with writing(proxy) as writer:
        made = json.loads(await writer.create(PODS, namespace, pod_body("web", {})))
        proxy.script = once("POST", fault)
        outcome = await writer.bind(namespace, "web", made["metadata"]["uid"], "node-1")
    assert outcome == Succeeded()
    assert pod(control_plane, namespace, "web")["spec"]["nodeName"] == "node-1"


async def test_a_bind_that_succeeded_is_not_sent_again(proxy: Proxy, namespace: str) -> None:
    async with writing(proxy) as writer:
        made = json.loads(await writer.create(PODS, namespace, pod_body("web", {})))
        proxy.script = once("POST", LoseAnswer())
        await writer.bind(namespace, "web", made["metadata"]["uid"], "node-1")
    assert sum(asked.path.endswith("/binding") for asked in proxy.asked) == 1


async def test_a_bind_conflicts_with_another_scheduler_that_was_faster(
    proxy: Proxy, control_plane: ControlPlane, namespace: str
) -> None:
    """Our request is lost, and another scheduler is faster: the result is a conflict."""
    async with writing(proxy) as writer, Pool(load(control_plane.kubeconfig)) as direct:
        made = json.loads(await writer.create(PODS, namespace, pod_body("web", {})))
        uid = made["metadata"]["uid"]
        proxy.script = once("POST", LandLate(seconds=3 * TIMEOUT))
        ours = asyncio.create_task(writer.bind(namespace, "web", uid, "node-1"))
        await eventually_async(lambda: proxy.faults, what="held back by the proxy")
        assert await Writer(direct).bind(namespace, "web", uid, "node-2") == Succeeded()
        assert isinstance(await ours, Conflict)


async def test_a_bind_of_a_replaced_pod_with_the_same_name_conflicts(proxy: Proxy, namespace: str) -> None:
    async with writing(proxy) as writer:
        await writer.create(PODS, namespace, pod_body("web", {}))
        outcome = await writer.bind(namespace, "web", "00000000-0000-0000-0000-000000000000", "node-1")
    assert isinstance(outcome, Conflict)


async def test_a_bind_of_a_pod_that_is_gone_is_reported(proxy: Proxy, namespace: str) -> None:
    async with writing(proxy) as writer:
        assert isinstance(await writer.bind(namespace, "web", "", "node-1"), Gone)


async def test_a_bind_gives_up_when_nothing_responds(proxy: Proxy, namespace: str) -> None:
    proxy.script = lambda _asked: DropBefore()
    async with writing(proxy, give_up_after=1.0) as writer:
        assert isinstance(await writer.bind(namespace, "web", "", "node-1"), Failed)


async def test_waiting_for_a_slot_does_not_count_against_the_time_limit_of_a_write(
    proxy: Proxy, namespace: str
) -> None:
    async with Pool(proxy.connection) as pool:
        writer = Writer(pool, concurrency=1, timeout=5.0, give_up_after=1.0)
        names = [f"web-{number}" for number in range(5)]
        for name in names:
            await writer.create(PODS, namespace, pod_body(name, {}))
        seen: set[str] = set()

        def script(asked: Asked) -> Fault | None:
            """Reject each bind once, then delay it: the last one waits for two seconds."""
            if asked.method == "GET":
                return None
            first = asked.path not in seen
            seen.add(asked.path)
            return Refuse(429, "TooManyRequests", retry_after=0) if first else AnswerLate(0.4)

        proxy.script = script
        outcomes = await asyncio.gather(*(writer.bind(namespace, name, "", "node-1") for name in names))
    assert outcomes == [Succeeded()] * 5


@pytest.mark.parametrize("fault", LOST.values(), ids=LOST.keys())
async def test_create_update_patch_and_delete_survive_each_fault(
    fault: Fault, proxy: Proxy, control_plane: ControlPlane, namespace: str
) -> None:
    async with writing(proxy) as writer:
        proxy.script = once("POST", fault)
        made = json.loads(await writer.create(PODS, namespace, pod_body("web", {"step": "created"})))
        assert made["metadata"]["labels"] == {"step": "created"}

        proxy.script = once("PUT", fault)
        made["metadata"]["labels"] = {"step": "updated"}
        await writer.update(PODS, namespace, "web", made)
        assert pod(control_plane, namespace, "web")["metadata"]["labels"] == {"step": "updated"}

        for kind in (Patch.MERGE, Patch.STRATEGIC):
            proxy.script = once("PATCH", fault)
            patch = {"metadata": {"labels": {"step": kind.name.lower()}}}
            await writer.patch(PODS, namespace, "web", patch, kind=kind)
            assert pod(control_plane, namespace, "web")["metadata"]["labels"] == {"step": kind.name.lower()}

        proxy.script = once("DELETE", fault)
        await writer.delete(PODS, namespace, "web", uid=made["metadata"]["uid"])
    assert control_plane.kubectl("get", "pods", "-n", namespace, "-o", "name") == ""


async def test_an_update_with_a_lost_response_conflicts_after_a_change_by_another_client(
    proxy: Proxy, control_plane: ControlPlane, namespace: str
) -> None:
    async with writing(proxy) as writer:
        made = json.loads(await writer.create(PODS, namespace, pod_body("web", {"by": "nobody"})))
        proxy.script = once("PUT", LandLate(seconds=3 * TIMEOUT))
        update = asyncio.create_task(
            writer.update(
                PODS, namespace, "web", made | {"metadata": made["metadata"] | {"labels": {"by": "us"}}}
            )
        )
        await eventually_async(lambda: proxy.faults, what="held back by the proxy")
        async with Pool(load(control_plane.kubeconfig)) as direct:
            await Writer(direct).patch(PODS, namespace, "web", {"metadata": {"labels": {"by": "another"}}})
        with pytest.raises(ApiError) as refused:
            await update
    assert refused.value.status == 409
    assert pod(control_plane, namespace, "web")["metadata"]["labels"] == {"by": "another"}


async def test_a_create_conflicts_with_another_object_of_the_name(proxy: Proxy, namespace: str) -> None:
    async with writing(proxy) as writer:
        await writer.create(PODS, namespace, pod_body("web", {"by": "another"}))
        proxy.script = once("POST", DropBefore())
        with pytest.raises(ApiError) as refused:
            await writer.create(PODS, namespace, pod_body("web", {"by": "us"}))
    assert refused.value.status == 409


async def test_a_lost_response_that_cannot_be_resolved_is_raised(proxy: Proxy, namespace: str) -> None:
    async with writing(proxy) as writer:
        body = pod_body("web", {})
        body["metadata"] = {"generateName": "web-"}
        proxy.script = once("POST", LoseAnswer())
        with pytest.raises(ConnectionFailed):
            await writer.create(PODS, namespace, body)
        proxy.script = lambda _asked: None
        await writer.create(PODS, namespace, pod_body("web", {}))
        proxy.script = once("PATCH", LoseAnswer())
        with pytest.raises(ConnectionFailed):
            step = {"op": "add", "path": "/metadata/labels/step", "value": "patched"}
            await writer.patch(PODS, namespace, "web", [step], kind=Patch.JSON)


async def test_applying_twice_gives_the_same_result_as_once(
    proxy: Proxy, control_plane: ControlPlane, namespace: str
) -> None:
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"by": "apply"}}}
    async with writing(proxy) as writer:
        await writer.create(PODS, namespace, pod_body("web", {}))
        proxy.script = once("PATCH", LoseAnswer())
        await writer.patch(PODS, namespace, "web", body, kind=Patch.APPLY, force=True)
        await writer.patch(PODS, namespace, "web", body, kind=Patch.APPLY, force=True)
    assert pod(control_plane, namespace, "web")["metadata"]["labels"]["by"] == "apply"


async def test_many_binds_succeed_once_under_random_faults(
    proxy: Proxy, control_plane: ControlPlane, namespace: str, repetitions: Repetitions
) -> None:
    """Every pod ends on its node, and no bind that succeeded is sent again."""
    count = repetitions(full=2000, short=100)
    rng = random.Random(5)
    landed: set[str] = set()
    again: list[str] = []

    def script(asked: Asked) -> Fault | None:
        if not asked.path.endswith("/binding"):
            return rng.choice([None, None, Refuse(500)])
        if asked.path in landed:
            again.append(asked.path)
        fault = rng.choice(
            [
                None,
                LoseAnswer(),
                DropBefore(),
                AnswerLate(2 * TIMEOUT),
                Refuse(429, retry_after=0),
                Refuse(503),
            ]
        )
        if fault is None or isinstance(fault, LoseAnswer | AnswerLate):
            landed.add(asked.path)
        return fault

    async with Pool(load(control_plane.kubeconfig)) as direct, writing(proxy, give_up_after=120.0) as writer:
        creator = Writer(direct)
        names = [f"web-{number}" for number in range(count)]
        bodies = await asyncio.gather(
            *(creator.create(PODS, namespace, pod_body(name, {})) for name in names)
        )
        uids = [json.loads(body)["metadata"]["uid"] for body in bodies]
        proxy.script = script
        outcomes = await asyncio.gather(
            *(
                writer.bind(namespace, name, uid, f"node-{number % 3}")
                for number, (name, uid) in enumerate(zip(names, uids, strict=True))
            )
        )
    assert Counter(map(type, outcomes)) == {Succeeded: count}
    listed = json.loads(control_plane.kubectl("get", "pods", "-n", namespace, "-o", "json"))["items"]
    placed = {item["metadata"]["name"]: item["spec"]["nodeName"] for item in listed}
    assert placed == {name: f"node-{number % 3}" for number, name in enumerate(names)}
    assert again == []


def event(namespace: str, note: str = "0/3 nodes are available: 3 Insufficient cpu.") -> RecordEvent:
    return RecordEvent(namespace, "web", "some-uid", "Warning", "FailedScheduling", "Scheduling", note)


def events(control_plane: ControlPlane, namespace: str) -> list[dict[str, Any]]:
    listed = control_plane.kubectl("get", f"{EVENTS.plural}.{EVENTS.group}", "-n", namespace, "-o", "json")
    items: list[dict[str, Any]] = json.loads(listed)["items"]
    return items


async def test_repeated_events_become_one_event_with_a_count(
    proxy: Proxy, control_plane: ControlPlane, namespace: str
) -> None:
    async with writing(proxy) as writer:
        recorder = EventRecorder(writer, controller="longshore")
        for _ in range(10):
            recorder.record(event(namespace))
            await asyncio.sleep(0)
        recorder.record(event(namespace, note="something else"))
        await recorder.flush()
    seen = {each["note"]: each.get("series", {}).get("count", 1) for each in events(control_plane, namespace)}
    assert seen == {"0/3 nodes are available: 3 Insufficient cpu.": 10, "something else": 1}
    assert sum(asked.method == "PATCH" for asked in proxy.asked) < 6


async def test_an_event_with_a_lost_response_is_written_once(
    proxy: Proxy, control_plane: ControlPlane, namespace: str
) -> None:
    async with writing(proxy) as writer:
        recorder = EventRecorder(writer, controller="longshore")
        proxy.script = once("POST", LoseAnswer())
        recorder.record(event(namespace))
        await recorder.flush()
    assert len(events(control_plane, namespace)) == 1


async def test_an_event_that_is_forbidden_does_not_stop_others(proxy: Proxy, namespace: str) -> None:
    proxy.script = lambda _asked: Refuse(403, "Forbidden")
    async with writing(proxy) as writer:
        recorder = EventRecorder(writer, controller="longshore")
        for number in range(5):
            recorder.record(event(namespace, note=str(number)))
        await recorder.flush()
    assert recorder.dropped == 5


async def test_a_repeated_event_that_has_expired_starts_again(
    proxy: Proxy, control_plane: ControlPlane, namespace: str
) -> None:
    async with writing(proxy) as writer:
        recorder = EventRecorder(writer, controller="longshore")
        recorder.record(event(namespace))
        await recorder.flush()
        control_plane.kubectl("delete", "events.events.k8s.io", "--all", "-n", namespace)
        recorder.record(event(namespace))
        await recorder.flush()
    assert len(events(control_plane, namespace)) == 1
