"""`longshore controller` on a real cluster without a scheduler, so that only controllers fire."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.live.pod_sets import (
    SCHEDULE,
    member,
    trigger,
    world,
)
from tests.live.processes import account, running
from tests.waiting import eventually_async

from longshore.api import ScheduleTrigger
from longshore.dev import ControlPlane

pytestmark = pytest.mark.control_plane


async def test_a_controller_that_is_killed_and_started_again_keeps_to_the_time(
    sets_plane: ControlPlane, sets_namespace: str, tmp_path: Path
) -> None:
    kubeconfig = account(sets_plane, "controller")
    async with world(sets_plane, sets_namespace, nodes=0) as here:
        with running(sets_plane, tmp_path, "controller", kubeconfig=kubeconfig) as first:
            await asyncio.to_thread(first.wait_for, "ready")
            await here.create(trigger(quiet="5s"), member("a"))
            created = time.monotonic()
            await here.until(lambda: here.triggers["go"].status.held == 1 if here.triggers else False)
            first.crash()
        planned = here.triggers["go"].status.fire_at
        assert planned is not None
        await asyncio.sleep(created + 2.0 - time.monotonic())
        with running(sets_plane, tmp_path, "controller", kubeconfig=kubeconfig):
            await here.until(lambda: bool(here.flips()))
        # Timestamps are truncated to seconds.
        assert here.flips()[0] - created > 4
        triggers = [change.new for _, change in here.history if isinstance(change.new, ScheduleTrigger)]
        assert {each.status.fire_at for each in triggers} <= {None, planned}


async def test_of_two_controllers_one_fires(
    sets_plane: ControlPlane, sets_namespace: str, tmp_path: Path
) -> None:
    kubeconfig = account(sets_plane, "controller")
    arguments = ("controller", "--leader-elect")
    async with world(sets_plane, sets_namespace, nodes=0) as here:
        with (
            running(sets_plane, tmp_path, *arguments, kubeconfig=kubeconfig) as one,
            running(sets_plane, tmp_path, *arguments, kubeconfig=kubeconfig) as other,
        ):
            for each in (one, other):
                await asyncio.to_thread(each.wait_for, "ready")
            for number in range(5):
                await here.create(trigger(f"go-{number}", podset=f"set-{number}", quiet="0s"))
            await here.until(
                lambda: (
                    len(here.triggers) == 5 and all(here.state(name) == SCHEDULE for name in here.triggers)
                )
            )
            # Events are written after the triggers, in their order: the one of a later trigger is the last.
            await here.create(trigger("later", podset="later", quiet="0s"))
            await eventually_async(lambda: here.events("later"))
            fired = [event["reason"] for number in range(5) for event in await here.events(f"go-{number}")]
            assert fired == ["Fired"] * 5


@pytest.mark.parametrize("command", ["controller", "planner"])
def test_without_rights_there_is_one_line_that_names_the_manifest(
    sets_plane: ControlPlane, sets_namespace: str, command: str
) -> None:
    nobody = sets_plane.service_account("nobody", namespace=sets_namespace)
    done = subprocess.run(
        [sys.executable, "-m", "longshore", command, "--kubeconfig", str(nobody)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: the API server refuses us: ")
    assert done.stderr.endswith(f"; see deploy/{command}.yaml\n")
    assert done.stderr.count("\n") == 1
