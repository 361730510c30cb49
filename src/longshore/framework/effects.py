"""What the engine asks its driver to do. Effects are values: a driver may perform, record or compare them.

A pod is named by namespace, name and UID, so that an effect never lands on a successor of the same name.
Binds are answered one by one; what only informs people (conditions, events) is not waited for.
"""

from typing import Literal

import msgspec

from longshore.api import Pod, PodCondition

# The API server takes no longer note on an event.
MAX_NOTE = 1024
_CUT = " ..."


class Bind(msgspec.Struct, frozen=True, gc=False):
    """Assign the pod to the node. The driver must answer with exactly one `Done`."""

    namespace: str
    name: str
    uid: str
    node: str

    @classmethod
    def of(cls, pod: Pod, node: str) -> "Bind":
        meta = pod.metadata
        return cls(meta.namespace, meta.name, meta.uid, node)


class SetCondition(msgspec.Struct, frozen=True, gc=False):
    """Write the condition into the pod's status, in place of the one of the same type."""

    namespace: str
    name: str
    uid: str
    condition: PodCondition

    @classmethod
    def of(cls, pod: Pod, condition: PodCondition) -> "SetCondition":
        meta = pod.metadata
        return cls(meta.namespace, meta.name, meta.uid, condition)


class RecordEvent(msgspec.Struct, frozen=True, gc=False):
    """Tell people, through an Event of the API server, what happened to the pod."""

    namespace: str
    name: str
    uid: str
    type: Literal["Normal", "Warning"]
    reason: str
    action: str
    note: str

    @classmethod
    def of(
        cls, pod: Pod, *, kind: Literal["Normal", "Warning"], reason: str, action: str, note: str
    ) -> "RecordEvent":
        meta = pod.metadata
        if len(note) > MAX_NOTE:
            note = note[: MAX_NOTE - len(_CUT)] + _CUT
        return cls(meta.namespace, meta.name, meta.uid, kind, reason, action, note)


Effect = Bind | SetCondition | RecordEvent


class Request(msgspec.Struct, frozen=True, gc=False):
    """An effect to perform, and the number under which its outcome is to be told."""

    id: int
    effect: Effect
