"""What the engine, plugins and controllers want done outside, as values to perform, record or compare.

There are two sorts. An `Ask` is answered with exactly one `Outcome`: a generator yields it and is resumed
with the answer. A `Tell` informs people and is never answered: it goes through `Handle.tell`, and a generator
that yields one does not type-check.

A pod is named by namespace, name and UID, so that an effect never lands on a successor of the same name.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec

from longshore.api import Pod, PodCondition
from longshore.api.kept import kept_conditions
from longshore.api.meta import ApiObject
from longshore.api.plan_request import PlanRequest

# The longest note that the API server accepts on an event.
MAX_NOTE = 1024
_CUT = " ..."


class Bind(msgspec.Struct, frozen=True, gc=False):
    """Assign the pod to the node."""

    namespace: str
    name: str
    uid: str
    node: str

    @classmethod
    def of(cls, pod: Pod, node: str) -> "Bind":
        meta = pod.metadata
        return cls(meta.namespace, meta.name, meta.uid, node)


class SetCondition(msgspec.Struct, frozen=True, gc=False):
    """Write the condition into the pod's status, in place of the one of the same type.

    `nominated_node` is written along with it: a name, empty to take it away, None to leave it as it is.
    `transition`: the pod has no condition of this type and status so far.
    """

    namespace: str
    name: str
    uid: str
    condition: PodCondition
    nominated_node: str | None = None
    transition: bool = True

    @classmethod
    def of(cls, pod: Pod, condition: PodCondition, nominated_node: str | None = None) -> "SetCondition":
        meta = pod.metadata
        known = any(
            other.type == condition.type and other.status == condition.status
            for other in kept_conditions(pod.status.conditions)
        )
        return cls(meta.namespace, meta.name, meta.uid, condition, nominated_node, not known)


class Nominate(msgspec.Struct, frozen=True, gc=False):
    """Write into the pod's status to which node it is nominated; an empty name takes that away."""

    namespace: str
    name: str
    uid: str
    node: str

    @classmethod
    def of(cls, pod: Pod, node: str) -> "Nominate":
        meta = pod.metadata
        return cls(meta.namespace, meta.name, meta.uid, node)


class Evict(msgspec.Struct, frozen=True, gc=False):
    """Write the condition into the pod's status, then delete the pod with its own grace period."""

    namespace: str
    name: str
    uid: str
    condition: PodCondition

    @classmethod
    def of(cls, pod: Pod, condition: PodCondition) -> "Evict":
        meta = pod.metadata
        return cls(meta.namespace, meta.name, meta.uid, condition)


class PatchObject(msgspec.Struct, frozen=True):
    """Merge `patch` into an object of another kind, such as a PersistentVolume, or into its status.

    A `resourceVersion` in the patch's metadata makes it a Conflict if the object has changed since.
    """

    kind: type[ApiObject]
    namespace: str
    name: str
    patch: dict[str, Any]
    subresource: Literal["", "status"] = ""


class CreateObject(msgspec.Struct, frozen=True):
    """Create an object of another kind. Conflict if there is one of this name."""

    kind: type[ApiObject]
    namespace: str
    name: str
    # All but apiVersion, kind and name.
    body: dict[str, Any]


class DeleteObject(msgspec.Struct, frozen=True):
    """Delete an object of another kind, if it is still the one of this UID. Fine if it is gone."""

    kind: type[ApiObject]
    namespace: str
    name: str
    uid: str


class GetObject(msgspec.Struct, frozen=True):
    """Read an object that nobody watches. Answered with `Answered` and the object; Gone if there is none."""

    kind: type[ApiObject]
    namespace: str
    name: str


class CallPlanner(msgspec.Struct, frozen=True):
    """Ask a planner service for a plan, for so many seconds at most. Answered with `Answered` or Failed.

    The answer's value is a mapping of names of pods to names of nodes.
    """

    address: str
    request: PlanRequest
    seconds: float


class Until(msgspec.Struct, frozen=True):
    """Wait until `check` gives an outcome. Answered by the engine itself.

    It looks at the cluster state alone and is asked again after each event that changed it. After `seconds`
    the outcome is Failed with `timeout` as its message.
    """

    check: Callable[[], "Outcome | None"]
    seconds: float
    timeout: str


class Pause(msgspec.Struct, frozen=True):
    """Let everything else have its turn, for so many seconds at least. For errands; the engine answers it."""

    seconds: float = 0.0


class Together(msgspec.Struct, frozen=True):
    """Do all of these; answered with `Answered` and their outcomes, in order."""

    effects: tuple["Ask", ...]


class Run(msgspec.Struct, frozen=True):
    """Await what an `async def` plugin returned. Whatever it raises is Failed."""

    plugin: str
    awaitable: Awaitable[Any]


class CallWebhook(msgspec.Struct, frozen=True):
    """POST the body, as JSON, to a webhook (an HTTP extender). Answered with `Answered` or Failed.

    `webhook` is its place in the configuration's list of extenders.
    """

    webhook: int
    verb: str
    body: bytes


class RecordEvent(msgspec.Struct, frozen=True, gc=False):
    """Tell people, through an Event of the API server, what happened to the pod, or object of `kind`."""

    namespace: str
    name: str
    uid: str
    type: Literal["Normal", "Warning"]
    reason: str
    action: str
    note: str
    kind: str = "Pod"
    api_version: str = "v1"

    @classmethod
    def of(
        cls, pod: Pod, *, kind: Literal["Normal", "Warning"], reason: str, action: str, note: str
    ) -> "RecordEvent":
        meta = pod.metadata
        if len(note) > MAX_NOTE:
            note = note[: MAX_NOTE - len(_CUT)] + _CUT
        return cls(meta.namespace, meta.name, meta.uid, kind, reason, action, note)


# Performed by the driver.
Operation = (
    Bind | Evict | PatchObject | CreateObject | DeleteObject | GetObject | Run | CallWebhook | CallPlanner
)
# Answered exactly once: operations by the driver, the rest by the engine itself.
Ask = Operation | Until | Pause | Together
# Never answered.
Tell = SetCondition | Nominate | RecordEvent
Effect = Ask | Tell


class _Fulfilled(msgspec.Struct, frozen=True):
    @property
    def message(self) -> str:
        """Nothing went wrong."""
        return ""


class Succeeded(_Fulfilled, frozen=True, gc=False):
    """The write has landed."""


class Answered(_Fulfilled, frozen=True):
    """There is an answer: what an awaitable gave, the body of an extender's response, or an object."""

    value: Any


class _Refused(msgspec.Struct, frozen=True, gc=False):
    """`status` and `reason` are those of the API server's answer; 0 and empty if there was none."""

    message: str = ""
    status: int = 0
    reason: str = ""


class Conflict(_Refused, frozen=True, gc=False):
    """The API server knows better: someone else has bound the pod, or it is ending. The watch will tell."""


class Gone(_Refused, frozen=True, gc=False):
    """The pod is no more."""


class Failed(_Refused, frozen=True, gc=False):
    """The write has not landed, as far as can be told. It is worth another try after a while."""


Outcome = Succeeded | Answered | Conflict | Gone | Failed
