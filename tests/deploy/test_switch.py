"""docs/switch.md is correct: its commands and manifests do what it says."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.live.conftest import StartScheduler
from tests.live.pods import create, manifest, wait_until_running
from tests.waiting import eventually

from longshore.cli.run import command as run_command
from longshore.dev import ControlPlane
from longshore.dev.build import build
from longshore.dev.component import Component
from longshore.dev.fixtures import OwnCluster

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "switch.md").read_text()


def commands() -> list[list[str]]:
    blocks = re.findall(r"^```console\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)
    return [[line.removeprefix("$ ") for line in block.splitlines()] for block in blocks]


def documents() -> list[dict[str, Any]]:
    blocks = re.findall(r"^( *)```yaml\n(.*?)^ *```", TEXT, flags=re.MULTILINE | re.DOTALL)
    return [yaml.safe_load(text) for _, text in blocks]


def shell(plane: ControlPlane, lines: list[str], folder: Path) -> str:
    """Run the lines in one shell."""
    (folder / "bin").mkdir(exist_ok=True)
    kubectl = folder / "bin" / "kubectl"
    kubectl.unlink(missing_ok=True)
    kubectl.symlink_to(build() / "kubectl")
    done = subprocess.run(
        ["bash", "-ec", "\n".join(lines)],
        cwd=ROOT,
        env={
            "PATH": f"{folder / 'bin'}:{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(folder),
            "KUBECONFIG": str(plane.kubeconfig),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_trying_longshore_next_to_kube_scheduler_and_undoing_it(
    own_cluster: OwnCluster, start_scheduler: StartScheduler, tmp_path: Path
) -> None:
    """No image can be pulled here, so a process with the same rights replaces the pods of the Deployment."""
    plane = own_cluster(nodes=2, scheduler=True)
    trying, undoing, _ = commands()
    scheduler = start_scheduler(plane)
    message = shell(plane, trying, tmp_path)
    assert "Successfully assigned default/tried to node-" in message
    scheduler.stop()
    message = shell(plane, undoing, tmp_path)
    assert 'deployment.apps "longshore" deleted' in message


@contextmanager
def kube_scheduler(plane: ControlPlane, kubeconfig: Path) -> Iterator[Component]:
    process = Component(
        "replaced-kube-scheduler",
        build() / "kube-scheduler",
        [f"--kubeconfig={kubeconfig}", "--leader-elect", "--secure-port=0"],
        folder=plane.folder,
    )
    process.start()
    try:
        yield process
    finally:
        process.kill()


def holder(plane: ControlPlane, folder: Path) -> str:
    """Return the holder of the lease, with the command on the page."""
    return shell(plane, commands()[2], folder)


def wait_for_leader(plane: ControlPlane, folder: Path, *, other_than: str = "") -> str:
    leases = ("get", "lease", "-n", "kube-system", "-o", "name")
    eventually(lambda: plane.kubectl(*leases), lambda names: "kube-scheduler" in names, within=40)
    return eventually(
        lambda: holder(plane, folder), lambda name: name not in ("", other_than), what="the leader", within=40
    )


def test_replacing_kube_scheduler_and_going_back(own_cluster: OwnCluster, tmp_path: Path) -> None:
    """Longshore has the identity and the lease of kube-scheduler, and the arguments of the static pod."""
    plane = own_cluster(nodes=2, scheduler=True)
    assert plane.scheduler is not None
    plane.scheduler.kill()  # it runs without a lease
    identity = plane.folder / "kube-scheduler.kubeconfig"
    configuration, static_pod = documents()
    file = tmp_path / "longshore.yaml"
    file.write_text(yaml.safe_dump(configuration))
    [described] = static_pod["spec"]["containers"]
    places = {
        "--config=": f"--config={file}",
        "--kubeconfig=": f"--kubeconfig={identity}",
        "--metrics-port=": "--metrics-port=0",
    }
    arguments = [
        next((ours for prefix, ours in places.items() if argument.startswith(prefix)), argument)
        for argument in described["args"]
    ]
    log = tmp_path / "log"

    def scheduled(*names: str) -> None:
        create(plane, "default", *(manifest(name, scheduler="default-scheduler") for name in names))

    with kube_scheduler(plane, identity) as theirs:
        first = wait_for_leader(plane, tmp_path)
        with log.open("w") as output:
            ours = subprocess.Popen([sys.executable, "-m", "longshore", *arguments], stderr=output)
        try:
            eventually(log.read_text, lambda text: '"ready"' in text, within=30)
            scheduled("before")
            wait_until_running(plane, "default", 1)
            assert holder(plane, tmp_path) == first
            theirs.kill()
            second = wait_for_leader(plane, tmp_path, other_than=first)
            scheduled("during-1", "during-2")
            wait_until_running(plane, "default", 3)
            with kube_scheduler(plane, identity):
                ours.terminate()
                assert ours.wait(20) == 0, log.read_text()
                wait_for_leader(plane, tmp_path, other_than=second)
                scheduled("after")
                wait_until_running(plane, "default", 4)
        finally:
            ours.kill()
            ours.wait()
    events = json.loads(plane.kubectl("get", "events.events.k8s.io", "-o", "json"))["items"]
    by = {
        event["regarding"]["name"]: event["reportingController"]
        for event in events
        if event["reason"] == "Scheduled"
    }
    assert set(by) == {"before", "during-1", "during-2", "after"}
    assert "Forbidden" not in log.read_text()
    assert "forbidden" not in log.read_text()


def test_the_static_pod_is_valid(control_plane: ControlPlane) -> None:
    _, static_pod = documents()
    create = ("create", "--dry-run=server", "--validate=strict", "-f", "-")
    control_plane.kubectl(*create, input=json.dumps(static_pod))


@pytest.mark.parametrize("column", ["| the same |", "`--metrics-port`"])
def test_flags_in_the_table_exist(column: str) -> None:
    known = {option for parameter in run_command.params for option in parameter.opts}
    [row] = [line for line in TEXT.splitlines() if line.startswith("| `--") and column in line]
    cell = row.split("|")[1 if "the same" in column else 2]
    flags = re.findall(r"`(--[a-z-]+)`", cell)
    assert flags
    assert set(flags) <= known
