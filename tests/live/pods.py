"""Pods as people write them, and where they are now."""

import json
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from longshore.dev import ControlPlane


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


def create(plane: ControlPlane, namespace: str, *pods: dict[str, Any]) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": list(pods)}
    plane.kubectl("create", "-n", namespace, "-f", "-", input=json.dumps(listed))


def pods(plane: ControlPlane, namespace: str) -> dict[str, dict[str, Any]]:
    listed = json.loads(plane.kubectl("get", "pods", "-n", namespace, "-o", "json"))
    return {item["metadata"]["name"]: item for item in listed["items"]}


def wait_until_running(plane: ControlPlane, namespace: str, count: int, *, within: float = 30.0) -> None:
    """Wait until so many pods run, as KWOK has them."""
    deadline = time.monotonic() + within
    while True:
        phases = Counter(pod["status"]["phase"] for pod in pods(plane, namespace).values())
        if phases["Running"] == count:
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"{count} pods should run; {dict(phases)} after {within:g} s")
        time.sleep(0.1)


def condition(pod: dict[str, Any], kind: str = "PodScheduled") -> dict[str, Any]:
    found: list[dict[str, Any]] = [c for c in pod["status"].get("conditions", ()) if c["type"] == kind]
    return found[0] if found else {}


def placed(plane: ControlPlane, namespace: str) -> dict[str, str]:
    """Where the pods are that are somewhere."""
    return {
        f"{namespace}/{name}": pod["spec"]["nodeName"]
        for name, pod in pods(plane, namespace).items()
        if "nodeName" in pod["spec"]
    }


def eventually(check: Callable[[], bool], *, within: float = 20.0, pause: float = 0.1) -> None:
    """Wait until it is so."""
    deadline = time.monotonic() + within
    while not check():
        assert time.monotonic() < deadline, f"not so after {within:g} s"
        time.sleep(pause)


def events(plane: ControlPlane, namespace: str, name: str) -> list[dict[str, Any]]:
    """What people were told about the pod, each thing once."""
    listed = json.loads(plane.kubectl("get", "events.events.k8s.io", "-n", namespace, "-o", "json"))
    return [item for item in listed["items"] if item["regarding"]["name"] == name]
