"""Planner services on a real cluster: which of them is asked, what for, and what its answer is worth.

Planners are stubs on this machine, made of the protocol's text alone; the scheduler is told their addresses.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager

import pytest
import yaml
from tests.live.planners import Context, Planner
from tests.live.pods import manifest
from tests.live.podsets import (
    SCHEDULE,
    Running,
    World,
    member,
    members,
    plan,
    planner_service,
    running,
    trigger,
    world,
)

from longshore.api.podset import SCHEDULER_NAME
from longshore.dev import ControlPlane
from longshore.dev.ports import Port
from longshore.kube._pb import planner_pb2 as pb

pytestmark = pytest.mark.control_plane

CALL_SECONDS = 2.0
Nodes = Callable[[pb.SchedulePlanRequest], Mapping[str, str]]


class Arena:
    """Two namespaces for planner services: `one` and `other`, each with an address on this machine."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.names = {each: f"planner-{secrets.token_hex(4)}" for each in ("one", "other")}
        self.ports = {each: Port() for each in self.names}

    def arguments(self, fallback: str) -> dict[str, object]:
        """Of the plugin. Whatever is the name of the Service, it is `svc` here."""
        return {
            "callTimeout": f"{CALL_SECONDS:g}s",
            "plannerFallback": fallback,
            "plannerNamespaces": list(self.names.values()),
            "plannerAddresses": {
                f"{name}/svc": f"127.0.0.1:{self.ports[each].number}" for each, name in self.names.items()
            },
        }

    @asynccontextmanager
    async def planner(self, each: str, answer: Nodes) -> AsyncIterator[Planner]:
        """A stub that listens there, and answers at once."""

        async def respond(message: bytes, context: Context) -> bytes:
            nodes = answer(pb.SchedulePlanRequest.FromString(message))
            return pb.SchedulePlanResponse(assignments=nodes).SerializeToString()

        async with Planner(respond).running(port=self.ports[each].number) as stub:
            yield stub

    @asynccontextmanager
    async def service(
        self, here: World, each: str, label: str, value: str = "enabled"
    ) -> AsyncIterator[None]:
        place = World(self.plane, here.client, self.names[each], [])
        await place.create(planner_service("svc", label, value))
        # The scheduler hears of it by another watch than that of pods.
        await asyncio.sleep(0.1)
        try:
            yield
        finally:
            await place.delete("Service", "svc")
            await asyncio.sleep(0.1)


def configuration(arena: Arena, fallback: str) -> str:
    profile = {
        "schedulerName": SCHEDULER_NAME,
        "plugins": {
            "multiPoint": {
                "enabled": [{"name": "PodSetPlanner"}],
                "disabled": [{"name": "DefaultPreemption"}],
            }
        },
        "pluginConfig": [{"name": "PodSetPlanner", "args": arena.arguments(fallback)}],
    }
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return yaml.safe_dump(head | {"profiles": [{"schedulerName": "longshore"}, profile]})


@pytest.fixture(scope="module")
def arena(sets_plane: ControlPlane) -> Iterator[Arena]:
    made = Arena(sets_plane)
    for name in made.names.values():
        sets_plane.create_namespace(name)
    yield made
    for each in made.names:
        sets_plane.delete_namespace(made.names[each])
        made.ports[each].release()


