"""The nodes of a development cluster: API objects that are created in bulk, and run by KWOK if present."""

import time
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from longshore.api.timestamps import format_timestamp

_NOT_READY_TAINT = "node.kubernetes.io/not-ready"


def node_object(
    name: str, *, cpu: str, memory: str, pods: str, labels: Mapping[str, str], ready: bool
) -> dict[str, Any]:
    """Return a node object. Set `ready` for clusters without KWOK, which would report the status."""
    room = {"cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": "1Ti"}
    status: dict[str, Any] = {"allocatable": room, "capacity": room}
    if ready:
        now = format_timestamp(time.time())
        status["conditions"] = [
            {
                "type": "Ready",
                "status": "True",
                "reason": "Created",
                "message": "created Ready, without a kubelet",
                "lastHeartbeatTime": now,
                "lastTransitionTime": now,
            }
        ]
    standard = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": standard | dict(labels)},
        "status": status,
    }


class _Condition(msgspec.Struct):
    type: str
    status: str


class _Status(msgspec.Struct):
    conditions: list[_Condition] = []


class _Taint(msgspec.Struct):
    key: str


class _Spec(msgspec.Struct):
    taints: list[_Taint] = []


class _Meta(msgspec.Struct):
    name: str


class _Node(msgspec.Struct):
    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def usable(self) -> bool:
        ready = any(
            condition.type == "Ready" and condition.status == "True" for condition in self.status.conditions
        )
        return ready and not any(taint.key == _NOT_READY_TAINT for taint in self.spec.taints)


class _NodeList(msgspec.Struct):
    items: list[_Node]


def not_usable(names: Iterable[str], node_list: bytes) -> set[str]:
    """Return the named nodes that are not Ready in this list, or that still have the not-ready taint."""
    usable = {
        item.metadata.name for item in msgspec.json.decode(node_list, type=_NodeList).items if item.usable
    }
    return set(names) - usable
