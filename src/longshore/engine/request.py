"""What the engine hands to its driver."""

import msgspec

from longshore.framework.effects import Effect


class Request(msgspec.Struct, frozen=True, gc=False):
    """An effect to perform, and the number under which its outcome is to be told."""

    id: int
    effect: Effect