@pytest.fixture(scope="module", params=["built-in"])
def scheduler(
    request: pytest.FixtureRequest, arena: Arena, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """With the fallback that the tests name, built-in if they name none."""
    folder = tmp_path_factory.mktemp("planners")
    file = folder / "scheduler.yaml"
    file.write_text(configuration(arena, request.param))
    with running(arena.plane, folder, "run", "--config", str(file)) as started:
        started.wait_for("ready")
        yield started
        assert started.process.poll() is None, started.log.read_text()


without_fallback = pytest.mark.parametrize("scheduler", ["none"], indirect=True)


@pytest.fixture
async def here(arena: Arena, scheduler: Running, sets_namespace: str) -> AsyncIterator[World]:
    async with world(arena.plane, sets_namespace) as made:
        yield made


def all_to(node: str, *names: str) -> Nodes:
    return lambda _request: dict.fromkeys(names, node)


async def planner_of(here: World, podset: str) -> str:
    """Who is said to have made the plan."""
    found = here.plan(podset)
    assert found is not None
    name = found.metadata.name
    await here.until(lambda: here.plans[name].status.planner is not None)
    return here.plans[name].status.planner or ""


# Which of them is asked, and what for.


async def test_a_set_goes_by_its_own_planner_and_others_by_the_default_one(here: World, arena: Arena) -> None:
    first, second, third = here.nodes
    # A set that nobody else has.
    own = f"x-{here.namespace}"
    async with (
        arena.planner("one", all_to(first, "x-1", "x-2", "y")),
        arena.planner("other", all_to(second, "x-1", "y")),
        arena.service(here, "one", "default"),
    ):
        async with arena.service(here, "other", own):
            await here.create(trigger("x", podset=own, state=SCHEDULE), member("x-1", podset=own))
            await here.create(trigger("y", podset="y", state=SCHEDULE), member("y", podset="y"))
            await here.until_placed(2)
            assert here.placed == {"x-1": second, "y": first}
            assert await planner_of(here, own) == f"{arena.names['other']}/svc"
        await here.create(member("x-2", podset=own))
        await here.until_placed(3)
        assert here.placed["x-2"] == first
    # With nobody left to ask, the planner that is built in does it.
    await here.create(member("x-3", podset=own))
    await here.until_placed(4)
    assert here.placed["x-3"] == third


async def test_a_service_whose_label_is_not_enabled_is_not_asked(here: World, arena: Arena) -> None:
    async with (
        arena.planner("one", all_to(here.nodes[0], "a")) as stub,
        arena.service(here, "one", "default", "disabled"),
    ):
        await here.create(trigger(state=SCHEDULE), member("a"))
        await here.until_placed(1)
    assert stub.heard == []


async def test_the_request_is_what_pallet_sends(here: World, arena: Arena) -> None:
    """One call for the whole set; its nodes are those that will do for the pod it names."""
    await here.patch("Node", here.nodes[1], {"spec": {"unschedulable": True}})
    await asyncio.sleep(0.3)
    async with (
        arena.planner("one", all_to(here.nodes[0], "pod-0", "pod-1", "pod-2")) as stub,
        arena.service(here, "one", "default"),
    ):
        await here.create(trigger(), *members(3))
        await here.until_held(3)
        await here.release()
        await here.until_placed(3)
    [heard] = stub.heard
    asked = pb.SchedulePlanRequest.FromString(heard.message)
    assert (asked.namespace, asked.podSet, asked.scheduledPod) == (here.namespace, "batch", "pod-0")
    assert sorted(asked.eligibleNodes) == [here.nodes[0], here.nodes[2]]
    assert 0 < heard.seconds_left <= CALL_SECONDS
    # In clear text and without a word about who asks.
    assert not {"authorization", "grpc-encoding"} & heard.metadata.keys()


async def test_a_pod_with_an_entry_is_nobodys_to_plan(here: World, arena: Arena) -> None:
    async with (
        arena.planner("one", all_to(here.nodes[0], "a")) as stub,
        arena.service(here, "one", "default"),
    ):
        await here.create(trigger(state=SCHEDULE), plan(here.namespace, {"a": here.nodes[2]}))
        await here.until(lambda: bool(here.plans))
        await here.create(member("a"))
        await here.until_placed(1)
    assert here.placed == {"a": here.nodes[2]}
    assert stub.heard == []


async def test_a_planned_node_that_will_not_do_any_more_is_not_offered_to_the_planner_again(
    here: World, arena: Arena
) -> None:
    first, second, _ = here.nodes
    async with (
        arena.planner("one", all_to(second, "a")) as stub,
        arena.service(here, "one", "default"),
    ):
        await here.create(trigger(), plan(here.namespace, {"a": first}), member("a"))
        await here.until_held(1)
        await here.patch("Node", first, {"spec": {"unschedulable": True}})
        await asyncio.sleep(0.3)
        await here.release()
        await here.until_placed(1)
    assert here.placed == {"a": second}
    await here.until_plan_tells_the_truth()
    [heard] = stub.heard
    assert first not in pb.SchedulePlanRequest.FromString(heard.message).eligibleNodes


# What its answer is worth.


def leaves_out(_request: pb.SchedulePlanRequest) -> Mapping[str, str]:
    return {}


def invents(_request: pb.SchedulePlanRequest) -> Mapping[str, str]:
    return {"pod-0": "no-such-node", "pod-1": "no-such-node"}


def breaks(_request: pb.SchedulePlanRequest) -> Mapping[str, str]:
    raise RuntimeError("out of cheese")


@pytest.mark.parametrize("answer", [leaves_out, invents, breaks], ids=lambda each: each.__name__)
async def test_what_is_wrong_with_an_answer_is_mended_and_told(
    here: World, arena: Arena, answer: Nodes
) -> None:
    async with arena.planner("one", answer), arena.service(here, "one", "default"):
        await here.create(trigger(state=SCHEDULE), *members(2))
        await here.until_placed(2)
        await here.until_plan_tells_the_truth()
    assert set(here.placed.values()) <= set(here.nodes)
    assert all(set(entries.values()) <= set(here.nodes) for entries in here.stored_plans())
    told = [event["note"] for event in await here.events("go") if event["reason"] == "PlannerFailed"]
    assert told
    assert all(f"planner {arena.names['one']}/svc" in note for note in told)


async def test_an_answer_that_overfills_a_node_is_followed_as_far_as_there_is_room(
    here: World, arena: Arena
) -> None:
    names = [f"pod-{number}" for number in range(3)]
    async with (
        arena.planner("one", all_to(here.nodes[0], *names)),
        arena.service(here, "one", "default"),
    ):
        await here.create(trigger(), *members(3, cpu="2"))
        await here.until_held(3)
        await here.release()
        await here.until_placed(3)
    assert list(here.placed.values()).count(here.nodes[0]) == 2
    assert here.stored_plans() == [here.placed]


async def test_of_two_planners_the_one_that_answers_is_followed(here: World, arena: Arena) -> None:
    async with (
        arena.planner("one", breaks),
        arena.planner("other", all_to(here.nodes[1], "a")),
        arena.service(here, "one", "default"),
        arena.service(here, "other", "default"),
    ):
        await here.create(trigger(state=SCHEDULE), member("a"))
        await here.until_placed(1)
    assert here.placed == {"a": here.nodes[1]}
    assert await planner_of(here, "batch") == f"{arena.names['other']}/svc"


async def test_a_planner_that_hangs_is_given_up_and_delays_nobody_else(here: World, arena: Arena) -> None:
    async def sleep(message: bytes, context: Context) -> bytes:
        await asyncio.sleep(60)
        return b""

    stub = Planner(sleep)
    async with (
        stub.running(port=arena.ports["one"].number),
        arena.service(here, "one", "default"),
    ):
        await here.create(trigger(), member("a"))
        await here.until_held(1)
        await here.release()
        async with asyncio.timeout(5):
            while not stub.heard:
                await asyncio.sleep(0.01)
        await here.create(manifest("web", scheduler=SCHEDULER_NAME))
        await here.until_placed(1, within=1)
        assert list(here.placed) == ["web"]
        await here.until_placed(2, within=CALL_SECONDS + 3)
    notes = [event["note"] for event in await here.events("go")]
    assert any(f"did not answer within {CALL_SECONDS:g} s" in note for note in notes)


# Nobody may stand in.


@without_fallback
async def test_without_a_fallback_pods_wait_until_their_planner_is_up_and_say_so(
    here: World, arena: Arena
) -> None:
    async with arena.service(here, "one", "default"):
        await here.create(trigger(state=SCHEDULE), member("a"))
        await here.until(lambda: here.condition("a")[0] == "WaitingForPlanner")
        assert f"planner {arena.names['one']}/svc" in here.condition("a")[1]
        await here.stays(lambda: not here.placed and not here.plans, 1)
        async with arena.planner("one", all_to(here.nodes[1], "a")):
            # As long as it waits between two calls.
            await here.until_placed(1, within=12)
    assert here.placed == {"a": here.nodes[1]}
    await here.until_plan_tells_the_truth()


@without_fallback
async def test_without_a_fallback_an_answer_with_a_node_that_is_not_there_binds_nobody(
    here: World, arena: Arena
) -> None:
    async with arena.planner("one", invents), arena.service(here, "one", "default"):
        await here.create(trigger(state=SCHEDULE), *members(2))
        await here.until(lambda: here.condition("pod-1")[0] == "WaitingForPlanner")
        await here.stays(lambda: not here.placed and not here.plans, 1)


def test_the_stub_speaks_what_the_protocol_says() -> None:
    """By bytes that were computed from the protocol's text elsewhere."""
    request = pb.SchedulePlanRequest(
        namespace="default", podSet="planner-podset", scheduledPod="p1", eligibleNodes=["n1", "n2"]
    )
    assert request.SerializeToString().hex() == (
        "0a0764656661756c74120e706c616e6e65722d706f647365741a02703122026e3122026e32"
    )
    assert pb.SchedulePlanResponse(assignments={"p1": "n2"}).SerializeToString().hex() == (
        "0a080a02703112026e32"
    )
