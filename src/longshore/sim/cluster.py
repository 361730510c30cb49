"""The objects of a simulated cluster, and the rules by which an API server changes them.

Every write gives the `Change` that a watch would tell, and every effect of the engine the outcome that an API
server would answer. It knows no time: when things happen is up to the simulation.
"""

from itertools import count
from typing import TypeVar

import msgspec

from longshore.api import Change, Node, Pod, PodCondition
from longshore.engine import Bind, Conflict, Effect, Gone, Outcome, RecordEvent, SetCondition, Succeeded

_replace = msgspec.structs.replace
_T = TypeVar("_T", Node, Pod)

PodChanges = list[Change[Pod]]


class SimulatedCluster:
    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        # All that people would be told, in order.
        self.events: list[RecordEvent] = []
        self._versions = count(1)

    def put_node(self, node: Node) -> Change[Node]:
        """Create the node, or replace the one of this name."""
        return self._put(self.nodes, node)

    def put_pod(self, pod: Pod) -> Change[Pod]:
        """Create the pod, or replace the one of this name. A pod that is bound stays bound."""
        old = self.pods.get(pod.key)
        if old is not None and old.metadata.uid == pod.metadata.uid and old.spec.node_name:
            pod = _replace(pod, spec=_replace(pod.spec, node_name=old.spec.node_name))
        return self._put(self.pods, pod)

    def delete_node(self, name: str) -> Change[Node] | None:
        """Pods bound to it stay, as they do in a real cluster until a controller takes them away."""
        old = self.nodes.pop(name, None)
        return None if old is None else Change(old, None)

    def delete_pod(self, key: str) -> Change[Pod] | None:
        """Delete the pod at once, without a grace period."""
        old = self.pods.pop(key, None)
        return None if old is None else Change(old, None)

    def set_phase(self, key: str, uid: str, phase: str) -> PodChanges:
        """What a kubelet reports; nothing when the pod has gone or has ended already."""
        pod = self.pods.get(key)
        if pod is None or pod.metadata.uid != uid or pod.terminal:
            return []
        return [self.put_pod(_replace(pod, status=_replace(pod.status, phase=phase)))]

    def perform(self, effect: Effect) -> tuple[Outcome, PodChanges]:
        """Do what the engine asked for: the answer, and what a watch tells because of it."""
        match effect:
            case Bind():
                return self._bind(effect)
            case SetCondition():
                return self._set_condition(effect)
            case RecordEvent():
                self.events.append(effect)
                return Succeeded(), []

    def _bind(self, bind: Bind) -> tuple[Outcome, PodChanges]:
        pod = self.pods.get(f"{bind.namespace}/{bind.name}")
        if pod is None:
            return Gone(f'pods "{bind.name}" not found'), []
        if bind.uid != pod.metadata.uid:
            return Conflict(f'pod "{bind.name}" has another UID'), []
        if pod.metadata.deletion_timestamp is not None:
            return Conflict(f'pod "{bind.name}" is being deleted'), []
        if pod.spec.node_name:
            return Conflict(f'pod "{bind.name}" is already assigned to node "{pod.spec.node_name}"'), []
        if pod.spec.scheduling_gates:
            return Conflict(f'pod "{bind.name}" has scheduling gates'), []
        scheduled = PodCondition(type="PodScheduled", status="True")
        bound = _replace(_with_condition(pod, scheduled), spec=_replace(pod.spec, node_name=bind.node))
        return Succeeded(), [self.put_pod(bound)]

    def _set_condition(self, effect: SetCondition) -> tuple[Outcome, PodChanges]:
        pod = self.pods.get(f"{effect.namespace}/{effect.name}")
        if pod is None or pod.metadata.uid != effect.uid:
            return Gone(f'pods "{effect.name}" not found'), []
        return Succeeded(), [self.put_pod(_with_condition(pod, effect.condition))]

    def _put(self, objects: dict[str, _T], new: _T) -> Change[_T]:
        old = objects.get(new.key)
        version = next(self._versions)
        uid = new.metadata.uid or (f"uid-{version}" if old is None else old.metadata.uid)
        new = _replace(new, metadata=_replace(new.metadata, uid=uid, resource_version=str(version)))
        objects[new.key] = new
        return Change(old, new)


def _with_condition(pod: Pod, condition: PodCondition) -> Pod:
    others = tuple(c for c in pod.status.conditions if c.type != condition.type)
    return _replace(pod, status=_replace(pod.status, conditions=(*others, condition)))
