"""How a step of scheduling ended, as a value: expected outcomes are not exceptions."""

import enum

import msgspec


class Code(enum.Enum):
    SUCCESS = "Success"
    # Something unexpected: the whole attempt fails and is repeated after a while.
    ERROR = "Error"
    # No room as things stand; evicting other pods may help.
    UNSCHEDULABLE = "Unschedulable"
    # No room, and evicting pods would not help.
    UNSCHEDULABLE_AND_UNRESOLVABLE = "UnschedulableAndUnresolvable"
    # The pod has its node and waits for a permission.
    WAIT = "Wait"
    # The plugin has nothing to say about this pod.
    SKIP = "Skip"
    # Not yet: when what the plugin waits for happens, the pod is tried again at once, without backoff.
    PENDING = "Pending"


_REJECTED = frozenset({Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING})


class Status(msgspec.Struct, frozen=True):
    """A code, the reasons in words that users see, and the plugin that gave them.

    Where a point may return a status, None means success.
    """

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    @property
    def rejected(self) -> bool:
        """The plugin said no, rather than that something is wrong."""
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
