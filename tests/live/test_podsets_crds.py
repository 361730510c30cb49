"""A cluster that does not know triggers and plans yet: all else is scheduled, and sets as soon as it does."""

import json
import time
from pathlib import Path

from tests.live.pods import create, manifest, pods, wait_until_running
from tests.live.podsets import install_kinds, member, running, trigger

from longshore.dev.fixtures import OwnCluster

# Longer than until the next look whether they are there.
LOOK = 5.5


def test_kinds_that_are_missing_are_told_once_and_picked_up_when_they_come(
    own_cluster: OwnCluster, tmp_path: Path
) -> None:
    """By the scheduler and by the controller, without a restart."""
    plane = own_cluster(nodes=1)
    with (
        running(plane, tmp_path, "run", "--controllers", "none") as scheduler,
        running(plane, tmp_path, "controller") as controller,
    ):
        scheduler.wait_for("ready")
        began = time.monotonic()
        create(plane, "default", manifest("web"), manifest("other", scheduler="podset-planner-scheduler"))
        create(plane, "default", member("batch"))
        wait_until_running(plane, "default", 2)
        controller.wait_for("ready")
        time.sleep(max(0.0, began + LOOK - time.monotonic()))
        for process, kinds in (
            (scheduler, ["scheduleplans", "scheduletriggers"]),
            (controller, ["scheduletriggers"]),
        ):
            told = [line["event"] for line in process.told("is not known to the API server")]
            assert sorted(line.partition(".")[0] for line in told) == kinds
            assert all("apply deploy/crds" in line for line in told)
        assert "nodeName" not in pods(plane, "default")["batch"]["spec"]

        install_kinds(plane)
        create(plane, "default", trigger(quiet="0s"))
        wait_until_running(plane, "default", 3)
        plans = json.loads(plane.kubectl("get", "sp", "-o", "json"))["items"]
        assert [entry["pod"] for plan in plans for entry in plan["spec"]["plan"]] == ["batch"]
        assert scheduler.stop() == controller.stop() == 0
