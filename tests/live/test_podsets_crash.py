"""Schedulers that are killed while pod sets are held, planned and bound, and others that go on from there.

No other scheduler runs beside them.
"""

import asyncio
import random
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.live.podsets import (
    SCHEDULE,
    Running,
    World,
    account,
    member,
    members,
    plan,
    running,
    trigger,
    world,
)

from longshore.api import Pod
from longshore.dev import ControlPlane
from longshore.dev.fixtures import Repetitions
from longshore.kube.errors import ApiError

pytestmark = pytest.mark.control_plane

# So many pods take about as long as this from the trigger to the last bind.
MANY = 120
SECONDS = 0.25


async def test_a_set_survives_a_kill_at_any_moment_between_trigger_and_last_bind(
    sets_plane: ControlPlane, sets_namespace: str, tmp_path: Path, repetitions: Repetitions
) -> None:
    """Each pod is bound once, by the one plan that was stored."""
    kubeconfig = account(sets_plane, "run")
    chance = random.Random(11)
    killed_midway = 0
    async with world(sets_plane, sets_namespace) as here:
        for number in range(repetitions(full=50)):
            podset = f"set-{number}"
            names = [f"{podset}-{each}" for each in range(MANY)]
            pods = [member(name, podset=podset, cpu="10m") for name in names]
            with running(sets_plane, tmp_path, "run", kubeconfig=kubeconfig) as first:
                await asyncio.to_thread(first.wait_for, "ready")
                await here.create(trigger(podset, podset=podset), *pods)
                await here.until_held(MANY)
                await here.release(podset)
                await asyncio.sleep(chance.uniform(0.0, SECONDS))
                first.crash()
            killed_midway += 0 < len(here.placed) < MANY
            with running(sets_plane, tmp_path, "run", kubeconfig=kubeconfig):
                await here.until_placed(MANY, within=30)
                await here.until_plan_tells_the_truth(podset=podset)
            assert here.stored_plans(podset) == [here.placed]
            moves = {(pod.metadata.name, pod.spec.node_name) for pod in seen(here) if pod.spec.node_name}
            assert len({name for name, _ in moves}) == len(moves)
            await here.delete("Pod", *names)
            await here.until(lambda: not here.pods)
            here.history.clear()
            await here.delete("ScheduleTrigger", podset)
            await here.until(lambda: not here.triggers)
    assert killed_midway or repetitions(full=50) < 50


def seen(here: World) -> list[Pod]:
    """Every version of every pod."""
    return [change.new for _, change in here.history if isinstance(change.new, Pod)]


async def test_deletions_that_nobody_saw_are_made_up_for(
    sets_plane: ControlPlane, sets_namespace: str, tmp_path: Path
) -> None:
    async with world(sets_plane, sets_namespace) as here:
        with running(sets_plane, tmp_path, "run") as first:
            await asyncio.to_thread(first.wait_for, "ready")
            await here.create(trigger(state=SCHEDULE), *members(3))
            await here.until_placed(3)
            await here.until_plan_tells_the_truth()
            other = trigger("other", podset="other", state=SCHEDULE)
            await here.create(other, member("alone", podset="other"))
            await here.until(lambda: bool(here.entries("other")) and "alone" in here.placed)
            first.crash()
        await here.delete("Pod", "pod-0", "alone")
        await here.until(lambda: sorted(here.pods) == ["pod-1", "pod-2"])
        with running(sets_plane, tmp_path, "run"):
            await here.until(lambda: sorted(here.entries()) == ["pod-1", "pod-2"], within=10)
            await here.until(lambda: here.plan("other") is None, within=10)


async def turmoil(here: World, chance: random.Random, seconds: float) -> None:
    """Pods come and go, nodes are closed and opened, the trigger too, plans are edited by hand."""
    end = asyncio.get_running_loop().time() + seconds
    number = 0
    while asyncio.get_running_loop().time() < end:
        number += 1
        node = chance.choice(here.nodes)
        try:
            match chance.randrange(8):
                case 0 | 1 | 2:
                    await here.create(member(f"pod-{number}", cpu=chance.choice(("100m", "500m", "1"))))
                case 3 | 4 if here.pods:
                    await here.delete("Pod", chance.choice(sorted(here.pods)))
                case 5:
                    closed = chance.random() < 0.5
                    await here.patch("Node", node, {"spec": {"unschedulable": closed}})
                case 6:
                    await here.set_state(chance.choice(("Planning", "Schedule", "Schedule")))
                case 7 if here.pods and here.plans:
                    spec = plan(here.namespace, {chance.choice(sorted(here.pods)): node})["spec"]
                    name = next(iter(here.plans))
                    await here.patch("SchedulePlan", name, {"spec": spec})
        except ApiError as error:
            # Gone meanwhile, or still there.
            assert error.status in (404, 409), error
        await asyncio.sleep(chance.uniform(0, 0.1))


async def test_after_a_turmoil_plan_and_pods_agree(
    sets_plane: ControlPlane,
    sets_namespace: str,
    tmp_path: Path,
    repetitions: Repetitions,
) -> None:
    chance = random.Random(7)

    def started() -> Running:
        process = stack.enter_context(running(sets_plane, tmp_path, "run"))
        process.wait_for("ready")
        return process

    with ExitStack() as stack:
        async with world(sets_plane, sets_namespace) as here:
            await here.create(trigger(state=SCHEDULE), member("first"))
            for _ in range(repetitions(full=20, short=1)):
                process = await asyncio.to_thread(started)
                await turmoil(here, chance, 3.0)
                process.crash()
            await asyncio.to_thread(started)
            for node in here.nodes:
                await here.patch("Node", node, {"spec": {"unschedulable": False}})
            await here.release()

            def at_rest() -> bool:
                entries = here.entries()
                return entries.keys() <= here.pods.keys() and all(
                    entries.get(name) == node for name, node in here.placed.items()
                )

            def settled() -> bool:
                waiting = here.pods.keys() - here.placed.keys()
                return at_rest() and all(here.condition(each)[0] == "Unschedulable" for each in waiting)

            await here.until(settled, within=10)
            await here.stays(at_rest, 2)
