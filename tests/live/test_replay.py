"""The same events lead to the same bindings on the real cluster and on the simulated one."""

import asyncio
import random

from tests.live.pods import create, manifest, placed, wait_until_running

from longshore.api import Change
from longshore.dev.fixtures import OwnCluster
from longshore.engine import Engine, Event
from longshore.kube.client import Client
from longshore.kube.cluster import KubeCluster
from longshore.kube.config import load
from longshore.kube.operations import Operations
from longshore.kube.pool import Pool
from longshore.kube.recorder import EventRecorder
from longshore.kube.writer import Writer
from longshore.live import Follower
from longshore.sim import Simulation
from longshore.sim.recorded import Recorded


async def test_bindings_of_a_real_cluster_are_those_of_the_simulated_one(own_cluster: OwnCluster) -> None:
    plane = own_cluster(nodes=5)
    connection = load(plane.kubeconfig)
    recorded: list[Recorded] = []

    def note(event: Event, now: float) -> None:
        if isinstance(event, Change):
            recorded.append((now, event))

    stop = asyncio.Event()
    everywhere: dict[str, str] = {}
    async with Client(connection) as client, Pool(connection) as pool:
        writer = Writer(pool)
        cluster = KubeCluster(client, Operations(writer), EventRecorder(writer, controller="longshore"))
        follower = Follower(Engine(seed=11), cluster, on_event=note)
        running = asyncio.create_task(follower.run(until=stop))
        rng = random.Random(3)
        for wave in range(4):
            sizes = [rng.choice(["100m", "250m", "500m", "1"]) for _ in range(15)]
            bodies = [manifest(f"wave-{wave}-{n}", cpu=cpu) for n, cpu in enumerate(sizes)]
            await asyncio.to_thread(create, plane, "default", *bodies)
            alive = 15 * (wave + 1) - 5 * wave
            await asyncio.to_thread(wait_until_running, plane, "default", alive)
            everywhere |= await asyncio.to_thread(placed, plane, "default")
            if wave < 3:
                leaving = [f"wave-{wave}-{n}" for n in range(5)]
                await asyncio.to_thread(plane.kubectl, "delete", "pod", "--now", *leaving)
        stop.set()
        await running
    assert len(everywhere) == 60
    assert len(set(everywhere.values())) == 5
    assert Simulation.replay(recorded, engine=Engine(seed=11)) == everywhere
