"""What the engine hands to its driver."""

import msgspec

from longshore.framework.effects import Operation, Tell


class Request(msgspec.Struct, frozen=True, gc=False):
    """An effect to perform. `Done` with the same number tells the engine the outcome."""

    id: int
    effect: Operation


class Notice(msgspec.Struct, frozen=True, gc=False):
    """An effect that informs people. There is no answer."""

    effect: Tell


Instruction = Request | Notice
