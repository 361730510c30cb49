"""The plugin Reward on the real cluster, with pods that fail and a scheduler that restarts."""

import json
from pathlib import Path

from tests.live.conftest import Scheduler, StartScheduler
from tests.live.pods import create, manifest, placed
from tests.waiting import eventually

from longshore.dev import ControlPlane
from longshore.dev.fixtures import OwnCluster

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles:
- schedulerName: longshore
  plugins:
    score:
      disabled: [{name: "*"}]
      enabled: [{name: Reward}]
  pluginConfig:
  - {name: Reward, args: {halfLife: 0s}}
longshore: {tieBreak: first}
"""
RIGHTS = Path(__file__).parents[2] / "deploy" / "rewards.yaml"


def typed(name: str, **spec: str) -> dict[str, object]:
    made = manifest(name, labels={"podtype": "D"})
    return {**made, "spec": {**made["spec"], **spec}}


def fail(plane: ControlPlane, *names: str) -> None:
    create(plane, "default", *(typed(name, nodeName="node-0") for name in names))
    for name in names:
        patch = '{"status": {"phase": "Failed"}}'
        plane.kubectl("patch", "pod", name, "-n", "default", "--subresource=status", "-p", patch)


def stored(plane: ControlPlane) -> str:
    listed = json.loads(plane.kubectl("get", "configmaps", "-n", "kube-system", "-o", "json"))
    found = {item["metadata"]["name"]: item.get("data", {}) for item in listed["items"]}
    return str(found.get("longshore-rewards", {}).get("rewards", ""))


def rewarded(scheduler: Scheduler) -> int:
    return scheduler.log.read_text().count("rewarded")


def test_pods_avoid_a_node_where_their_type_failed_also_after_a_restart(
    own_cluster: OwnCluster, start_scheduler: StartScheduler, tmp_path: Path
) -> None:
    plane = own_cluster(nodes=3, kwok=False, controller_manager=False)
    plane.kubectl("apply", "-f", str(RIGHTS))
    file = tmp_path / "scheduler.yaml"
    file.write_text(CONFIGURATION)
    first = start_scheduler(plane, "--config", str(file))
    create(plane, "default", typed("before"))
    eventually(lambda: placed(plane, "default"), lambda found: found == {"default/before": "node-0"})

    fail(plane, *"abcde")
    eventually(lambda: rewarded(first), lambda found: found == 5)
    create(plane, "default", typed("after"))
    eventually(lambda: placed(plane, "default"), lambda found: found.get("default/after") == "node-1")
    # Most failures came too soon after the first write, so they are written at the end.
    assert first.stop() == 0
    assert "pairs/D/node-0 0.590490" in stored(plane)

    second = start_scheduler(plane, "--config", str(file))
    create(plane, "default", typed("later"))
    eventually(lambda: placed(plane, "default"), lambda found: found.get("default/later") == "node-1")
    fail(plane, "f")
    eventually(lambda: stored(plane), lambda found: "pairs/D/node-0 0.531441" in found)
    # The pods that had failed before the restart still exist, and did not count again.
    assert rewarded(second) == 1
    assert second.stop() == 0
