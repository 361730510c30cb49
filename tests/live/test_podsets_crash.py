"""Schedulers that are killed while pod sets are held, planned and bound, and others that continue.

No other scheduler runs at the same time.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.live.pod_sets import (
    SCHEDULE,
    World,
    member,
    plan,
    trigger,
    world,
)
from tests.live.processes import Running, account, running

from longshore.api import Pod, SchedulePlan
from longshore.dev import ControlPlane
from longshore.dev.fixtures import Repetitions
from longshore.kube.errors import ApiError

pytestmark = pytest.mark.control_plane

# Enough pods that the time from the trigger to the last bind is long.
MANY = 120
# How far a set has come when its scheduler is killed: its plan is not stored, no pod is bound, not all are.
RELEASED, PLANNED, MIDWAY = PHASES = ("released", "planned", "midway")
TOO_LATE = "too late"
KILLS = 50
# A kill can miss its phase, so there are this many tries for each wanted kill.
TRIES = 3


class Course(NamedTuple):
    """How long each phase takes if no scheduler is killed, in seconds."""

    released: float
    planned: float
    midway: float


class Crowd:
    """A set that is larger than most, from its creation to its end."""

    def __init__(self, here: World, name: str) -> None:
        self._here = here
        self.name = name
        self._pods = [f"{name}-{number}" for number in range(MANY)]

    async def hold(self) -> None:
        pods = [member(name, podset=self.name, cpu="10m") for name in self._pods]
        await self._here.create(trigger(self.name, podset=self.name), *pods)
        await self._here.until_held(MANY)

    async def until(self, phase: str) -> None:
        """Wait until the released set reaches this phase."""
        here = self._here
        if phase != RELEASED:
            await here.until(lambda: here.plan(self.name) is not None)
        if phase == MIDWAY:
            await here.until(lambda: bool(here.placed))

    async def phase(self) -> str:
        """Return the phase that the set has reached when no scheduler continues with it."""
        # Wait for writes that were sent, and for the watch.
        await asyncio.sleep(0.3)
        placed = len(self._here.placed)
        if not placed:
            return RELEASED if self._here.plan(self.name) is None else PLANNED
        return MIDWAY if placed < MANY else TOO_LATE

    async def course(self) -> Course:
        """Release the set, and measure how long each phase takes."""
        here = self._here
        await here.release(self.name)
        released = time.monotonic()
        await here.until_placed(MANY, within=30)
        stored = here.when(lambda change: isinstance(change.new, SchedulePlan))
        bound = {pod.metadata.name: at for at, pod in reversed(list(seen(here))) if pod.spec.node_name}
        first, last = min(bound.values()), max(bound.values())
        return Course(max(0.0, stored - released), first - stored, last - first)

    async def clear(self) -> None:
        here = self._here
        await here.delete("Pod", *self._pods)
        await here.delete("ScheduleTrigger", self.name)
        await here.until(lambda: not here.pods and not here.triggers)
        here.history.clear()


def seen(here: World) -> Iterator[tuple[float, Pod]]:
    """Return every version of every pod, with its time."""
    return ((at, change.new) for at, change in here.history if isinstance(change.new, Pod))


async def test_a_set_survives_a_kill_at_any_moment_between_trigger_and_last_bind(
    sets_plane: ControlPlane, sets_namespace: str, tmp_path: Path, repetitions: Repetitions
) -> None:
    """Each pod is bound once, by the one plan that was stored. Moments are drawn from each phase in turn."""
    kubeconfig = account(sets_plane, "run")
    chance = random.Random(11)
    wanted = repetitions(full=KILLS)
    kills: Counter[str] = Counter()

    async def started() -> Running:
        process = stack.enter_context(running(sets_plane, tmp_path, "run", kubeconfig=kubeconfig))
        await asyncio.to_thread(process.wait_for, "ready")
        return process

    def enough() -> bool:
        every = wanted < KILLS or all(kills[phase] for phase in PHASES)
        return every and kills.total() - kills[TOO_LATE] >= wanted

    async with world(sets_plane, sets_namespace) as here:
        with ExitStack() as stack:
            await started()
            first = Crowd(here, "first")
            await first.hold()
            course = await first.course()
            await first.clear()
        while not enough() and kills.total() < TRIES * wanted:
            with ExitStack() as stack:
                process = await started()
                aim = PHASES[kills.total() % len(PHASES)]
                crowd = Crowd(here, f"set-{kills.total()}")
                await crowd.hold()
                await here.release(crowd.name)
                await crowd.until(aim)
                await asyncio.sleep(chance.uniform(0.0, getattr(course, aim)))
                process.crash()
                kills[await crowd.phase()] += 1
                await started()
                await here.until_placed(MANY, within=30)
                await here.until_plan_tells_the_truth(podset=crowd.name)
                assert here.stored_plans(crowd.name) == [here.placed]
                places = [(pod.metadata.name, pod.spec.node_name) for _, pod in seen(here)]
                assert len({place for place in places if place[1]}) == MANY
                await crowd.clear()
    assert enough(), f"{kills} by {course}"


async def turmoil(here: World, chance: random.Random, seconds: float) -> None:
    """Create and delete pods, cordon and uncordon nodes, change the trigger, and edit plans by hand."""
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
            # The object was deleted meanwhile, or exists already.
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
