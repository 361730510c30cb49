"""The answers of a running scheduler on its port for metrics and probes."""

import json
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from tests.live.conftest import Scheduler, StartScheduler
from tests.live.pods import create, manifest, wait_until_running
from tests.waiting import eventually

from longshore.api.pod_set import SCHEDULER_NAME
from longshore.dev import ControlPlane
from longshore.dev.fixtures import OwnCluster

# It waits in C code, where no time limit reaches it.
STUCK = """
import ctypes
from longshore.framework import filter_plugin

@filter_plugin
def sleeps(pod, node):
    ctypes.CDLL(None).sleep(120)
"""


def port_of(scheduler: Scheduler, *, within: float = 30.0) -> int:
    """Return the port that the scheduler logs."""
    text = eventually(scheduler.log.read_text, lambda text: '"serving metrics"' in text, within=within)
    [line] = [line for line in text.splitlines() if '"serving metrics"' in line]
    return int(json.loads(line)["port"])


def ask(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def wait_for(port: int, path: str, status: int, *, within: float = 30.0) -> str:
    return eventually(lambda: ask(port, path), lambda answer: answer[0] == status, within=within)[1]


def test_leader_and_standby_are_ready_and_count_what_they_do(
    own_cluster: OwnCluster, start_scheduler: StartScheduler
) -> None:
    plane = own_cluster(nodes=2)
    leader, standby = start_scheduler(plane), start_scheduler(plane)
    ports = [port_of(leader), port_of(standby)]
    for port in ports:
        wait_for(port, "/readyz", 200)
        assert ask(port, "/healthz") == (200, "ok")
        assert ask(port, "/livez") == (200, "ok")
    create(plane, "default", *(manifest(f"web-{number}") for number in range(5)), manifest("huge", cpu="99"))
    wait_until_running(plane, "default", 5, within=60)

    def counts() -> list[dict[tuple[str, str], float]]:
        """The numbers of the standby and of the leader."""
        told = [
            {
                (sample.name, sample.labels.get("result", "")): sample.value
                for family in text_string_to_metric_families(ask(port, "/metrics")[1])
                for sample in family.samples
                if sample.name in ("leader_election_master_status", "scheduler_schedule_attempts_total")
                and sample.labels.get("profile") != SCHEDULER_NAME
            }
            for port in ports
        ]
        return sorted(told, key=lambda numbers: numbers["leader_election_master_status", ""])

    scheduled = ("scheduler_schedule_attempts_total", "scheduled")
    # A pod can run before the scheduler has the answer to its bind.
    passive, active = eventually(counts, lambda found: found[1][scheduled] >= 5)
    assert [each["leader_election_master_status", ""] for each in (passive, active)] == [0, 1]
    assert active[scheduled] == 5
    assert active["scheduler_schedule_attempts_total", "unschedulable"] >= 1
    assert passive[scheduled] == 0


def test_every_mirrored_resource_is_counted(
    control_plane: ControlPlane, start_scheduler: StartScheduler
) -> None:
    port = port_of(start_scheduler(control_plane, "--no-leader-elect", "--scheduler-name=counting"))
    wait_for(port, "/readyz", 200)
    families = {family.name: family for family in text_string_to_metric_families(ask(port, "/metrics")[1])}
    synced = {s.labels["resource"]: s.value for s in families["longshore_reflector_synced"].samples}
    assert set(synced.values()) == {1}
    assert {"pods", "nodes", "poddisruptionbudgets.policy"} <= synced.keys()
    assert "leader_election_master_status" not in families


def test_a_plugin_stuck_in_c_code_turns_healthz_red(
    own_cluster: OwnCluster, start_scheduler: StartScheduler, tmp_path: Path
) -> None:
    plane = own_cluster(nodes=1)
    plugin = tmp_path / "stuck.py"
    plugin.write_text(STUCK)
    port = port_of(start_scheduler(plane, f"--plugin={plugin}", "--no-leader-elect"))
    wait_for(port, "/readyz", 200)
    create(plane, "default", manifest("web"))
    told = wait_for(port, "/healthz", 500)
    assert "[-]plugins failed: Sleeps was called" in told


def test_a_port_in_use_ends_the_start_with_one_line(control_plane: ControlPlane) -> None:
    kubeconfig = control_plane.kubeconfig
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [
                *(sys.executable, "-m", "longshore", "run", "--no-leader-elect"),
                *(f"--kubeconfig={kubeconfig}", f"--metrics-port={port}", "--bind-address=127.0.0.1"),
            ],
            capture_output=True,
            text=True,
            env=os.environ,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    [line] = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    assert line.startswith(f"error: cannot serve metrics on port {port}: Address already in use")
