"""Labeled nodes that do not fit, on the real control plane: the message on the pod, and what resolves it."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.live.pods import condition, create, events, placed, pods
from tests.live.static import NAME, Static, install, key, label, node_of, one_pass, pinned
from tests.live.test_volumes import claim, storage_class, volume
from tests.waiting import eventually

from longshore.dev import ControlPlane
from longshore.pin.labels import pin_key

# Soon after the backoff of a second, also on a busy machine, and long before the next check of all pods.
CURED_WITHIN = 10.0


@contextmanager
def not_ready(plane: ControlPlane, node: str) -> Iterator[None]:
    """Make a node NotReady. KWOK is stopped meanwhile, or it would set the node to Ready at once."""

    def report(status: str) -> None:
        conditions = [{"type": "Ready", "status": status, "reason": "Test", "message": "told by a test"}]
        patch = json.dumps({"status": {"conditions": conditions}})
        plane.kubectl("patch", "node", node, "--subresource=status", "-p", patch)

    assert plane.kwok is not None
    assert plane.kwok.pid is not None
    os.kill(plane.kwok.pid, signal.SIGSTOP)
    try:
        report("False")
        eventually(lambda: taints(plane, node), lambda found: "node.kubernetes.io/not-ready" in found)
        yield
        report("True")
    finally:
        os.kill(plane.kwok.pid, signal.SIGCONT)


def taints(plane: ControlPlane, node: str) -> str:
    return plane.kubectl("get", "node", node, "-o", "jsonpath={.spec.taints[*].key}")


@contextmanager
def cordoned(plane: ControlPlane, node: str) -> Iterator[None]:
    plane.kubectl("cordon", node)
    yield
    plane.kubectl("uncordon", node)


@contextmanager
def too_small(plane: ControlPlane, node: str) -> Iterator[None]:
    def offer(cpu: str) -> None:
        patch = json.dumps({"status": {"allocatable": {"cpu": cpu}, "capacity": {"cpu": cpu}}})
        plane.kubectl("patch", "node", node, "--subresource=status", "-p", patch)

    offer("10m")
    yield
    offer("8")


Trouble = Callable[[ControlPlane, str], AbstractContextManager[None]]


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        (not_ready, "1 node(s) were not ready"),
        (cordoned, "1 node(s) were unschedulable"),
        (too_small, "1 Insufficient cpu"),
    ],
)
def test_a_labeled_node_that_does_not_fit(
    control_plane: ControlPlane,
    namespace: str,
    nodes: list[str],
    static: Static,
    trouble: Trouble,
    reason: str,
) -> None:
    """The pod waits and its condition says why, until the node fits. The label value `force` skips that."""
    node = nodes[0]
    # The log names no namespaces.
    patient, forced, later = (f"{each}-{namespace}" for each in ("patient", "forced", "later"))
    label(control_plane, node, f"{key(namespace, patient)}=", f"{key(namespace, later)}=")
    label(control_plane, node, f"{key(namespace, forced)}=force")
    with trouble(control_plane, node):
        create(control_plane, namespace, *map(pinned, (patient, forced, later)))
        static.wait_for_line(f"Pod {forced} scheduled on node {node}")
        eventually(
            lambda: pods(control_plane, namespace)[patient], lambda found: condition(found).get("message")
        )
        assert reason in condition(pods(control_plane, namespace)[patient])["message"]
        eventually(lambda: events(control_plane, namespace, patient))
        assert reason in events(control_plane, namespace, patient)[0]["note"]
        label(control_plane, node, f"{key(namespace, later)}=force")
        static.wait_for_line(f"Pod {later} scheduled on node {node}", within=CURED_WITHIN)
        assert set(placed(control_plane, namespace)) == {f"{namespace}/{each}" for each in (forced, later)}
    static.wait_for_line(f"Pod {patient} scheduled on node {node}", within=CURED_WITHIN)
    assert node_of(control_plane, namespace, patient) == node


def with_data(name: str, *, scheduler: str = NAME) -> dict[str, Any]:
    """Return a pod with the claim `data`."""
    pod = pinned(name)
    pod["spec"]["schedulerName"] = scheduler
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    return pod


def test_a_pod_with_a_local_volume_on_another_node_gets_a_condition(
    control_plane: ControlPlane, namespace: str, nodes: list[str], static: Static
) -> None:
    disk = f"disk-of-{namespace}"
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": "data"}
    create(
        control_plane,
        namespace,
        volume(disk, node=nodes[1], of_class="pinned", claim=reference),
        claim("data", of_class="pinned"),
    )
    phase = ("get", "pvc", "data", "-n", namespace, "-o", "jsonpath={.status.phase}")
    eventually(lambda: control_plane.kubectl(*phase), lambda found: found == "Bound")
    label(control_plane, nodes[0], f"{key(namespace, 'db-0')}=")
    create(control_plane, namespace, with_data("db-0"))
    eventually(lambda: pods(control_plane, namespace)["db-0"], lambda found: condition(found).get("message"))
    told = condition(pods(control_plane, namespace)["db-0"])["message"]
    assert "1 node(s) didn't match PersistentVolume's node affinity" in told
    label(control_plane, nodes[1], f"{key(namespace, 'db-0')}=")
    eventually(lambda: node_of(control_plane, namespace, "db-0"), lambda found: found == nodes[1])
    control_plane.kubectl("delete", "pv", disk, "--wait=false")


@pytest.fixture
def unbound(control_plane: ControlPlane, namespace: str, nodes: list[str]) -> Iterator[None]:
    """Create the claim `data`, which waits for its first pod, and a local volume on each of two nodes."""
    local = f"local-{namespace}"
    disks = [f"{local}-{node}" for node in nodes[:2]]
    create(
        control_plane,
        namespace,
        storage_class(local, "kubernetes.io/no-provisioner"),
        *(volume(disk, node=node, of_class=local) for disk, node in zip(disks, nodes, strict=False)),
        claim("data", of_class=local),
    )
    yield
    control_plane.kubectl("delete", "storageclass", local)
    control_plane.kubectl("delete", "pv", "--wait=false", *disks)


def data_of(plane: ControlPlane, namespace: str) -> str:
    """Return the volume that the claim is bound to."""
    return plane.kubectl("get", "pvc", "data", "-n", namespace, "-o", "jsonpath={.spec.volumeName}")


def test_a_claim_that_waits_for_its_pod_gets_the_volume_of_the_labeled_node(
    control_plane: ControlPlane, namespace: str, nodes: list[str], static: Static, unbound: None
) -> None:
    label(control_plane, nodes[1], f"{key(namespace, 'db-0')}=")
    create(control_plane, namespace, with_data("db-0"))
    eventually(lambda: node_of(control_plane, namespace, "db-0"), lambda found: found == nodes[1])
    assert data_of(control_plane, namespace) == f"local-{namespace}-{nodes[1]}"


def test_a_claim_that_waits_for_its_pod_takes_a_second_pass(
    control_plane: ControlPlane, namespace: str, nodes: list[str], unbound: None, tmp_path: Path
) -> None:
    label(control_plane, nodes[1], f"{pin_key('pass', namespace, 'db-0')}=")
    create(control_plane, namespace, with_data("db-0", scheduler="pass"))
    kubeconfig = str(install(control_plane))
    assert one_pass(tmp_path, "--name=pass", KUBECONFIG=kubeconfig).returncode == 0
    eventually(
        lambda: data_of(control_plane, namespace), lambda found: found == f"local-{namespace}-{nodes[1]}"
    )
    assert one_pass(tmp_path, "--name=pass", KUBECONFIG=kubeconfig).returncode == 0
    assert node_of(control_plane, namespace, "db-0") == nodes[1]
