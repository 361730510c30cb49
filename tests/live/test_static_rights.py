"""The rights of `longshore static`, and how it finds the cluster."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.live.pods import condition, create, events, pods
from tests.live.static import (
    MANIFEST,
    NAME,
    Static,
    install,
    key,
    label,
    node_of,
    one_pass,
    pinned,
    running,
)
from tests.waiting import eventually

from longshore.dev import ControlPlane

# The rights of the original, which does not watch.
LISTS = [
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]},
]
LACKS = (
    "no right to create events.events.k8s.io: with -vv the log says why a pod waits",
    "no right to patch pods/status: conditions do not say why a pod waits",
    "no right to read volumes: they are not considered",
    "no right to read namespaces: their labels are unknown",
)


def with_the_least_rights() -> str:
    """Return the manifest with the one line changed that its comment names."""
    lines = MANIFEST.read_text().splitlines()
    [comment] = [line for line in lines if "For the minimal rights, write" in line]
    [role] = re.findall(r"write (\S+) here", comment)
    line = lines.index(comment) + 1
    lines[line] = f"{lines[line].partition(':')[0]}: {role}"
    return "\n".join(lines)


def unbind(plane: ControlPlane) -> None:
    """Delete the binding, because its role cannot be changed."""
    plane.kubectl("delete", "clusterrolebinding", "longshore-static", "--ignore-not-found")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free: int = taken.getsockname()[1]
        return free


port = pytest.fixture(free_port, scope="module", name="port")
another_port = pytest.fixture(free_port, scope="module", name="another_port")


@pytest.fixture(scope="module")
def minimal(
    control_plane: ControlPlane, port: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Static]:
    """`longshore static` with the minimal rights of the manifest, and with a port from a variable."""
    unbind(control_plane)
    kubeconfig = install(control_plane, with_the_least_rights())
    folder, variables = tmp_path_factory.mktemp("minimal"), {"SCHED_PROMETHEUS_PORT": str(port)}
    with running(folder, "--name", NAME, kubeconfig=kubeconfig, **variables) as scheduler:
        scheduler.wait_for_line("ready")
        yield scheduler
    unbind(control_plane)
    install(control_plane)


@pytest.fixture(scope="module")
def lists(
    control_plane: ControlPlane, another_port: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Static]:
    """`longshore static` with the rights of the original static scheduler, and without metrics."""
    kubeconfig = control_plane.service_account("lists", rules=LISTS)
    variables = {
        "SCHED_NAME": "lists",
        "SCHED_DELAY": "0.2",
        "SCHED_PROMETHEUS": "false",
        "SCHED_PROMETHEUS_PORT": str(another_port),
    }
    with running(tmp_path_factory.mktemp("lists"), kubeconfig=kubeconfig, **variables) as scheduler:
        yield scheduler
        assert scheduler.stop() == 0


def test_the_least_rights_are_enough_to_bind(
    control_plane: ControlPlane, namespace: str, nodes: list[str], minimal: Static
) -> None:
    label(control_plane, nodes[0], f"{key(namespace, 'bound')}=")
    create(control_plane, namespace, pinned("waiting"), pinned("bound"))
    eventually(lambda: node_of(control_plane, namespace, "bound"), lambda found: found == nodes[0])
    label(control_plane, nodes[0], f"{key(namespace, 'waiting')}=")
    minimal.wait_for_line("Pod waiting scheduled on node")


def test_what_the_least_rights_forbid_is_logged_once_and_not_tried(
    control_plane: ControlPlane, namespace: str, nodes: list[str], minimal: Static
) -> None:
    label(control_plane, nodes[0], f"{key(namespace, 'somewhere')}=")
    create(control_plane, namespace, pinned("nowhere"), pinned("nowhere-too"), pinned("somewhere"))
    minimal.wait_for_line("Pod somewhere scheduled on node")
    for lack in LACKS:
        assert [lack in line and " - WARNING - " in line for line in minimal.lines].count(True) == 1
    assert "is forbidden" not in minimal.log.read_text()
    assert events(control_plane, namespace, "nowhere") == []
    assert condition(pods(control_plane, namespace)["nowhere"]) == {}


def test_without_the_right_to_write_events_the_log_says_why_a_pod_waits(
    control_plane: ControlPlane, namespace: str, minimal: Static
) -> None:
    create(control_plane, namespace, pinned("waits"))
    told = minimal.wait_for_line(f"INFO - Pod {namespace}/waits waits: ")
    assert f"no node is labeled {key(namespace, 'waits')}" in told


def test_metrics_are_on_the_port_of_the_variable(minimal: Static, port: int) -> None:
    assert minimal.port == port
    assert "schedule_request" in minimal.page()


def test_without_watches_the_cluster_is_listed_again_and_again(
    control_plane: ControlPlane, namespace: str, nodes: list[str], lists: Static
) -> None:
    def pod() -> dict[str, object]:
        made = pinned("listed")
        made["spec"]["schedulerName"] = "lists"
        return made

    told = lists.wait_for_line("pods and nodes cannot be watched")
    assert told.endswith("listed in each pass, seconds: 0.2")
    mark = f"rf.scheduler.lists.{namespace}/listed"
    create(control_plane, namespace, pod())
    label(control_plane, nodes[0], f"{mark}=")
    eventually(lambda: node_of(control_plane, namespace, "listed"), lambda found: found == nodes[0])

    # The pod may be deleted and created again between two passes, with the label on another node.
    label(control_plane, nodes[0], f"{mark}-")
    label(control_plane, nodes[1], f"{mark}=")
    control_plane.kubectl("delete", "pod", "listed", "-n", namespace, "--now")
    create(control_plane, namespace, pod())
    eventually(lambda: node_of(control_plane, namespace, "listed"), lambda found: found == nodes[1])

    # A node that does not fit at first, and fits later.
    control_plane.kubectl("cordon", nodes[1])
    control_plane.kubectl("delete", "pod", "listed", "-n", namespace, "--now")
    create(control_plane, namespace, pod())
    control_plane.kubectl("uncordon", nodes[1])
    eventually(lambda: node_of(control_plane, namespace, "listed"), lambda found: found == nodes[1])
    assert [line for line in lists.lines if " - ERROR - " in line] == []


def test_the_variable_sched_prometheus_closes_the_port(lists: Static, another_port: int) -> None:
    lists.wait_for_line("pods and nodes cannot be watched")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", another_port), timeout=5)


def test_without_the_right_to_look_a_pass_ends_with_one_line(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    kubeconfig = control_plane.service_account("nobody", namespace=namespace)
    done = one_pass(tmp_path, "--kubeconfig", str(kubeconfig))
    assert done.returncode == 1
    told = done.stderr.splitlines()
    assert told[-1].startswith("error: cannot list the cluster's objects: ")
    assert "is forbidden" in told[-1]


def test_the_service_account_of_a_pod_is_found_in_its_folder(
    control_plane: ControlPlane, namespace: str, nodes: list[str], tmp_path: Path
) -> None:
    """The folder is set by the flag and by the variable, and there is no kubeconfig."""
    control_plane.service_account("in-a-pod", namespace=namespace, rules=LISTS)
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text(control_plane.token(namespace, "in-a-pod"))
    (folder / "ca.crt").write_text(control_plane.ca_file.read_text())
    host, port = control_plane.server.removeprefix("https://").split(":")
    cluster = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    for name in ("by-flag", "by-variable"):
        pod = pinned(name)
        pod["spec"]["schedulerName"] = name
        create(control_plane, namespace, pod)
        label(control_plane, nodes[0], f"rf.scheduler.{name}.{namespace}/{name}=")
    flag = f"--incluster-base-path={folder}"
    done = one_pass(tmp_path, "--name=by-flag", flag, **cluster, SCHED_INCLUSTER_BASE_PATH="/nowhere")
    assert (done.returncode, done.stderr) == (0, "")
    done = one_pass(tmp_path, "--name=by-variable", **cluster, SCHED_INCLUSTER_BASE_PATH=str(folder))
    assert (done.returncode, done.stderr) == (0, "")
    for name in ("by-flag", "by-variable"):
        assert node_of(control_plane, namespace, name) == nodes[0]
