"""Pods as people write them, where they are now, and how to wait for that."""

from collections import Counter
from itertools import groupby
from typing import Any

from tests.waiting import eventually

from longshore.dev import ControlPlane

_CLUSTER_SCOPED = {"Node", "PersistentVolume", "PriorityClass", "StorageClass"}


def manifest(
    name: str, *, cpu: str = "100m", scheduler: str = "longshore", **metadata: Any
) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {"schedulerName": scheduler, "containers": [container]},
    }


def create(plane: ControlPlane, namespace: str, *objects: dict[str, Any]) -> None:
    """Create objects of any kind, in this order."""
    for path, same in groupby(objects, lambda each: _collection(each, namespace)):
        plane.create(path, *same)


def bind(plane: ControlPlane, namespace: str, name: str, node: str) -> None:
    """Bind the pod to the node, as a scheduler does."""
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    plane.create(f"/api/v1/namespaces/{namespace}/pods/{name}/binding", binding)


def pods(plane: ControlPlane, namespace: str) -> dict[str, dict[str, Any]]:
    listed = plane.get(f"/api/v1/namespaces/{namespace}/pods")
    return {item["metadata"]["name"]: item for item in listed["items"]}


def wait_until_running(plane: ControlPlane, namespace: str, count: int, *, within: float = 30.0) -> None:
    """Wait until exactly this many pods have the phase Running, which KWOK sets."""
    eventually(
        lambda: Counter(pod["status"]["phase"] for pod in pods(plane, namespace).values()),
        lambda phases: phases["Running"] == count,
        within=within,
    )


def condition(pod: dict[str, Any], kind: str = "PodScheduled") -> dict[str, Any]:
    found: list[dict[str, Any]] = [c for c in pod["status"].get("conditions", ()) if c["type"] == kind]
    return found[0] if found else {}


def placed(plane: ControlPlane, namespace: str) -> dict[str, str]:
    """The node of each pod that has one."""
    return {
        f"{namespace}/{name}": pod["spec"]["nodeName"]
        for name, pod in pods(plane, namespace).items()
        if "nodeName" in pod["spec"]
    }


def events(plane: ControlPlane, namespace: str, name: str) -> list[dict[str, Any]]:
    """The events about the object of this name; a series of equal events is one."""
    listed = plane.get(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")
    return [item for item in listed["items"] if item["regarding"]["name"] == name]


def _collection(manifest: dict[str, Any], namespace: str) -> str:
    version, kind = manifest["apiVersion"], manifest["kind"]
    plural = kind.lower() + ("es" if kind.endswith("s") else "s")
    where = "" if kind in _CLUSTER_SCOPED else f"/namespaces/{namespace}"
    return f"/{'apis' if '/' in version else 'api'}/{version}{where}/{plural}"
