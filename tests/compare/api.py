"""A client that creates objects from the builders of `longshore.testing` on a real API server.

The API server sets defaults, and refuses and changes objects, so that both schedulers read real objects.
"""

import http.client
import json
import ssl
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

import msgspec

from longshore.api import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
    StorageClass,
    VolumeAttachment,
)
from longshore.api.meta import ApiObject
from longshore.dev import ControlPlane
from longshore.kube.kinds import KINDS
from longshore.kube.resources import Resource

# In the order of creation. Objects are deleted in the reverse order.
CREATION_ORDER: tuple[type[ApiObject], ...] = (
    Namespace,
    StorageClass,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    VolumeAttachment,
    Service,
    ReplicationController,
    ReplicaSet,
    StatefulSet,
    PodDisruptionBudget,
    Node,
    Pod,
)
_AT_ONCE = {"gracePeriodSeconds": 0}

Document = dict[str, Any]


class Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{message} (HTTP {status})")
        self.status = status


def resource_of(thing: ApiObject | type[ApiObject]) -> Resource[Any]:
    kind = thing if isinstance(thing, type) else type(thing)
    return KINDS[next(each for each in CREATION_ORDER if issubclass(kind, each))].resource


def address(thing: ApiObject, *, subresource: str = "") -> str:
    named = thing.metadata
    namespace = named.namespace
    return resource_of(thing).path(namespace=namespace, name=named.name, subresource=subresource)


class Api:
    """A client with blocking requests."""

    def __init__(self, plane: ControlPlane) -> None:
        plane.service_account("compare", cluster_role="cluster-admin")
        self._token = plane.token("default", "compare")
        self._tls = ssl.create_default_context(cafile=str(plane.ca_file))
        self._port = urlsplit(plane.server).port
        self._connection: http.client.HTTPSConnection | None = None

    def request(self, method: str, path: str, body: object = None, *, patch: str = "merge") -> Document:
        """Send a request. Raises `Refused` if the API server refuses it."""
        if self._connection is None:
            self._connection = http.client.HTTPSConnection(
                "127.0.0.1", self._port, context=self._tls, timeout=30
            )
        kind = f"application/{patch}-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        content = None if body is None else json.dumps(body).encode()
        try:
            self._connection.request(method, path, content, headers)
            response = self._connection.getresponse()
            answer: Document = json.loads(response.read())
        except (http.client.HTTPException, OSError):
            self.close()
            raise
        if response.status >= 300:
            raise Refused(response.status, answer.get("message", ""))
        return answer

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def create(self, *things: ApiObject) -> None:
        for thing in things:
            body = manifest(thing)
            resource = resource_of(thing)
            self.request("POST", resource.path(namespace=thing.metadata.namespace), body)
            if status := _status_of_its_own(thing, body):
                self.request("PATCH", address(thing, subresource="status"), {"status": status})

    def get(self, thing: ApiObject) -> Document:
        return self.request("GET", address(thing))

    def find(self, thing: ApiObject) -> Document | None:
        """Return the object as it is now, or None if it does not exist."""
        try:
            return self.get(thing)
        except Refused as refused:
            if refused.status == 404:
                return None
            raise

    def patch(self, thing: ApiObject, body: object, *, subresource: str = "", patch: str = "merge") -> None:
        self.request("PATCH", address(thing, subresource=subresource), body, patch=patch)

    def delete(self, *things: ApiObject, grace: bool = False) -> None:
        """Delete the objects that exist, without a grace period unless `grace` is set."""
        for thing in things:
            try:
                self.request("DELETE", address(thing), None if grace else _AT_ONCE)
            except Refused as refused:
                if refused.status != 404:
                    raise

    def listed(self, kind: type[ApiObject], query: str = "") -> list[Document]:
        path = resource_of(kind).path() + (f"?{query}" if query else "")
        found: list[Document] = self.request("GET", path)["items"]
        return found

    def events(self, uid: str) -> list[Document]:
        """Return the events of an object."""
        path = f"/api/v1/events?fieldSelector=involvedObject.uid%3D{uid}"
        found: list[Document] = self.request("GET", path)["items"]
        return found


def manifest(thing: ApiObject) -> Document:
    """Return the manifest for an object of a builder."""
    document: Document = msgspec.to_builtins(thing)
    document["metadata"].pop("uid", None)
    if isinstance(thing, Pod):
        _complete_pod(document["spec"])
    if isinstance(thing, Node):
        document["status"]["capacity"] = document["status"]["allocatable"]
    if isinstance(thing, PersistentVolume) and "csi" not in document["spec"]:
        document["spec"]["hostPath"] = {"path": "/data"}
    if isinstance(thing, CSINode):
        for driver in document["spec"]["drivers"]:
            driver["nodeID"] = thing.metadata.name
    if isinstance(thing, (ReplicaSet, StatefulSet)):
        labels = document["spec"]["selector"]["matchLabels"]
        main = {"name": "main", "image": "none"}
        document["spec"] |= {
            "replicas": 0,
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [main]}},
        }
    if isinstance(thing, Service):
        document["spec"] = {"clusterIP": "None", **document.get("spec", {})}
    return document


def _complete_pod(spec: Document) -> None:
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        container.setdefault("image", "none")
        resources = container.get("resources", {})
        # These resources cannot be overcommitted, so the API server requires limits.
        limits = {name: amount for name, amount in resources.get("requests", {}).items() if "/" in name}
        if limits:
            resources["limits"] = limits
    for volume in spec.get("volumes", ()):
        if "iscsi" in volume:
            volume["iscsi"] |= {"targetPortal": "10.0.0.1", "lun": 0}
    # A priority comes from a class. There is one for each priority in use.
    priority, policy = spec.pop("priority", None), spec.pop("preemptionPolicy", None)
    if priority is not None:
        spec["priorityClassName"] = f"priority-{priority}" + ("-never" if policy == "Never" else "")


def priority_classes(priorities: Iterable[int]) -> list[Document]:
    return [
        {
            "metadata": {"name": f"priority-{value}{suffix}"},
            "value": value,
            "preemptionPolicy": policy,
        }
        for value in priorities
        for suffix, policy in (("", "PreemptLowerPriority"), ("-never", "Never"))
    ]


def _status_of_its_own(thing: ApiObject, body: Document) -> Document:
    """Return the status that the API server drops when it creates an object. It keeps that of nodes."""
    status: Document = body.get("status", {})
    if isinstance(thing, Node) or status in ({"phase": "Pending"}, {"phase": "Available"}):
        return {}
    return status
