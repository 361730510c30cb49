"""The metrics of a planner after requests."""

import grpc
import grpc.aio
import pytest
from tests.podset.test_planner_wire import REQUEST_BYTES
from tests.serve.test_planner import Builder, ask, broken, channel_to
from tests.waiting import eventually_async

from longshore.kube.cluster import Mirror
from longshore.planning import Assignment, LeftOut, Plan
from longshore.serve.planner.metrics import Requests, registry_of
from longshore.serve.planner.service import Build, PlannerServer


async def codes(build: Build, *messages: bytes, ready: bool = True, timeout: float = 20) -> dict[str, int]:
    """Return the count of each status after these requests, sent one after the other."""
    requests = Requests()
    async with PlannerServer(build, listen="127.0.0.1:0", grace=0.1, requests=requests) as server:
        if ready:
            await server.ready()
        async with channel_to(server) as channel:
            for sent, message in enumerate(messages, 1):
                try:
                    await ask(channel, message, timeout=timeout)
                except grpc.aio.AioRpcError:
                    # The server counts a request that is cancelled after the client has its error.
                    await eventually_async(lambda: sum(requests.answers.values()) == sent)  # noqa: B023
    return dict(requests.answers)


async def test_requests_are_counted_by_the_status_that_they_got() -> None:
    assert await codes(Builder(), REQUEST_BYTES, b"\xff", b"", REQUEST_BYTES) == {
        "OK": 2,
        "INVALID_ARGUMENT": 2,
    }


async def test_a_failed_plan_and_one_before_the_planner_is_ready_are_counted() -> None:
    assert await codes(broken, REQUEST_BYTES) == {"INTERNAL": 1}
    assert await codes(Builder(), REQUEST_BYTES, ready=False) == {"UNAVAILABLE": 1}


async def test_a_caller_that_does_not_wait_is_counted() -> None:
    assert await codes(Builder(held=True), REQUEST_BYTES, timeout=0.2) == {"CANCELLED": 1}


def test_plans_are_counted_by_their_outcome() -> None:
    placed, left_out = (Assignment("ns/a", "1", "n1"),), (LeftOut("ns/b", "2", "no room"),)
    requests = Requests()
    for plan in (Plan(placed, seconds=0.25), Plan(placed, left_out), Plan((), left_out)):
        requests.planned(plan)
    mirrors = [Mirror("pods", is_synced=True, size=7, lists=1)]
    value = registry_of(requests, lambda: mirrors).get_sample_value
    for outcome in ("complete", "partial", "none"):
        assert value("longshore_planner_plans_total", {"outcome": outcome}) == 1
    assert value("longshore_planner_planning_duration_seconds_count") == 3
    assert value("longshore_planner_planning_duration_seconds_sum") == pytest.approx(0.25)
    assert value("longshore_reflector_objects", {"resource": "pods"}) == 7
