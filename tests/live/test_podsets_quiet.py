"""Quiet times on a real cluster. Each scenario mostly waits, so all of them run at the same time."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator

import pytest
from tests.live.pod_sets import (
    PLANNING,
    SCHEDULE,
    World,
    member,
    trigger,
    world,
)
from tests.live.processes import Running

from longshore.api.pod_set import QUIET_TIME_LABEL
from longshore.dev import ControlPlane

pytestmark = pytest.mark.control_plane

Scenario = Callable[[World], Awaitable[None]]
# Timestamps are truncated to seconds, and a busy machine may be late.
EARLY, LATE = 1.0, 10.0


async def fires(here: World, *, since: float, quiet: float, late: float = LATE) -> None:
    """Wait until the trigger fires, and check that the quiet time since then is over."""
    await here.until(lambda: bool(here.flips()), within=since + quiet + late - time.monotonic())
    assert here.flips()[0] - since > quiet - EARLY


async def it_counts_from_the_last_pod(here: World) -> None:
    await here.create(trigger(quiet="3s"))
    for number in range(4):
        await here.create(member(f"pod-{number}"))
        last = time.monotonic()
        await asyncio.sleep(1.5 if number < 3 else 0.0)
    await fires(here, since=last, quiet=3)
    await here.until_placed(4)
    await here.stays(lambda: len(here.flips()) == 1, 1)
    [told] = [event for event in await here.events("go") if event["reason"] == "Fired"]
    assert "3s" in told["note"]


async def an_empty_set_goes_by_its_trigger(here: World) -> None:
    created = time.monotonic()
    await here.create(trigger(quiet="3s"))
    await here.until(lambda: here.triggers["go"].status.fire_at is not None if here.triggers else False)
    await fires(here, since=created, quiet=3)


async def a_shorter_time_counts_from_its_change(here: World) -> None:
    await here.create(trigger(quiet="1h"), member("a"))
    await here.until_held(1)
    await asyncio.sleep(2)
    changed = time.monotonic()
    await here.label("ScheduleTrigger", "go", QUIET_TIME_LABEL, "3s")
    await fires(here, since=changed, quiet=3)


async def without_the_label_it_never_fires(here: World) -> None:
    await here.create(trigger(quiet="2s"), member("a"))
    await here.until_held(1)
    await here.label("ScheduleTrigger", "go", QUIET_TIME_LABEL, None)
    await here.until(lambda: here.triggers["go"].status.fire_at is None)
    await here.stays(lambda: here.state() == PLANNING, 6)


async def what_is_no_duration_is_told_and_never_fires(here: World) -> None:
    await here.create(trigger(quiet="2minutes"), member("a"))
    await here.until(lambda: here.trigger_condition("QuietTimeValid")[0] == "False")
    assert "'2minutes' is not a duration" in here.trigger_condition("QuietTimeValid")[1]
    await here.stays(lambda: here.state() == PLANNING, 3)
    assert ("Warning", "NotADuration") in {(e["type"], e["reason"]) for e in await here.events("go")}


async def no_time_at_all_fires_at_once(here: World) -> None:
    await here.create(member("a"))
    await here.until_held(1)
    await here.create(trigger(quiet="0s"))
    await here.until_placed(1)


async def a_trigger_that_is_deleted_leaves_its_set_held(here: World) -> None:
    await here.create(trigger(quiet="3s"), member("a"))
    await here.until_held(1)
    await here.delete("ScheduleTrigger", "go")
    await here.until(lambda: "has no trigger" in here.condition("a")[1])
    await here.stays(lambda: not here.placed and not here.plans and not here.triggers, 4)


async def set_back_to_planning_it_fires_again(here: World) -> None:
    await here.create(trigger(quiet="3s", state=SCHEDULE), member("a"))
    await here.until_placed(1)
    await asyncio.sleep(1.5)
    changed = time.monotonic()
    await here.set_state(PLANNING)
    await fires(here, since=changed, quiet=3)


async def changes_at_the_moment_it_fires_are_no_hindrance(here: World) -> None:
    await here.create(trigger(quiet="3s"), member("a"))
    began = time.monotonic()
    number = 0
    while not here.flips():
        number += 1
        await here.patch("ScheduleTrigger", "go", {"metadata": {"annotations": {"number": str(number)}}})
        assert time.monotonic() < began + 3 + 2 * LATE
    await here.until_placed(1)


SCENARIOS: tuple[Scenario, ...] = (
    it_counts_from_the_last_pod,
    an_empty_set_goes_by_its_trigger,
    a_shorter_time_counts_from_its_change,
    without_the_label_it_never_fires,
    what_is_no_duration_is_told_and_never_fires,
    no_time_at_all_fires_at_once,
    a_trigger_that_is_deleted_leaves_its_set_held,
    set_back_to_planning_it_fires_again,
    changes_at_the_moment_it_fires_are_no_hindrance,
)


@pytest.fixture(scope="module")
def ends(sets_plane: ControlPlane, sets_scheduler: Running) -> Iterator[dict[Scenario, BaseException | None]]:
    """The error of each scenario, if it failed."""
    names = [f"quiet-{secrets.token_hex(4)}" for _ in SCENARIOS]
    for name in names:
        sets_plane.create_namespace(name)

    async def play(scenario: Scenario, name: str) -> None:
        async with world(sets_plane, name, nodes=1) as here:
            await scenario(here)

    async def play_all() -> list[BaseException | None]:
        plays = [play(scenario, name) for scenario, name in zip(SCENARIOS, names, strict=True)]
        return await asyncio.gather(*plays, return_exceptions=True)

    yield dict(zip(SCENARIOS, asyncio.run(play_all()), strict=True))
    for name in names:
        sets_plane.delete_namespace(name)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
def test_quiet_times_fire_when_they_are_over(
    scenario: Scenario, ends: dict[Scenario, BaseException | None]
) -> None:
    if (error := ends[scenario]) is not None:
        raise error
