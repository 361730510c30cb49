"""Two replicas under load whose leader ends: no pod is bound twice, and no node is overfilled."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.live.conftest import Scheduler, StartScheduler
from tests.live.pods import create, manifest, placed
from tests.waiting import eventually

from longshore.dev import ControlPlane
from longshore.dev.fixtures import OwnCluster

# A lease that is given up soon, so that a crash costs seconds.
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  resourceName: longshore
  leaseDuration: 4s
  renewDeadline: 3s
  retryPeriod: 1s
profiles:
  - schedulerName: longshore
"""
NODES = 10
A_NODE = 80  # of 8 cores, with a tenth for each pod
ROOM = NODES * A_NODE


def crash(scheduler: Scheduler) -> None:
    scheduler.process.kill()
    scheduler.process.wait()


def stop(scheduler: Scheduler) -> None:
    assert scheduler.stop() == 0


@pytest.mark.parametrize("end", [crash, stop])
def test_the_leader_goes_while_pods_are_bound(
    own_cluster: OwnCluster,
    start_scheduler: StartScheduler,
    tmp_path: Path,
    end: Callable[[Scheduler], None],
) -> None:
    plane = own_cluster(nodes=0, kwok=False, controller_manager=False)
    config = tmp_path / "scheduler.yaml"
    config.write_text(CONFIGURATION)
    leader = start_scheduler(plane, "--config", str(config))
    eventually(lambda: holder(plane))
    other = start_scheduler(plane, "--config", str(config))
    create(plane, "default", *(manifest(f"pod-{n}", cpu="100m") for n in range(ROOM + 20)))
    eventually(other.log.read_text, lambda found: '"ready"' in found)
    # All can begin immediately.
    plane.add_nodes(NODES)
    eventually(lambda: bound_by(leader), lambda bound: bound >= 100, pause=0.005)
    end(leader)
    by_leader = bound_by(leader)
    assert by_leader < ROOM
    eventually(lambda: placed(plane, "default"), lambda found: len(found) == ROOM, within=40)
    assert Counter(placed(plane, "default").values()) == {f"node-{n}": A_NODE for n in range(NODES)}

    assert other.process.poll() is None
    listed = json.loads(plane.kubectl("get", "events.events.k8s.io", "-o", "json"))["items"]
    scheduled = Counter(e["regarding"]["name"] for e in listed if e["reason"] == "Scheduled")
    assert set(scheduled.values()) == {1}
    if end is stop:
        # Even the events for binds in progress are complete.
        assert len(scheduled) == ROOM


def holder(plane: ControlPlane) -> str:
    leases = json.loads(plane.kubectl("get", "leases", "-n", "kube-system", "-o", "json"))["items"]
    return "".join(
        lease["spec"].get("holderIdentity", "")
        for lease in leases
        if lease["metadata"]["name"] == "longshore"
    )


def bound_by(scheduler: Scheduler) -> int:
    return scheduler.log.read_text().count('"pod bound"')
