"""`longshore dev` as a user runs it, with clusters in a separate cache folder."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.dev.fakes import FakeGo
from tests.waiting import eventually

from longshore.dev import clusters
from longshore.dev.cache import cache_folder
from longshore.dev.owner import Owner
from longshore.dev.progress import PlainProgress

_READY_SECONDS = 15


def longshore(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(_command(*arguments), capture_output=True, text=True, check=False)


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "longshore", "dev", *arguments]


def _listed() -> list[dict[str, Any]]:
    answer: list[dict[str, Any]] = json.loads(longshore("list", "-o", "json").stdout)
    return answer


def _processes(name: str) -> list[Owner]:
    record = clusters.find(name).record
    assert record
    return [record.supervisor, *record.components.values()]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache with built programs and no clusters. Clusters that a test leaves running are stopped."""
    built = cache_folder() / "control-plane"
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "control-plane").symlink_to(built)
    monkeypatch.setenv("LONGSHORE_CACHE", str(folder))
    yield folder
    for cluster in clusters.clusters():
        clusters.down(cluster.name, PlainProgress())


@pytest.fixture
def no_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    """Programs that cannot run, made by a fake compiler."""
    return FakeGo(tmp_path, monkeypatch)


@pytest.mark.control_plane
def test_a_hundred_nodes_from_up_to_down(cache: Path) -> None:
    start = time.monotonic()
    up = longshore("up", "--nodes", "100")
    seconds = time.monotonic() - start
    assert up.returncode == 0, up.stderr
    assert seconds < _READY_SECONDS
    kubeconfig = cache / "clusters" / "dev" / "kubeconfig"
    assert up.stdout == f"export KUBECONFIG='{kubeconfig}'\n"

    nodes = json.loads(longshore("kubectl", "--", "get", "nodes", "-o", "json").stdout)["items"]
    ready = [
        c
        for node in nodes
        for c in node["status"]["conditions"]
        if c["type"] == "Ready" and c["status"] == "True"
    ]
    assert len(ready) == 100
    assert not [node for node in nodes if "taints" in node["spec"]]

    [row] = _listed()
    assert (row["name"], row["state"], row["nodes"]) == ("dev", "running", 100)
    assert row["server"].startswith("https://127.0.0.1:")
    assert row["kubeconfig"] == str(kubeconfig)
    text = longshore("list").stdout.splitlines()
    assert text[0].split() == ["NAME", "STATE", "AGE", "NODES", "SERVER", "SUPERVISOR"]
    assert text[1].split()[:2] == ["dev", "running"]

    again = longshore("up")
    assert again.returncode == 1
    assert again.stderr.startswith("error: cluster dev is already running: ")
    assert "longshore dev down --name dev" in again.stderr
    assert again.stderr.count("\n") == 1

    processes = _processes("dev")
    assert len(processes) == 5
    down = longshore("down")
    assert (down.returncode, down.stderr) == (0, "cluster dev is stopped\n")
    assert not any(process.alive for process in processes)
    assert not (cache / "clusters" / "dev").exists()


@pytest.mark.control_plane
def test_killed_supervisor_takes_everything_with_it_and_the_name_is_free(cache: Path) -> None:
    assert longshore("up", "--name", "one", "--nodes", "1", "--scheduler").returncode == 0
    processes = _processes("one")
    assert len(processes) == 6

    kwok = clusters.find("one").record.components["kwok"]  # type: ignore[union-attr]
    os.kill(kwok.pid, signal.SIGKILL)
    eventually(_listed, lambda listed: listed[0]["state"] == "degraded")
    assert _listed()[0]["ended"] == ["kwok"]
    assert "degraded (kwok stopped)" in longshore("list").stdout
    assert longshore("kubectl", "--name", "one", "get", "nodes").returncode == 0

    os.kill(processes[0].pid, signal.SIGKILL)
    eventually(lambda: [each for each in processes if each.alive], lambda alive: not alive)
    assert _listed()[0]["state"] == "dead"
    refused = longshore("kubectl", "--name", "one", "--", "get", "nodes")
    assert refused.stderr == "error: cluster one is dead: start it with `longshore dev up --name one`\n"

    up = longshore("up", "--name", "one", "--nodes", "1", "--no-kwok", "--no-controller-manager")
    assert up.returncode == 0, up.stderr
    assert _listed()[0]["state"] == "running"


