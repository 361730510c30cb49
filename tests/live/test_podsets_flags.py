"""The flags for planner services, with all processes started from the command line."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest
from tests.live.planner_services import all_to
from tests.live.planners import Context, Planner
from tests.live.pod_sets import SCHEDULE, World, member, members, planner_service, trigger, world
from tests.live.processes import Running, running

from longshore.dev import ControlPlane
from longshore.dev.certificates import Authority
from longshore.dev.keys import Pair
from longshore.podset._pb import planner_pb2 as pb

pytestmark = pytest.mark.control_plane

SERVICE = "planner-system/podset-planner"


@pytest.fixture
def sets_service(sets_plane: ControlPlane) -> Iterator[None]:
    """Create the Service of `longshore planner` for the duration of the test."""
    yield
    sets_plane.kubectl("delete", "service", "podset-planner", "-n", "planner-system")


def serving(pair: Pair, clients: Path) -> tuple[str, ...]:
    return (
        f"--tls-cert-file={pair.public}",
        f"--tls-private-key-file={pair.private}",
        f"--client-ca-file={clients}",
    )


@pytest.mark.usefixtures("sets_service")
async def test_plans_by_mutual_tls(sets_plane: ControlPlane, sets_namespace: str, tmp_path: Path) -> None:
    """A scheduler with a certificate follows the planner. One without is refused, and plans by itself."""
    authority = Authority(tmp_path)
    ours = authority.client("scheduler", user="scheduler")
    theirs = authority.server("planner", hosts=["localhost"], addresses=["127.0.0.1"])
    shown = (f"--planner-certificate={ours.public}", f"--planner-key={ours.private}")

    def start(command: str, *arguments: str) -> Running:
        return stack.enter_context(running(sets_plane, tmp_path, command, *arguments))

    with ExitStack() as stack:
        planner = start("planner", *serving(theirs, authority.file))
        port = (await asyncio.to_thread(planner.wait_for, "serving plans"))["port"]
        assert planner.told("serving plans")[0]["tls"] is True
        calling = (f"--planner-address={SERVICE}=127.0.0.1:{port}", f"--planner-ca={authority.file}")
        async with world(sets_plane, sets_namespace) as here:
            await here.create(trigger(), *members(2), trigger("other", podset="other"))
            scheduler = start("run", *calling, *shown)
            await asyncio.to_thread(scheduler.wait_for, "ready")
            await here.until_held(2)
            await here.release()
            await here.until_placed(2)
            await here.until(lambda: here.plan_condition("PlannerAnswered") == ("True", ""))
            assert [each.status.planner for each in here.plans.values()] == [SERVICE]
            scheduler.crash()
            stranger = start("run", *calling)
            await asyncio.to_thread(stranger.wait_for, "ready")
            await here.create(member("late", podset="other"))
            await here.release("other")
            await here.until_placed(3)
            await here.until(lambda: here.plan_condition("PlannerAnswered", "other")[0] == "False")
            assert (
                "it may want another client certificate" in here.plan_condition("PlannerAnswered", "other")[1]
            )


class Place:
    """A namespace with a Service for all sets, and a stub behind it."""

    def __init__(self, name: str, stub: Planner) -> None:
        self.name = name
        self.stub = stub
        self.address = f"--planner-address={name}/svc={stub.address}"


@asynccontextmanager
async def place(here: World, node: str) -> AsyncIterator[Place]:
    """Run a stub that plans this node for the pod `followed`, and nothing for other pods."""

    async def answer(_message: bytes, _context: Context) -> bytes:
        nodes = all_to(node, "followed")(pb.SchedulePlanRequest())
        return pb.SchedulePlanResponse(assignments=nodes).SerializeToString()

    name = f"planner-{secrets.token_hex(4)}"
    here.plane.create_namespace(name)
    async with Planner(answer).running() as stub:
        there = World(here.plane, here.client, name, [])
        await there.create(planner_service("svc", "default"))
        try:
            yield Place(name, stub)
        finally:
            # The deletion of the namespace takes a while, and its planner would plan all sets of the cluster.
            await there.delete("Service", "svc")
            here.plane.delete_namespace(name)


async def test_only_planners_in_allowed_namespaces_are_called_without_a_fallback(
    sets_plane: ControlPlane, sets_namespace: str, tmp_path: Path
) -> None:
    async with (
        world(sets_plane, sets_namespace) as here,
        place(here, here.nodes[1]) as allowed,
        place(here, here.nodes[2]) as other,
    ):
        flags = ("--planner-fallback=none", f"--planner-namespace={allowed.name}")
        with running(sets_plane, tmp_path, "run", *flags, allowed.address, other.address) as scheduler:
            await asyncio.to_thread(scheduler.wait_for, "ready")
            await here.create(trigger(state=SCHEDULE), member("followed"))
            await here.until_placed(1)
            assert here.placed == {"followed": here.nodes[1]}
            await here.create(trigger("x", podset="x", state=SCHEDULE), member("unknown", podset="x"))
            await here.until(lambda: here.condition("unknown")[0] == "WaitingForPlanner")
            assert f"planner {allowed.name}/svc" in here.condition("unknown")[1]
            await here.stays(lambda: list(here.placed) == ["followed"], 1)
        assert len(allowed.stub.heard) >= 2
        assert other.stub.heard == []
