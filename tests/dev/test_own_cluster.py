"""Clusters for single tests: without some components, with failures, and with the end of their owner."""

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import eventually

from longshore.dev import ControlPlane, KubectlError, control_plane
from longshore.dev.cache import cache_folder
from longshore.dev.fixtures import OwnCluster
from longshore.dev.owner import Owner
from longshore.dev.ports import Port
from longshore.errors import UserError

pytestmark = pytest.mark.control_plane


def _wait_until_ended(owners: list[Owner]) -> None:
    eventually(lambda: [owner for owner in owners if owner.alive], lambda running: not running, pause=0.02)


def _owners(plane: ControlPlane) -> list[Owner]:
    return [Owner.of(component.pid) for component in plane.components if component.pid]


def test_two_clusters_side_by_side_with_a_scheduler_in_one(own_cluster: OwnCluster) -> None:
    first = own_cluster(nodes=1, scheduler=True)
    second = own_cluster(nodes=2)
    assert first.server != second.server
    assert len(json.loads(first.kubectl("get", "nodes", "-o", "json"))["items"]) == 1
    assert len(json.loads(second.kubectl("get", "nodes", "-o", "json"))["items"]) == 2
    for plane in (first, second):
        plane.kubectl("run", "web", "--image=example.org/web")
    first.kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=30s")
    assert "Pending" in second.kubectl("get", "pod", "web")
    with pytest.raises(KubectlError, match="certificate"):
        first.kubectl("--server", second.server, "get", "nodes")


def test_the_api_server_restarts_on_its_port_with_its_data(own_cluster: OwnCluster) -> None:
    plane = own_cluster(nodes=1)
    server = plane.server
    plane.api_server.kill()
    with pytest.raises(KubectlError, match="refused"):
        plane.kubectl("get", "nodes")
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", int(server.rpartition(":")[2])))
    plane.api_server.restart()
    assert plane.server == server
    assert "node-0" in plane.kubectl("get", "nodes")
    plane.add_nodes(1)  # controllers and KWOK are back as well


def test_without_kwok_and_controller_manager_nodes_are_ready_objects(own_cluster: OwnCluster) -> None:
    plane = own_cluster(nodes=2, kwok=False, controller_manager=False)
    assert [component.name for component in plane.components] == ["etcd", "kube-apiserver"]
    nodes = json.loads(plane.kubectl("get", "nodes", "-o", "json"))["items"]
    assert [node["status"]["conditions"][0]["status"] for node in nodes] == ["True", "True"]
    assert all("taints" not in node["spec"] for node in nodes)
    plane.kubectl("run", "web", "--image=example.org/web")  # needs no service account


def test_without_kwok_nodes_are_ready_and_pods_stay_as_they_are(own_cluster: OwnCluster) -> None:
    plane = own_cluster(nodes=1, kwok=False, scheduler=True)
    plane.kubectl("run", "web", "--image=example.org/web")
    plane.kubectl("wait", "--for=condition=PodScheduled", "pod/web", "--timeout=30s")
    assert "Pending" in plane.kubectl("get", "pod", "web")


def test_a_stopped_cluster_leaves_no_process_and_no_folder() -> None:
    with ControlPlane.start(nodes=0, kwok=False, controller_manager=False) as plane:
        owners = _owners(plane)
        assert all(owner.alive for owner in owners)
    assert not any(owner.alive for owner in owners)
    assert not plane.folder.exists()


def test_everything_ends_with_a_test_process_that_is_killed() -> None:
    script = """
import json, threading, time
from longshore.dev import ControlPlane
planes = []
# Started from a thread that ends: the cluster must not end with it.
starter = threading.Thread(target=lambda: planes.append(ControlPlane.start(nodes=1)))
starter.start()
starter.join()
time.sleep(0.5)
pids = [part.pid for part in planes[0].components]
print(json.dumps({"pids": pids, "folder": str(planes[0].folder)}), flush=True)
time.sleep(600)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    started = json.loads(process.stdout.readline())
    owners = [Owner.of(pid) for pid in started["pids"]]
    assert len(owners) == 4
    assert all(owner.alive for owner in owners)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    _wait_until_ended(owners)
    with ControlPlane.start(nodes=0, kwok=False, controller_manager=False) as next_plane:
        assert not Path(started["folder"]).exists()
        assert next_plane.folder.parent == cache_folder() / "scratch"


def test_a_component_that_fails_to_start_is_reported_and_nothing_keeps_running(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The port is in use by a program that does not share it, as could happen if reserving it failed."""
    taken = socket.create_server(("127.0.0.1", 0))

    class TakenPort(Port):
        def __init__(self) -> None:
            super().__init__()
            self.number = taken.getsockname()[1]

    monkeypatch.setattr(control_plane, "Port", TakenPort)
    with (
        taken,
        pytest.raises(UserError, match=r"^kube-apiserver ended .*address already in use.*; log: ") as failure,
    ):
        ControlPlane.start(nodes=0)
    message = str(failure.value)
    assert "\n" not in message
    log = Path(message.rpartition("log: ")[2])
    assert log.exists()
    monkeypatch.undo()
    with ControlPlane.start(nodes=0, kwok=False, controller_manager=False):
        pass  # the next try works


def test_missing_cryptography_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "longshore.dev.certificates", raising=False)
    monkeypatch.setitem(sys.modules, "cryptography", None)  # what Python keeps for a module that is not there
    with pytest.raises(UserError, match=r"pip install 'longshore\[dev\]'"):
        ControlPlane.start(nodes=0)
