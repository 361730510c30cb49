"""A plugin of one's own on the real cluster, from a file, with work that takes time."""

from pathlib import Path

from tests.live.conftest import StartScheduler
from tests.live.pods import condition, create, events, manifest, placed, pods
from tests.waiting import eventually

from longshore.dev.fixtures import OwnCluster

PLUGIN = '''
"""Keeps pods off the first node, and prepares their disks, which fails at the first try."""

import asyncio

from longshore.framework import Status


class Disks:
    name = "Disks"

    def __init__(self):
        self.tries = {}

    def filter_node(self, state, pod, node):
        return "node(s) had no disk" if node.name == "node-0" else None

    async def pre_bind(self, state, pod, node):
        await asyncio.sleep(0.3)
        name = pod.pod.metadata.name
        self.tries[name] = self.tries.get(name, 0) + 1
        if self.tries[name] == 1:
            raise OSError(f"no disk for {name} yet")
'''


def test_a_plugin_filters_and_does_work_that_takes_time(
    own_cluster: OwnCluster, start_scheduler: StartScheduler, tmp_path: Path
) -> None:
    plane = own_cluster(nodes=2, kwok=False, controller_manager=False)
    file = tmp_path / "disks.py"
    file.write_text(PLUGIN)
    scheduler = start_scheduler(plane, "--plugin", str(file))
    create(plane, "default", *(manifest(f"pod-{n}") for n in range(5)))
    eventually(lambda: placed(plane, "default"), lambda found: len(found) == 5)
    assert set(placed(plane, "default").values()) == {"node-1"}
    for name in (f"pod-{n}" for n in range(5)):
        told = [event["note"] for event in events(plane, "default", name) if event["type"] == "Warning"]
        assert told == [f"running PreBind plugin \"Disks\": OSError('no disk for {name} yet')"]

    create(plane, "default", manifest("big", cpu="7900m"))
    eventually(lambda: pods(plane, "default")["big"], condition)
    message = condition(pods(plane, "default")["big"])["message"]
    assert message.startswith("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had no disk.")
    assert scheduler.stop() == 0
