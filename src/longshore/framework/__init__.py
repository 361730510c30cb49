"""The contract between the engine and its plugins: read `points.py` and you can write one."""

from longshore.framework.cyclestate import CycleState
from longshore.framework.points import (
    MAX_SCORE,
    Handle,
    NodeStatuses,
    Plugin,
    PostFilterResult,
    Rejection,
    Scope,
    Wait,
)
from longshore.framework.status import SKIP, Code, Status
from longshore.framework.wake import Action, ClusterEvent, Resource, WakeOn

__all__ = [
    "MAX_SCORE",
    "SKIP",
    "Action",
    "ClusterEvent",
    "Code",
    "CycleState",
    "Handle",
    "NodeStatuses",
    "Plugin",
    "PostFilterResult",
    "Rejection",
    "Resource",
    "Scope",
    "Status",
    "Wait",
    "WakeOn",
]
