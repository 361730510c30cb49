"""Pod sets while no scheduler runs, for a while or for good, on a real cluster."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.live.pod_sets import SCHEDULE, World, deployment, member, members, trigger, world
from tests.live.processes import Running, running

from longshore.dev import ControlPlane

pytestmark = pytest.mark.control_plane


@pytest.fixture
async def here(sets_plane: ControlPlane, sets_namespace: str) -> AsyncIterator[World]:
    """A namespace and three nodes, without a scheduler."""
    async with world(sets_plane, sets_namespace) as made:
        yield made


@asynccontextmanager
async def scheduler(here: World, folder: Path) -> AsyncIterator[Running]:
    with running(here.plane, folder, "run") as started:
        await asyncio.to_thread(started.wait_for, "ready")
        yield started
        started.crash()


async def test_a_set_is_held_across_a_restart(here: World, tmp_path: Path) -> None:
    async with scheduler(here, tmp_path):
        await here.create(trigger(), *members(3))
        await here.until_held(3)
    # No scheduler runs, and the next one needs a while to read everything.
    await here.create(member("late"))
    async with scheduler(here, tmp_path):
        await here.until_held(4)
        await here.stays(lambda: not here.placed and not here.plans, 1)
        await here.release()
        await here.until_placed(4)
        assert here.stored_plans() == [here.placed]


async def test_deletions_while_no_scheduler_ran_are_noticed_later(here: World, tmp_path: Path) -> None:
    async with scheduler(here, tmp_path):
        await here.create(trigger(state=SCHEDULE), *members(3))
        await here.until_placed(3)
        await here.until_plan_tells_the_truth()
        other = trigger("other", podset="other", state=SCHEDULE)
        await here.create(other, member("alone", podset="other"))
        await here.until(lambda: bool(here.entries("other")) and "alone" in here.placed)
    await here.delete("Pod", "pod-0", "alone")
    await here.until(lambda: sorted(here.pods) == ["pod-1", "pod-2"])
    async with scheduler(here, tmp_path):
        await here.until(lambda: sorted(here.entries()) == ["pod-1", "pod-2"], within=10)
        await here.until(lambda: here.plan("other") is None, within=10)


async def test_a_plan_is_deleted_with_the_deployment_of_its_pods_without_a_scheduler(
    here: World, tmp_path: Path
) -> None:
    """The garbage collector deletes it by its owner references."""
    apply = ("apply", "-n", here.namespace, "-f", "-")
    async with scheduler(here, tmp_path):
        await here.create(trigger(state=SCHEDULE))
        await asyncio.to_thread(here.plane.kubectl, *apply, input=deployment("web", 2))
        await here.until_placed(2)
        await here.until_plan_tells_the_truth()
    await asyncio.to_thread(here.plane.kubectl, "delete", "deployment", "web", "-n", here.namespace)
    # It discovers new kinds every half minute.
    await here.until(lambda: not here.plans, within=60)
    await here.until(lambda: not here.pods)
