"""What every cluster promises, checked with the one that all tests share."""

import json
import os
import socket
import ssl
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from longshore.dev import ControlPlane, KubectlError, kubectl
from longshore.dev.build import programs_folder
from longshore.dev.fixtures import Repetitions

_POD = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  nodeName: node-0
  containers: [{name: web, image: example.org/web}]
"""


def _as(kubeconfig: Path, *arguments: str) -> str:
    return kubectl.run(programs_folder() / "kubectl", kubeconfig, arguments)


def test_every_component_has_its_version(control_plane: ControlPlane) -> None:
    server = json.loads(control_plane.kubectl("version", "-o", "json"))["serverVersion"]
    assert server["gitVersion"] == "v1.36.3"
    assert (server["major"], server["minor"]) == ("1", "36")


def test_nodes_are_ready_and_free_of_taints(control_plane: ControlPlane) -> None:
    nodes = json.loads(control_plane.kubectl("get", "nodes", "node-0", "node-1", "node-2", "-o", "json"))[
        "items"
    ]
    for node in nodes:
        assert {c["type"]: c["status"] for c in node["status"]["conditions"]}["Ready"] == "True"
        assert "taints" not in node["spec"]
        assert node["status"]["allocatable"]["cpu"] == "8"


def test_a_pod_on_a_node_runs(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.kubectl("create", "-n", namespace, "-f", "-", input=_POD)
    control_plane.kubectl(
        "wait", "-n", namespace, "--for=jsonpath={.status.phase}=Running", "pod/web", "--timeout=30s"
    )


def test_a_deleted_pod_disappears(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.kubectl("create", "-n", namespace, "-f", "-", input=_POD)
    control_plane.kubectl("delete", "-n", namespace, "pod", "web", "--timeout=30s")


def test_a_namespace_accepts_pods_immediately(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.kubectl("run", "web", "-n", namespace, "--image=example.org/web")


def test_the_numbers_of_added_nodes_continue(control_plane: ControlPlane) -> None:
    first = control_plane.add_nodes(2, prefix="extra-", cpu="4", memory="8Gi", labels={"zone": "a"})
    second = control_plane.add_nodes(1, prefix="extra-")
    assert [*first, *second] == ["extra-0", "extra-1", "extra-2"]
    found = json.loads(control_plane.kubectl("get", "nodes", "-l", "zone=a", "-o", "json"))["items"]
    assert [node["status"]["allocatable"]["memory"] for node in found] == ["8Gi", "8Gi"]
    control_plane.kubectl("delete", "node", *first, *second)


def test_a_manifest_is_applied_from_text_and_from_a_file(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: NAME, namespace: {namespace}}}\n"
    control_plane.apply(text.replace("NAME", "one"))
    file = tmp_path / "two.yaml"
    file.write_text(text.replace("NAME", "two"))
    control_plane.apply(file)
    control_plane.kubectl("get", "configmap", "-n", namespace, "one", "two")


def test_a_kubectl_error_includes_its_message(control_plane: ControlPlane) -> None:
    with pytest.raises(KubectlError, match=r'kubectl get pod nobody: .*pods "nobody" not found'):
        control_plane.kubectl("get", "pod", "nobody")


def test_service_account_without_rights_is_forbidden(control_plane: ControlPlane, namespace: str) -> None:
    kubeconfig = control_plane.service_account("nobody", namespace=namespace)
    with pytest.raises(
        KubectlError, match=rf"Forbidden.*system:serviceaccount:{namespace}:nobody.*cannot list"
    ):
        _as(kubeconfig, "get", "pods", "-n", namespace)


def test_service_account_has_the_rights_it_was_given_and_no_more(
    control_plane: ControlPlane, namespace: str
) -> None:
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    kubeconfig = control_plane.service_account("reader", namespace=namespace, rules=rules)
    _as(kubeconfig, "get", "pods", "-n", namespace)
    with pytest.raises(KubectlError, match="Forbidden"):
        _as(kubeconfig, "get", "secrets", "-n", namespace)


def test_service_account_with_an_existing_role(control_plane: ControlPlane, namespace: str) -> None:
    kubeconfig = control_plane.service_account("viewer", namespace=namespace, cluster_role="view")
    _as(kubeconfig, "get", "configmaps", "-n", namespace)


def test_an_anonymous_client_is_rejected(control_plane: ControlPlane) -> None:
    context = ssl.create_default_context(cafile=str(control_plane.ca_file))
    with pytest.raises(urllib.error.HTTPError) as refusal:
        urllib.request.urlopen(f"{control_plane.server}/api/v1/nodes", context=context)  # noqa: S310
    assert refusal.value.code == 401
    refusal.value.close()


def test_a_client_without_the_authority_rejects_the_server(control_plane: ControlPlane) -> None:
    with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
        urllib.request.urlopen(f"{control_plane.server}/readyz")  # noqa: S310


def test_only_the_owner_can_read_the_cluster(control_plane: ControlPlane) -> None:
    assert stat.S_IMODE(control_plane.folder.stat().st_mode) == 0o700
    for path in [*control_plane.folder.glob("*.key"), *control_plane.folder.glob("*kubeconfig")]:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_all_components_listen_on_the_loopback_address_only(control_plane: ControlPlane) -> None:
    pids = {component.pid for component in control_plane.components}
    inodes = {
        target.removeprefix("socket:[").removesuffix("]")
        for pid in pids
        for link in Path(f"/proc/{pid}/fd").iterdir()
        if (target := _link(link)).startswith("socket:[")
    }
    listening = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:  # 0A is LISTEN
                listening.append(fields[1])
    loopback = socket.inet_aton("127.0.0.1")[::-1].hex().upper()
    port = int(control_plane.server.rpartition(":")[2])
    assert listening == [f"{loopback}:{port:04X}"]


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except FileNotFoundError:  # closed meanwhile
        return ""


def test_another_program_cannot_take_the_port(control_plane: ControlPlane) -> None:
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", int(control_plane.server.rpartition(":")[2])))


def test_repetitions_are_limited_except_in_long_runs(repetitions: Repetitions) -> None:
    long = os.environ.get("LONGSHORE_LONG") == "1"
    assert repetitions(full=20) == (20 if long else 3)
    assert repetitions(full=2) == 2


def test_tests_that_use_a_cluster_are_marked(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["longshore.dev.fixtures"]\n')
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "@pytest.fixture\ndef indirect(namespace): ...\n"
        "def test_plain(): ...\n"
        "def test_real(indirect): ...\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = control_plane: real\n")
    collect = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-m", "not control_plane"]
    listed = subprocess.run(collect, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "test_plain" in listed
    assert "test_real" not in listed
