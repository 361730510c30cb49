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
    # Not yet: something that the plugin waits for will let the pod be tried again at once.
    PENDING = "Pending"


class Status(msgspec.Struct, frozen=True):
    """A code, the reasons in words that users see, and the plugin that gave them."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)
