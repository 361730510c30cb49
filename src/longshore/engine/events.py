"""What a driver tells the engine: changes of objects, and how requested effects ended."""

from typing import Any

import msgspec

from longshore.api import Change
from longshore.framework.effects import Answered, Conflict, Failed, Gone, Outcome, Succeeded

__all__ = ["Answered", "Conflict", "Done", "Event", "Failed", "Gone", "Outcome", "Succeeded"]


class Done(msgspec.Struct, frozen=True, gc=False):
    """How the request of this number ended. An unknown number, or one told before, is passed over."""

    id: int
    outcome: Outcome


Event = Change[Any] | Done
