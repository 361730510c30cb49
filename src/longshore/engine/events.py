"""What a driver tells the engine: changes of objects, measurements, and how requested effects ended."""

from collections.abc import Mapping
from typing import Any

import msgspec

from longshore.api import Change
from longshore.cluster.measures import Measured
from longshore.framework.effects import Answered, Conflict, Failed, Gone, Outcome, Succeeded

__all__ = ["Answered", "Conflict", "Done", "Event", "Failed", "Gone", "Measurements", "Outcome", "Succeeded"]


class Done(msgspec.Struct, frozen=True, gc=False):
    """How the request of this number ended. An unknown number, or one told before, is passed over."""

    id: int
    outcome: Outcome


class Measurements(msgspec.Struct, frozen=True, gc=False):
    """What was measured on the nodes: by measure and by node, a value and its time.

    Told regularly, even if there is nothing new: values grow old only when they are looked at.
    """

    values: Mapping[str, Mapping[str, Measured]] = {}


Event = Change[Any] | Done | Measurements
