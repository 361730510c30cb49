"""How a call of a plugin ended, as a value. Expected outcomes are not exceptions."""

import enum

import msgspec


class Code(enum.Enum):
    SUCCESS = "Success"
    # Something unexpected happened. The attempt fails and is retried later.
    ERROR = "Error"
    # The pod does not fit now. Evicting other pods may help.
    UNSCHEDULABLE = "Unschedulable"
    # The pod does not fit, and evicting other pods would not help.
    UNSCHEDULABLE_AND_UNRESOLVABLE = "UnschedulableAndUnresolvable"
    # The pod has a node and is held in Permit.
    WAIT = "Wait"
    # The plugin has nothing to do for this pod.
    SKIP = "Skip"
    # The plugin waits for an event. When it occurs, the pod is scheduled without backoff.
    PENDING = "Pending"


_REJECTED = frozenset({Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING})


class Status(msgspec.Struct, frozen=True):
    """A code, the reasons in words that users read, and the name of the plugin that gave them.

    Where an extension point may return a status, None means success.
    """

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    @property
    def rejected(self) -> bool:
        """Whether the plugin rejected the pod, as opposed to an error."""
        return self.code in _REJECTED

    @classmethod
    def unschedulable(cls, *reasons: str) -> "Status":
        return cls(Code.UNSCHEDULABLE, reasons)

    @classmethod
    def unresolvable(cls, *reasons: str) -> "Status":
        return cls(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)

    @classmethod
    def pending(cls, *reasons: str) -> "Status":
        return cls(Code.PENDING, reasons)

    @classmethod
    def error(cls, *reasons: str) -> "Status":
        return cls(Code.ERROR, reasons)


SKIP = Status(Code.SKIP)
