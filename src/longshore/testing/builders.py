"""Builders that are what they build: each method returns a changed copy, and every copy is a whole object.

A pod is pending, meant for the scheduler `longshore`, and without requests unless it is told otherwise; a
node offers room for 110 pods. UIDs follow from the names, so that a test gives the same result each time.
"""

from typing import Self

import msgspec

from longshore.api import (
    Container,
    Node,
    NodeCondition,
    NodeStatus,
    ObjectMeta,
    Pod,
    PodCondition,
    PodSchedulingGate,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    Taint,
)

_replace = msgspec.structs.replace


class PodBuilder(Pod):
    """A pod whose methods return changed copies."""

    def labels(self, **labels: str) -> Self:
        return _replace(self, metadata=_replace(self.metadata, labels={**self.metadata.labels, **labels}))

    def uid(self, uid: str) -> Self:
        """Another UID: another pod, should the name be the same."""
        return _replace(self, metadata=_replace(self.metadata, uid=uid))

    def deleting(self) -> Self:
        """Its deletion was asked for and has not ended yet."""
        return _replace(self, metadata=_replace(self.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))

    def requests(self, **requests: str) -> Self:
        """What its first container asks for; names with a domain as `**{"nvidia.com/gpu": "1"}`."""
        first, *others = self.spec.containers
        first = _replace(first, resources=ResourceRequirements(requests=requests))
        return self._with(containers=(first, *others))

    def container(self, name: str, **requests: str) -> Self:
        """One more container."""
        return self._with(containers=(*self.spec.containers, _container(name, requests)))

    def init_container(self, name: str, **requests: str) -> Self:
        """One more container that has to end before the others start."""
        return self._with(init_containers=(*self.spec.init_containers, _container(name, requests)))

    def sidecar(self, name: str, **requests: str) -> Self:
        """One more container that starts before the others and stays."""
        sidecar = _replace(_container(name, requests), restart_policy="Always")
        return self._with(init_containers=(*self.spec.init_containers, sidecar))

    def pod_requests(self, **requests: str) -> Self:
        """What the pod asks for as a whole."""
        return self._with(resources=ResourceRequirements(requests=requests))

    def overhead(self, **overhead: str) -> Self:
        return self._with(overhead=overhead)

    def scheduler(self, name: str) -> Self:
        return self._with(scheduler_name=name)

    def priority(self, priority: int) -> Self:
        return self._with(priority=priority)

    def gates(self, *names: str) -> Self:
        return self._with(scheduling_gates=tuple(PodSchedulingGate(name=name) for name in names))

    def on(self, node: str) -> Self:
        """Bound to the node."""
        return self._with(node_name=node)

    def phase(self, phase: str) -> Self:
        return _replace(self, status=_replace(self.status, phase=phase))

    def condition(self, type: str, status: str, *, reason: str = "", message: str = "") -> Self:  # noqa: A002
        """One more condition."""
        condition = PodCondition(type=type, status=status, reason=reason, message=message)
        conditions = (*self.status.conditions, condition)
        return _replace(self, status=_replace(self.status, conditions=conditions))

    def _with(self, **fields: object) -> Self:
        return _replace(self, spec=_replace(self.spec, **fields))


class NodeBuilder(Node):
    """A node whose methods return changed copies."""

    def labels(self, **labels: str) -> Self:
        return _replace(self, metadata=_replace(self.metadata, labels={**self.metadata.labels, **labels}))

    def allocatable(self, **amounts: str) -> Self:
        """What it offers to pods, besides what was said before."""
        return _replace(
            self, status=_replace(self.status, allocatable={**self.status.allocatable, **amounts})
        )

    def unschedulable(self) -> Self:
        """Cordoned."""
        return _replace(self, spec=_replace(self.spec, unschedulable=True))

    def taint(self, key: str, value: str = "", *, effect: str = "NoSchedule") -> Self:
        """One more taint."""
        taints = (*self.spec.taints, Taint(key=key, value=value, effect=effect))
        return _replace(self, spec=_replace(self.spec, taints=taints))


def pod(name: str, *, namespace: str = "default") -> PodBuilder:
    """A pending pod with one container."""
    return PodBuilder(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=f"uid-{namespace}-{name}"),
        spec=PodSpec(scheduler_name="longshore", containers=(Container(name="main"),)),
        status=PodStatus(phase="Pending"),
    )


def node(name: str) -> NodeBuilder:
    """A node that is ready and offers nothing yet but room for 110 pods."""
    return NodeBuilder(
        metadata=ObjectMeta(name=name, uid=f"uid-{name}", labels={"kubernetes.io/hostname": name}),
        status=NodeStatus(
            allocatable={"pods": "110"}, conditions=(NodeCondition(type="Ready", status="True"),)
        ),
    )


def _container(name: str, requests: dict[str, str]) -> Container:
    return Container(name=name, resources=ResourceRequirements(requests=requests))
