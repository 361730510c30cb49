"""A cluster without the definitions of triggers and plans: sets wait until these are installed."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.deploy.custom_resources import FOLDER
from tests.live.pod_sets import install_kinds, member, trigger
from tests.live.pods import create, manifest, placed
from tests.live.processes import DEPLOY, running
from tests.waiting import eventually

from longshore.dev import ControlPlane

pytestmark = pytest.mark.control_plane

# Longer than the time between two checks whether the kinds exist.
LOOK = 5.5


@pytest.fixture(autouse=True)
def _node(sets_plane: ControlPlane) -> Iterator[None]:
    """Add a node for the pods."""
    [node] = sets_plane.add_nodes(1, prefix="bare-")
    yield
    sets_plane.kubectl("delete", "node", node)


@pytest.fixture
def bare_plane(sets_plane: ControlPlane) -> Iterator[ControlPlane]:
    """Delete the definitions, and install them again afterwards."""
    sets_plane.kubectl("delete", "-f", str(FOLDER))
    yield sets_plane
    install_kinds(sets_plane)


def test_without_the_right_to_read_triggers_all_else_is_scheduled(
    sets_plane: ControlPlane, sets_namespace: str, tmp_path: Path
) -> None:
    """The role is from a version without pod sets."""
    documents = yaml.safe_load_all((DEPLOY / "scheduler.yaml").read_text())
    [role] = [each for each in documents if each["kind"] == "ClusterRole"]
    rules = [rule for rule in role["rules"] if rule["apiGroups"] != ["planner.ciena.io"]]
    few = sets_plane.service_account("few", namespace=sets_namespace, rules=rules)
    with running(sets_plane, tmp_path, "run", kubeconfig=few, may_be_refused=True) as scheduler:
        scheduler.wait_for("ready")
        create(sets_plane, sets_namespace, manifest("web"), member("batch"))
        eventually(
            lambda: placed(sets_plane, sets_namespace), lambda found: list(found) == [f"{sets_namespace}/web"]
        )
        told = [line["event"] for line in scheduler.told("no permission to list")]
        assert sorted(line.split()[4] for line in told) == [
            "scheduleplans.planner.ciena.io:",
            "scheduletriggers.planner.ciena.io:",
        ]


def test_missing_kinds_are_logged_once_and_watched_once_installed(
    bare_plane: ControlPlane, sets_namespace: str, tmp_path: Path
) -> None:
    """Neither the scheduler nor the controller needs a restart."""
    plane, here = bare_plane, sets_namespace

    def on_a_node() -> set[str]:
        return {name.partition("/")[2] for name in placed(plane, here)}

    with (
        running(plane, tmp_path, "run", "--controllers", "none") as scheduler,
        running(plane, tmp_path, "controller") as controller,
    ):
        scheduler.wait_for("ready")
        controller.wait_for("ready")
        ready = time.monotonic()
        create(plane, here, manifest("web"), manifest("other", scheduler="podset-planner-scheduler"))
        create(plane, here, member("batch"))
        eventually(on_a_node, lambda found: found == {"web", "other"})
        time.sleep(max(0.0, ready + LOOK - time.monotonic()))
        kinds = {controller.log: ["scheduletriggers"], scheduler.log: ["scheduleplans", "scheduletriggers"]}
        for process in (controller, scheduler):
            told = [line["event"] for line in process.told("is not known to the API server")]
            assert sorted(line.partition(".")[0] for line in told) == kinds[process.log]
            assert all("apply deploy/crds" in line for line in told)
        assert on_a_node() == {"web", "other"}

        install_kinds(plane)
        create(plane, here, trigger(quiet="0s"))
        eventually(on_a_node, lambda found: "batch" in found)
        plans = json.loads(plane.kubectl("get", "sp", "-n", here, "-o", "json"))["items"]
        assert [entry["pod"] for plan in plans for entry in plan["spec"]["plan"]] == ["batch"]
        assert scheduler.stop() == controller.stop() == 0