@pytest.mark.control_plane
def test_two_clusters_started_at_once(cache: Path) -> None:
    bare = ("--nodes", "2", "--no-kwok", "--no-controller-manager")
    starts = [subprocess.Popen(_command("up", "--name", name, *bare)) for name in ("one", "two")]
    assert [start.wait() for start in starts] == [0, 0]
    servers = {row["server"] for row in _listed()}
    assert len(servers) == 2
    assert longshore("down", "--name", "one").returncode == 0
    assert longshore("kubectl", "--name", "two", "--", "get", "node", "node-1").returncode == 0


@pytest.mark.control_plane
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_up_leaves_no_process(cache: Path, how: signal.Signals) -> None:
    up = subprocess.Popen(
        _command("up"),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # Where the tests run in the background, SIGINT is ignored, and a child inherits that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    eventually((cache / "clusters" / "dev" / "kube-apiserver.log").exists)
    [supervisor] = _processes("dev")
    up.send_signal(how)
    up.communicate()
    assert up.returncode != 0
    if how == signal.SIGTERM:  # the command had no chance to clean up, so the user does
        assert longshore("down").returncode == 0
    assert not supervisor.alive


@pytest.mark.control_plane
def test_full_disk_is_one_line(cache: Path) -> None:
    script = f"""
        mkdir {cache.parent}/small && mount -t tmpfs -o size=1m none {cache.parent}/small
        ln -s "{cache}/control-plane" {cache.parent}/small/control-plane
        LONGSHORE_CACHE={cache.parent}/small exec "$@"
    """
    in_namespace = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*in_namespace, "true"], check=False).returncode:
        pytest.skip("this machine does not let us mount a small file system")
    done = subprocess.run(
        [*in_namespace, "sh", "-c", script, "sh", *_command("up")],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: a cluster needs 0.25 GiB of free disk space at ")
    assert done.stderr.count("\n") == 1


def test_component_that_cannot_run_is_one_line(no_programs: FakeGo) -> None:
    assert longshore("build").returncode == 0
    up = longshore("up", "--name", "broken")
    assert up.returncode == 1
    assert up.stderr.count("\n") == 1
    log = no_programs.cache / "clusters" / "broken"
    assert up.stderr.startswith("error: etcd ended (exit code 1): OSError: [Errno 8] Exec format error")
    assert up.stderr.rstrip().endswith(f"log: {log}/etcd.log")
    assert _listed()[0]["state"] == "dead"
    assert longshore("down", "--name", "broken").returncode == 0
    assert not log.exists()


def test_failed_build_is_one_line_of_error(no_programs: FakeGo) -> None:
    no_programs.set(error="# k8s.io/foo\nfoo.go:1:2: undefined: bar")
    done = longshore("up")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(
        "error: etcd could not be built: foo.go:1:2: undefined: bar; log: "
    )
    assert "Traceback" not in done.stderr


def test_finished_build_ends_at_once(no_programs: FakeGo) -> None:
    first = longshore("build")
    start = time.monotonic()
    second = longshore("build")
    assert time.monotonic() - start < 20  # with the start of Python on a busy machine
    assert (second.stdout, second.stderr) == (first.stdout, "")


@pytest.mark.parametrize("command", [("down",), ("kubectl", "--", "get", "pods")])
def test_a_name_without_a_cluster_is_an_error(no_programs: FakeGo, command: tuple[str, ...]) -> None:
    done = longshore(command[0], "--name", "nobody", *command[1:])
    assert done.returncode == 1
    assert done.stderr == (
        "error: no cluster named nobody (existing: none): start it with `longshore dev up --name nobody`\n"
    )


@pytest.mark.parametrize("name", ["Upper", "-dash", "dot.ted", "../up", "", "x" * 64])
def test_name_that_is_no_name(no_programs: FakeGo, name: str) -> None:
    done = longshore("up", "--name", name)
    assert done.returncode == 1
    assert "is not a valid cluster name" in done.stderr


def test_list_without_clusters(no_programs: FakeGo) -> None:
    assert longshore("list").stderr == "no clusters; start one with `longshore dev up`\n"
    assert _listed() == []


@pytest.mark.parametrize("command", [(), ("build",), ("up",), ("down",), ("list",), ("kubectl",)])
def test_help_has_an_example(command: tuple[str, ...]) -> None:
    assert "Example: " in longshore(*command, "--help").stdout
