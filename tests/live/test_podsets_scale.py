"""Larger sets on a real cluster: their time, their requests to the API server, and that they fit."""

import asyncio
import re
from collections import Counter

import pytest
from tests.live.pod_sets import World, member, trigger, world
from tests.live.processes import Running

from longshore.dev import ControlPlane

pytestmark = pytest.mark.control_plane

NODES, PODS = 100, 200
SECONDS = 120.0
READS = 1000
# As the API server counts them; a watch when it has ended.
READ = re.compile(r'^apiserver_request_total\{.*verb="(?:GET|LIST|WATCH)".*\} (\S+)$', re.MULTILINE)


async def reads(here: World) -> float:
    """Return the number of reads by all clients, which is an upper bound for the scheduler."""
    told = await here.client.request("GET", "/metrics")
    counts = READ.findall(told.decode())
    assert counts
    return sum(map(float, counts))


async def test_two_hundred_pods_on_a_hundred_nodes(
    sets_plane: ControlPlane, sets_scheduler: Running, sets_namespace: str
) -> None:
    async with world(sets_plane, sets_namespace, nodes=NODES) as here:
        await here.create(trigger(), *(member(f"pod-{number}", cpu="1") for number in range(PODS)))
        await here.until_held(PODS)
        before = await reads(here)
        await here.release()
        await here.until_placed(PODS, within=SECONDS)
        # What was read to hold the pods shows that reads are counted at all.
        assert before > 0
        assert await reads(here) - before < READS
        assert here.stored_plans() == [here.placed]
        assert max(Counter(here.placed.values()).values()) <= 4


async def test_two_sets_of_a_hundred_pods_released_together_fill_the_nodes_and_overfill_none(
    sets_plane: ControlPlane, sets_scheduler: Running, sets_namespace: str
) -> None:
    sets = ("one", "two")
    async with world(sets_plane, sets_namespace, nodes=PODS // 4) as here:
        for podset in sets:
            pods = [member(f"{podset}-{number}", podset=podset, cpu="1") for number in range(PODS // 2)]
            await here.create(trigger(podset, podset=podset), *pods)
        await here.until_held(PODS)
        await asyncio.gather(*map(here.release, sets))
        await here.until_placed(PODS, within=SECONDS)
        assert Counter(here.placed.values()) == dict.fromkeys(here.nodes, 4)
        assert here.entries("one") | here.entries("two") == here.placed
