"""A user's plugin on the real cluster, from a file, with work that takes time."""

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


ANNOTATIONS = '''
"""Keeps the pods of a team away from the nodes of other teams, by annotations."""

from longshore.framework import Reads, filter_plugin

TEAM = "example.com/team"


@filter_plugin(reads=Reads(pod_annotations=(TEAM,)))
def own_team(pod, node):
    return None if node.labels.get("team") == pod.annotations.get(TEAM) else "node(s) of another team"


@filter_plugin
def forgetful(pod, node):
    if pod.labels.get("ask"):
        pod.annotations.get("example.com/cost")
'''


def test_a_plugin_reads_the_annotations_that_it_declares_and_no_others(
    own_cluster: OwnCluster, start_scheduler: StartScheduler, tmp_path: Path
) -> None:
    plane = own_cluster(nodes=2, kwok=False, controller_manager=False)
    plane.kubectl("label", "node", "node-0", "team=red")
    plane.kubectl("label", "node", "node-1", "team=blue")
    file = tmp_path / "teams.py"
    file.write_text(ANNOTATIONS)
    scheduler = start_scheduler(plane, "--plugin", str(file))
    blue = {"example.com/team": "blue", "example.com/cost": "7"}
    create(plane, "default", manifest("web", annotations=blue))
    create(plane, "default", manifest("asks", annotations=blue, labels={"ask": "yes"}))
    eventually(lambda: placed(plane, "default") == {"default/web": "node-1"})
    eventually(lambda: bool(condition(pods(plane, "default")["asks"])))
    message = condition(pods(plane, "default")["asks"])["message"]
    assert message.startswith('running "Forgetful" filter plugin: UndeclaredRead(')
    assert 'reads = Reads(pod_annotations=("example.com/cost",))' in message
    assert scheduler.stop() == 0
