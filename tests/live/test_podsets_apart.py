"""Scheduler, trigger controller and planner as three processes, each under its own account."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import grpc
import pytest
from tests.live.podsets import Running, member, members, running, trigger, world

from longshore.dev import ControlPlane

pytestmark = pytest.mark.control_plane

SERVICE = "planner-system/podset-planner"


@pytest.fixture(scope="module")
def planner(sets_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of `longshore planner`; its Service, which schedulers find it by, goes afterwards."""
    folder = tmp_path_factory.mktemp("planner")
    with running(sets_plane, folder, "planner") as process:
        port = process.wait_for("serving plans")["port"]
        yield f"127.0.0.1:{port}"
        assert process.stop() == 0
        assert "Traceback" not in process.log.read_text()
    sets_plane.kubectl("delete", "service", "podset-planner", "-n", "planner-system")


async def call(address: str, request: bytes) -> bytes:
    """As a scheduler elsewhere calls it: by path and bytes, in clear text. It may still be reading."""
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
    sets_plane: ControlPlane, planner: str
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
        async with asyncio.timeout(20):
            # The pod and its node come by different watches.
            while (await call(planner, request)).hex() != "0a080a02703112026e32":
                await asyncio.sleep(0.1)
    finally:
        sets_plane.kubectl("delete", "pod/p1", "node/n1", "node/n2", "--wait=false")


async def test_three_processes_hold_fire_plan_and_bind(
    sets_plane: ControlPlane, sets_namespace: str, planner: str, tmp_path: Path
) -> None:
    def start(command: str, *arguments: str) -> Running:
        return stack.enter_context(running(sets_plane, tmp_path, command, *arguments))

    with ExitStack() as stack:
        scheduler = start("run", "--controllers", "none", "--planner-address", f"{SERVICE}={planner}")
        controller = start("controller")
        for each in (scheduler, controller):
            await asyncio.to_thread(each.wait_for, "ready")
        async with world(sets_plane, sets_namespace) as here:
            await here.create(trigger(quiet="2s"), *members(3))
            await here.until_held(3)
            await here.until(lambda: bool(here.flips()))
            await here.until_placed(3, within=5)
            assert here.stored_plans() == [here.placed]
            await here.until(lambda: all(each.status.planner == SERVICE for each in here.plans.values()))
            # The controller has fired, and the scheduler has planned.
            told = {event["reason"]: event["reportingController"] for event in await here.events("go")}
            assert told == {"Fired": "longshore.dev/controller", "Planned": "longshore"}
        for each in (scheduler, controller):
            assert each.stop() == 0
