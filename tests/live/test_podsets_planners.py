"""Planner services on a real cluster: which of them is asked, for what, and how its answer is used.

Planners are stubs on this machine, written from the protocol's text. The scheduler knows their addresses.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping

import pytest
from tests.live.planner_services import CALL_SECONDS, Nodes, PlannerServices, all_to, configuration
from tests.live.planners import Context, Planner
from tests.live.pod_sets import (
    SCHEDULE,
    World,
    member,
    members,
    plan,
    trigger,
    world,
)
from tests.live.pods import manifest
from tests.live.processes import Running, running
from tests.waiting import eventually_async

from longshore.api.pod_set import SCHEDULER_NAME
from longshore.dev import ControlPlane
from longshore.podset._pb import planner_pb2 as pb

pytestmark = pytest.mark.control_plane


@pytest.fixture(scope="module")
def services(sets_plane: ControlPlane) -> Iterator[PlannerServices]:
    made = PlannerServices(sets_plane)
    for name in made.names.values():
        sets_plane.create_namespace(name)
    yield made
    for each in made.names:
        sets_plane.delete_namespace(made.names[each])
        made.ports[each].release()


@pytest.fixture(scope="module", params=["built-in"])
def scheduler(
    request: pytest.FixtureRequest, services: PlannerServices, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """`longshore run` with the fallback that the tests specify, built-in by default."""
    folder = tmp_path_factory.mktemp("planners")
    file = folder / "scheduler.yaml"
    file.write_text(configuration(services, request.param))
    with running(services.plane, folder, "run", "--config", str(file)) as started:
        started.wait_for("ready")
        yield started
        assert started.process.poll() is None, started.log.read_text()


without_fallback = pytest.mark.parametrize("scheduler", ["none"], indirect=True)


@pytest.fixture
async def here(services: PlannerServices, scheduler: Running, sets_namespace: str) -> AsyncIterator[World]:
    services.scheduler = scheduler
    async with world(services.plane, sets_namespace) as made:
        yield made


async def planner_of(here: World, podset: str) -> str:
    """Return the planner in the status of the plan."""
    found = here.plan(podset)
    assert found is not None
    name = found.metadata.name
    await here.until(lambda: here.plans[name].status.planner is not None)
    return here.plans[name].status.planner or ""


# The choice of the planner, and the requests to it.


async def test_a_set_goes_by_its_own_planner_and_others_by_the_default_one(
    here: World, services: PlannerServices
) -> None:
    first, second, third = here.nodes
    # A set with a name that no other test uses.
    own = f"x-{here.namespace}"
    async with (
        services.planner("one", all_to(first, "x-1", "x-2", "y")),
        services.planner("other", all_to(second, "x-1", "y")),
        services.service(here, "one", "default"),
    ):
        async with services.service(here, "other", own):
            await here.create(trigger("x", podset=own, state=SCHEDULE), member("x-1", podset=own))
            await here.create(trigger("y", podset="y", state=SCHEDULE), member("y", podset="y"))
            await here.until_placed(2)
            assert here.placed == {"x-1": second, "y": first}
            assert await planner_of(here, own) == f"{services.names['other']}/svc"
        await here.create(member("x-2", podset=own))
        await here.until_placed(3)
        assert here.placed["x-2"] == first
    # With no planner left to ask, the built-in planner plans.
    await here.create(member("x-3", podset=own))
    await here.until_placed(4)
    assert here.placed["x-3"] == third


async def test_a_service_that_loses_its_label_is_not_asked_any_more(
    here: World, services: PlannerServices
) -> None:
    first, second, _ = here.nodes
    own = f"x-{here.namespace}"
    async with (
        services.planner("one", all_to(first, "x-2")),
        services.planner("other", all_to(second, "x-1", "x-2")),
        services.service(here, "one", "default"),
        services.service(here, "other", own) as place,
    ):
        await here.create(trigger("x", podset=own, state=SCHEDULE), member("x-1", podset=own))
        await here.until_placed(1)
        await services.label(place, f"planner.ciena.io/{own}", None)
        await here.create(member("x-2", podset=own))
        await here.until_placed(2)
    assert here.placed == {"x-1": second, "x-2": first}


async def test_a_service_whose_label_is_not_enabled_is_not_asked(
    here: World, services: PlannerServices
) -> None:
    async with (
        services.planner("one", all_to(here.nodes[0], "a")) as stub,
        services.service(here, "one", "default", "disabled"),
    ):
        await here.create(trigger(state=SCHEDULE), member("a"))
        await here.until_placed(1)
    assert stub.heard == []


async def test_the_request_is_what_pallet_sends(here: World, services: PlannerServices) -> None:
    """There is one call for the whole set. Its nodes are those that fit the pod that it names."""
    await here.patch("Node", here.nodes[1], {"spec": {"unschedulable": True}})
    await here.until_the_scheduler_knows_all()
    async with (
        services.planner("one", all_to(here.nodes[0], "pod-0", "pod-1", "pod-2")) as stub,
        services.service(here, "one", "default"),
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
    # In clear text and without credentials.
    assert not {"authorization", "grpc-encoding"} & heard.metadata.keys()


async def test_no_planner_is_asked_about_a_pod_with_an_entry(here: World, services: PlannerServices) -> None:
    async with (
        services.planner("one", all_to(here.nodes[0], "a")) as stub,
        services.service(here, "one", "default"),
    ):
        await here.create(trigger(state=SCHEDULE), plan(here.namespace, {"a": here.nodes[2]}))
        await here.until(lambda: bool(here.plans))
        await here.create(member("a"))
        await here.until_placed(1)
    assert here.placed == {"a": here.nodes[2]}
    assert stub.heard == []


async def test_a_planned_node_that_no_longer_fits_is_not_offered_to_the_planner_again(
    here: World, services: PlannerServices
) -> None:
    first, second, _ = here.nodes
    async with (
        services.planner("one", all_to(second, "a")) as stub,
        services.service(here, "one", "default"),
    ):
        await here.create(trigger(), plan(here.namespace, {"a": first}), member("a"))
        await here.until_held(1)
        await here.patch("Node", first, {"spec": {"unschedulable": True}})
        await here.until_the_scheduler_knows_all()
        await here.release()
        await here.until_placed(1)
    assert here.placed == {"a": second}
    await here.until_plan_tells_the_truth()
    await here.until(lambda: here.plan_condition("PlannedAgain")[0] == "True")
    assert here.plan_condition("PlannerAnswered") == ("True", "")
    [heard] = stub.heard
    assert first not in pb.SchedulePlanRequest.FromString(heard.message).eligibleNodes


# The use of its answer.


def leaves_out(_request: pb.SchedulePlanRequest) -> Mapping[str, str]:
    return {}


def invents(_request: pb.SchedulePlanRequest) -> Mapping[str, str]:
    return {"pod-0": "no-such-node", "pod-1": "no-such-node"}


def breaks(_request: pb.SchedulePlanRequest) -> Mapping[str, str]:
    raise RuntimeError("out of cheese")


@pytest.mark.parametrize("answer", [leaves_out, invents, breaks], ids=lambda each: each.__name__)
async def test_invalid_entries_of_an_answer_are_corrected_and_reported(
    here: World, services: PlannerServices, answer: Nodes
) -> None:
    async with services.planner("one", answer), services.service(here, "one", "default"):
        await here.create(trigger(state=SCHEDULE), *members(2))
        await here.until_placed(2)
        await here.until_plan_tells_the_truth()
    assert set(here.placed.values()) <= set(here.nodes)
    assert all(set(entries.values()) <= set(here.nodes) for entries in here.stored_plans())
    told = [event["note"] for event in await here.events("go") if event["reason"] == "PlannerFailed"]
    assert told
    assert all(f"planner {services.names['one']}/svc" in note for note in told)
    await here.until(lambda: here.plan_condition("PlannerAnswered")[0] == "False")
    assert f"planner {services.names['one']}/svc" in here.plan_condition("PlannerAnswered")[1]


async def test_an_answer_that_overfills_a_node_is_followed_as_far_as_there_is_room(
    here: World, services: PlannerServices
) -> None:
    names = [f"pod-{number}" for number in range(3)]
    async with (
        services.planner("one", all_to(here.nodes[0], *names)),
        services.service(here, "one", "default"),
    ):
        await here.create(trigger(), *members(3, cpu="2"))
        await here.until_held(3)
        await here.release()
        await here.until_placed(3)
    assert list(here.placed.values()).count(here.nodes[0]) == 2
    assert here.stored_plans() == [here.placed]


async def test_with_two_planners_the_one_that_answers_is_followed(
    here: World, services: PlannerServices
) -> None:
    async with (
        services.planner("one", breaks),
        services.planner("other", all_to(here.nodes[1], "a")),
        services.service(here, "one", "default"),
        services.service(here, "other", "default"),
    ):
        await here.create(trigger(state=SCHEDULE), member("a"))
        await here.until_placed(1)
    assert here.placed == {"a": here.nodes[1]}
    assert await planner_of(here, "batch") == f"{services.names['other']}/svc"


async def test_a_planner_that_hangs_times_out_and_delays_no_other_pod(
    here: World, services: PlannerServices
) -> None:
    """Pods outside of sets and other sets, with and without their own planner, do not wait."""

    async def sleep(message: bytes, context: Context) -> bytes:
        await asyncio.sleep(60)
        return b""

    stub = Planner(sleep)
    other = f"y-{here.namespace}"
    async with (
        stub.running(port=services.ports["one"].number),
        services.service(here, "one", f"x-{here.namespace}"),
        services.planner("other", all_to(here.nodes[2], "y")),
        services.service(here, "other", other),
    ):
        await here.create(trigger(podset=f"x-{here.namespace}"), member("a", podset=f"x-{here.namespace}"))
        await here.create(trigger("y", podset=other), member("y", podset=other))
        await here.create(trigger("z", podset="z"), member("z", podset="z"))
        await here.until_held(3)
        await here.release()
        await eventually_async(lambda: stub.heard, what="called")
        await here.create(manifest("web", scheduler=SCHEDULER_NAME))
        await asyncio.gather(here.release("y"), here.release("z"))
        await here.until_placed(3)
        assert sorted(here.placed) == ["web", "y", "z"]
        assert here.placed["y"] == here.nodes[2]
        await here.until_placed(4)
    notes = [event["note"] for event in await here.events("go")]
    assert any(f"did not answer within {CALL_SECONDS:g} s" in note for note in notes)


# No fallback is configured.


@without_fallback
async def test_without_a_fallback_pods_wait_for_their_planner_with_a_condition(
    here: World, services: PlannerServices
) -> None:
    async with services.service(here, "one", "default"):
        await here.create(trigger(state=SCHEDULE), member("a"))
        await here.until(lambda: here.condition("a")[0] == "WaitingForPlanner")
        assert f"planner {services.names['one']}/svc" in here.condition("a")[1]
        await here.stays(lambda: not here.placed and not here.plans, 1)
        async with services.planner("one", all_to(here.nodes[1], "a")):
            # The time between two calls.
            await here.until_placed(1, within=30)
    assert here.placed == {"a": here.nodes[1]}
    await here.until_plan_tells_the_truth()


@without_fallback
async def test_without_a_fallback_an_answer_with_an_unknown_node_binds_no_pod(
    here: World, services: PlannerServices
) -> None:
    async with services.planner("one", invents), services.service(here, "one", "default"):
        await here.create(trigger(state=SCHEDULE), *members(2))
        await here.until(lambda: here.condition("pod-1")[0] == "WaitingForPlanner")
        await here.stays(lambda: not here.placed and not here.plans, 1)


def test_the_stub_follows_the_protocol() -> None:
    """The bytes were computed from the protocol's text by another program."""
    request = pb.SchedulePlanRequest(
        namespace="default", podSet="planner-podset", scheduledPod="p1", eligibleNodes=["n1", "n2"]
    )
    assert request.SerializeToString().hex() == (
        "0a0764656661756c74120e706c616e6e65722d706f647365741a02703122026e3122026e32"
    )
    assert pb.SchedulePlanResponse(assignments={"p1": "n2"}).SerializeToString().hex() == (
        "0a080a02703112026e32"
    )
