"""Scheduler, trigger controller and planner as three processes, each under its own account."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import grpc
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.live.pod_sets import (
    member,
    members,
    trigger,
    world,
)
from tests.live.processes import Running, account_without_triggers, running
from tests.waiting import eventually, eventually_async

from longshore.dev import ControlPlane

pytestmark = pytest.mark.control_plane

SERVICE = "planner-system/podset-planner"


@pytest.fixture(scope="module")
def planner(sets_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """`longshore planner`. Its Service, by which schedulers find it, is deleted afterwards."""
    folder = tmp_path_factory.mktemp("planner")
    with running(sets_plane, folder, "planner") as process:
        process.wait_for("serving plans")
        yield process
        assert process.stop() == 0
        assert "Traceback" not in process.log.read_text()
    sets_plane.kubectl("delete", "service", "podset-planner", "-n", "planner-system")


def address_of(planner: Running) -> str:
    return f"127.0.0.1:{planner.told('serving plans')[0]['port']}"


async def call(address: str, request: bytes) -> bytes:
    """Call the planner by path and bytes, in clear text, and again while it is still reading the cluster."""
    async with grpc.aio.insecure_channel(address) as channel:
        method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
            "/planner.SchedulePlanner/BuildSchedulePlan"
        )
        while True:
            try:
                answer: bytes = await method(request, timeout=15)
            except grpc.aio.AioRpcError as error:
                assert error.code() is grpc.StatusCode.UNAVAILABLE, error
                await asyncio.sleep(0.1)
            else:
                return answer


async def test_the_planner_answers_the_bytes_of_pallets_scheduler(
    sets_plane: ControlPlane, planner: Running
) -> None:
    """The request and the answer are written down in the protocol: p1 of planner-podset goes to n2."""
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    for name in ("n1", "n2"):
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "spec": {"unschedulable": name == "n1"},
            "status": {"allocatable": room},
        }
        sets_plane.kubectl("create", "-f", "-", input=json.dumps(node))
    sets_plane.kubectl("wait", "--for=condition=Ready", "node/n2", "--timeout=30s")
    sets_plane.kubectl("create", "-f", "-", input=json.dumps(member("p1", podset="planner-podset")))
    try:
        request = bytes.fromhex("0a0764656661756c74120e706c616e6e65722d706f647365741a02703122026e3122026e32")
        # Pods and nodes have separate watches.
        await eventually_async(
            lambda: call(address_of(planner), request), lambda answer: answer.hex() == "0a080a02703112026e32"
        )
    finally:
        sets_plane.kubectl("delete", "pod/p1", "node/n1", "node/n2", "--wait=false")


def metrics(process: Running) -> dict[str, float]:
    """Return the metrics about sets and plans, by name and label values."""
    families = text_string_to_metric_families(process.ask("/metrics")[1])
    return {
        " ".join((sample.name, *(sample.labels[key] for key in sorted(sample.labels)))): sample.value
        for family in families
        for sample in family.samples
        if sample.name.startswith(("longshore_podset_", "longshore_planner_")) and "le" not in sample.labels
    }


async def test_three_processes_hold_fire_plan_and_bind(
    sets_plane: ControlPlane, sets_namespace: str, planner: Running, tmp_path: Path
) -> None:
    """The scheduler may not write triggers."""

    def start(command: str, *arguments: str, kubeconfig: Path | None = None) -> Running:
        return stack.enter_context(running(sets_plane, tmp_path, command, *arguments, kubeconfig=kubeconfig))

    with ExitStack() as stack:
        address = f"{SERVICE}={address_of(planner)}"
        scheduler = start(
            *("run", "--controllers", "none", "--planner-address", address),
            kubeconfig=account_without_triggers(sets_plane),
        )
        controller = start("controller")
        for each in (scheduler, controller):
            await asyncio.to_thread(each.wait_for, "ready")
        for each in (scheduler, controller, planner):
            for path in ("/healthz", "/livez", "/readyz"):
                assert await asyncio.to_thread(each.ask, path) == (200, "ok")
        get = ("get", "service", "-n", "planner-system", "-o", "name")
        services = (await asyncio.to_thread(sets_plane.kubectl, *get)).split()
        assert services == ["service/planner-controller-manager-metrics-service", "service/podset-planner"]
        before = metrics(planner)
        async with world(sets_plane, sets_namespace) as here:
            await here.create(trigger(quiet="2s"), *members(3))
            await here.until_held(3)
            # Sets of earlier tests may be held too.
            assert metrics(scheduler)["longshore_podset_held_pods"] >= 3
            await here.until(lambda: bool(here.flips()))
            await here.until_placed(3)
            assert here.stored_plans() == [here.placed]
            await here.until(lambda: here.plan_condition("PlannerAnswered")[0] == "True")
            assert [each.status.planner for each in here.plans.values()] == [SERVICE]
            await here.until(lambda: here.trigger_condition("Fired")[0] == "True")
            # The controller has fired, and the scheduler has planned.
            told = {event["reason"]: event["reportingController"] for event in await here.events("go")}
            assert told == {"Fired": "longshore.dev/controller", "Planned": "longshore"}
            counted = metrics(scheduler)
            assert counted[f"longshore_podset_plans_total complete {SERVICE}"] >= 1
            assert not [name for name in counted if "fired" in name]
            await asyncio.to_thread(
                eventually,
                lambda: metrics(controller)["longshore_podset_triggers_fired_total quiet-time"] >= 1,
            )
            assert all("fired" in name for name in metrics(controller))
            name = "longshore_planner_plans_total complete"
            assert metrics(planner)[name] > before.get(name, 0)
        for each in (scheduler, controller):
            assert each.stop() == 0
