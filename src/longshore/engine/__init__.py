"""The engine: events and the time go in, effects come out, and nothing else happens.

It opens no socket, reads no clock and never sleeps. A driver tells it what changed in the cluster, lets it
decide, performs the effects and reports their outcomes:

    engine = Engine()
    engine.receive(Change(old=None, new=node), now=0.0)
    engine.receive(Change(old=None, new=pod), now=0.0)
    for instruction in engine.advance(now=0.0):
        if isinstance(instruction, Notice):
            tell(instruction.effect)
        else:
            outcome = perform(instruction.effect)
            engine.receive(Done(instruction.id, outcome), now=0.1)
"""

from longshore.engine.engine import Engine
from longshore.engine.events import (
    Answered,
    Conflict,
    Done,
    Event,
    Failed,
    Gone,
    Measurements,
    Outcome,
    Succeeded,
)
from longshore.engine.request import Instruction, Notice, Request
from longshore.framework.effects import (
    Bind,
    CreateObject,
    DeleteObject,
    Effect,
    Evict,
    Nominate,
    PatchObject,
    RecordEvent,
    Run,
    SetCondition,
)

__all__ = [
    "Answered",
    "Bind",
    "Conflict",
    "CreateObject",
    "DeleteObject",
    "Done",
    "Effect",
    "Engine",
    "Event",
    "Evict",
    "Failed",
    "Gone",
    "Instruction",
    "Measurements",
    "Nominate",
    "Notice",
    "Outcome",
    "PatchObject",
    "RecordEvent",
    "Request",
    "Run",
    "SetCondition",
    "Succeeded",
]
