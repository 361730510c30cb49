"""What a driver tells the engine: changes of objects, measurements, and the outcomes of requests."""

from collections.abc import Mapping
from typing import Any

import msgspec

from longshore.api import Change
from longshore.cluster.measures import Measured
from longshore.framework.effects import Answered, Conflict, Failed, Gone, Outcome, Succeeded

__all__ = ["Answered", "Conflict", "Done", "Event", "Failed", "Gone", "Measurements", "Outcome", "Succeeded"]


class Done(msgspec.Struct, frozen=True, gc=False):
    """The outcome of the request with this number. Ignored if the number is unknown or was answered."""

    id: int
    outcome: Outcome


class Measurements(msgspec.Struct, frozen=True, gc=False):
    """What was measured on the nodes: by measure and by node, a value and its time.

    The driver sends it regularly, even if nothing is new, because the age of values is checked only then.
    """

    values: Mapping[str, Mapping[str, Measured]] = {}


Event = Change[Any] | Done | Measurements
