"""The contract between the engine and its plugins. Read `points.py` to write one.

@score_plugin
def fast_disks(pod, node):
    return MAX_SCORE if node.labels.get("disk") == "ssd" else 0
"""

from longshore.framework.cluster_events import Action, ClusterEvent, Resource, WakeOn
from longshore.framework.cycle_state import CycleState
from longshore.framework.functions import filter_plugin, score_plugin
from longshore.framework.handle import Factory, Handle
from longshore.framework.points import (
    MAX_SCORE,
    Forced,
    NodeStatuses,
    Plugin,
    PostFilterResult,
    Rejection,
    Scope,
    Wait,
)
from longshore.framework.reads import Reads, UndeclaredRead
from longshore.framework.status import SKIP, Code, Status

__all__ = [
    "MAX_SCORE",
    "SKIP",
    "Action",
    "ClusterEvent",
    "Code",
    "CycleState",
    "Factory",
    "Forced",
    "Handle",
    "NodeStatuses",
    "Plugin",
    "PostFilterResult",
    "Reads",
    "Rejection",
    "Resource",
    "Scope",
    "Status",
    "UndeclaredRead",
    "Wait",
    "WakeOn",
    "filter_plugin",
    "score_plugin",
]
