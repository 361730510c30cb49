"""The effects that the engine, plugins and controllers have on the world outside, as values.

There are two kinds of effects. An `Ask` is answered with exactly one `Outcome`: a generator yields it and is
resumed with the outcome. A `Tell` informs people and is never answered: it goes through `Handle.tell`, and a
generator that yields one does not type-check.

Effects identify a pod by namespace, name and UID, so that they never affect a later pod of the same name.
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
    """Write the condition into the pod's status, replacing the condition of the same type.

    `nominated_node` is written along with it: a name nominates the pod, an empty name withdraws its
    nomination, and None leaves it unchanged. `transition` says that the condition's status changes.
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
    """Nominate the pod to the node in its status. An empty name withdraws the nomination."""

    namespace: str
    name: str
    uid: str
    node: str

    @classmethod
    def of(cls, pod: Pod, node: str) -> "Nominate":
        meta = pod.metadata
        return cls(meta.namespace, meta.name, meta.uid, node)


class Evict(msgspec.Struct, frozen=True, gc=False):
    """Write the condition into the pod's status, and delete the pod with its own grace period."""

    namespace: str
    name: str
    uid: str
    condition: PodCondition

    @classmethod
    def of(cls, pod: Pod, condition: PodCondition) -> "Evict":
        meta = pod.metadata
        return cls(meta.namespace, meta.name, meta.uid, condition)


class PatchObject(msgspec.Struct, frozen=True):
    """Merge the patch into an object of another kind, such as a PersistentVolume, or into its status.

    If the patch's metadata has a `resourceVersion` and the object has changed since, the outcome is Conflict.
    """

    kind: type[ApiObject]
    namespace: str
    name: str
    patch: dict[str, Any]
    subresource: Literal["", "status"] = ""


class CreateObject(msgspec.Struct, frozen=True):
    """Create an object of another kind. The outcome is Conflict if an object of this name exists."""

    kind: type[ApiObject]
    namespace: str
    name: str
    # The object without apiVersion, kind and name.
    body: dict[str, Any]


class DeleteObject(msgspec.Struct, frozen=True):
    """Delete the object of another kind with this UID. The outcome is Succeeded if it does not exist."""

    kind: type[ApiObject]
    namespace: str
    name: str
    uid: str


class GetObject(msgspec.Struct, frozen=True):
    """Read an object that is not watched. The outcome is Answered with the object, or Gone."""

    kind: type[ApiObject]
    namespace: str
    name: str


class CallPlanner(msgspec.Struct, frozen=True):
    """Call a planner service, and wait at most this many seconds for its plan.

    The outcome is Failed, or Answered with a mapping from names of pods to names of nodes.
    """

    address: str
    request: PlanRequest
    seconds: float


class Until(msgspec.Struct, frozen=True):
    """Wait until `check` returns an outcome. The engine answers it.

    `check` must depend on the cluster state alone. It is called again after each event that changed it.
    After `seconds` the outcome is Failed, with `timeout` as its message.
    """

    check: Callable[[], "Outcome | None"]
    seconds: float
    timeout: str


class Pause(msgspec.Struct, frozen=True):
    """Wait at least this many seconds, while everything else goes on. The engine answers it."""

    seconds: float = 0.0


class Together(msgspec.Struct, frozen=True):
    """Perform all of these effects. The outcome is Answered with the outcome of each, in order."""

    effects: tuple["Ask", ...]


class Run(msgspec.Struct, frozen=True):
    """Await what an `async def` plugin returned. The outcome is Failed if it raises."""

    plugin: str
    awaitable: Awaitable[Any]


class CallWebhook(msgspec.Struct, frozen=True):
    """Send a POST request with this JSON body to a webhook, which kube-scheduler calls an HTTP extender.

    `webhook` is the index of the webhook in the configuration's list of extenders. The outcome is Failed, or
    Answered with the body of the response.
    """

    webhook: int
    verb: str
    body: bytes


class RecordEvent(msgspec.Struct, frozen=True, gc=False):
    """Record an Event in the API server about what happened to a pod, or to an object of another kind."""

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


# The driver performs these.
Operation = (
    Bind | Evict | PatchObject | CreateObject | DeleteObject | GetObject | Run | CallWebhook | CallPlanner
)
# Each of these is answered exactly once: operations by the driver, and the others by the engine.
Ask = Operation | Until | Pause | Together
# None of these is answered.
Tell = SetCondition | Nominate | RecordEvent
Effect = Ask | Tell


class _Fulfilled(msgspec.Struct, frozen=True):
    @property
    def message(self) -> str:
        """Empty: nothing went wrong."""
        return ""


class Succeeded(_Fulfilled, frozen=True, gc=False):
    """The API server has accepted the write."""


class Answered(_Fulfilled, frozen=True):
    """The effect has a value: the result of an awaitable, the body of a response, an object, or a plan."""

    value: Any


class _Refused(msgspec.Struct, frozen=True, gc=False):
    """`status` and `reason` are those of the API server's response; 0 and empty if there was no response."""

    message: str = ""
    status: int = 0
    reason: str = ""


class Conflict(_Refused, frozen=True, gc=False):
    """The write contradicts a newer state: for example, the pod was bound by someone else or is ending."""


class Gone(_Refused, frozen=True, gc=False):
    """The object does not exist any longer."""


class Failed(_Refused, frozen=True, gc=False):
    """The effect failed, or its result is unknown. It can be retried later."""


Outcome = Succeeded | Answered | Conflict | Gone | Failed
