"""The stages of a pod of a set, and what leads from one to another: the table is the only place that says so.

docs/podsets.md shows the same table, and a test compares them.
"""

from enum import Enum


class Stage(Enum):
    # The set is held by its trigger, or has none. Every pod starts here.
    HELD = "Held"
    # The pod has a scheduling gate that Longshore does not remove.
    GATED = "Gated"
    # The set is released, and the pod waits for the plan.
    UNPLANNED = "Unplanned"
    # The plan has no node for the pod, and it waits to be planned again.
    BARRED = "Barred"
    # The plan has a node for the pod, and its gate `longshore.dev/pod-set` is being removed.
    PLANNED = "Planned"
    # In the queue, to be tried on its planned node only.
    QUEUED = "Queued"
    # Has its planned node, and waits in Permit for the other pods of an all-or-nothing set.
    GATHERED = "Gathered"
    # The plan has no node for the pod, and it is in the queue, to be tried on all nodes.
    LEFT_OUT = "LeftOut"
    # Was left out, has found a node, and waits in Permit until its entry is stored.
    FOUND = "Found"
    # There is no planner for the set: scheduled like any other pod.
    ALONE = "Alone"
    # Has its planned node, and may be bound.
    BINDING = "Binding"


# The stages of pods that may be in the queue, or further.
ADMITTED = (Stage.QUEUED, Stage.GATHERED, Stage.LEFT_OUT, Stage.FOUND, Stage.ALONE, Stage.BINDING)
IN_PERMIT = (Stage.GATHERED, Stage.FOUND)
# The stages of pods that an all-or-nothing set waits for.
MISSING = (Stage.UNPLANNED, Stage.BARRED, Stage.PLANNED, Stage.QUEUED)

_STARTING = (Stage.HELD, Stage.GATED, Stage.BINDING)


class Transition(Enum):
    """What happens to a pod, the stages in which it can happen, and the stage that it leads to."""

    RECALLED = "its trigger, or another client's change of the plan, recalls it", tuple(Stage), Stage.HELD
    RECALLED_LATE = "it is recalled while its bind is under way", (Stage.ALONE, Stage.BINDING), Stage.BINDING
    SET_HELD = "the set is held", _STARTING, Stage.HELD
    OTHER_GATE = "it has another scheduling gate", _STARTING, Stage.GATED
    NO_ENTRY = "it has no entry in the plan", (*_STARTING, Stage.PLANNED), Stage.UNPLANNED
    ENTRY = "it has an entry", (*_STARTING, Stage.UNPLANNED, Stage.PLANNED), Stage.QUEUED
    GATED_ENTRY = "it has an entry and Longshore's gate", (*_STARTING, Stage.UNPLANNED), Stage.PLANNED
    LEFT_OUT = "it is left out of the plan", (Stage.UNPLANNED,), Stage.LEFT_OUT
    BARRED = "it is left out and has to wait", (Stage.UNPLANNED,), Stage.BARRED
    NO_PLANNER = "there is no planner", (Stage.UNPLANNED,), Stage.ALONE
    PLANNED_AGAIN = "it is planned again", (Stage.BARRED, Stage.PLANNED, *ADMITTED), Stage.UNPLANNED
    ARRIVED = "it gets its planned node", (Stage.QUEUED, Stage.BINDING), Stage.BINDING
    ARRIVED_EARLY = "it gets its node, others are missing", (Stage.QUEUED, Stage.BINDING), Stage.GATHERED
    ALL_ARRIVED = "no other pod is missing any more", (Stage.GATHERED,), Stage.BINDING
    LOST = "it loses its node before its bind", (Stage.QUEUED, Stage.GATHERED), Stage.QUEUED
    NOT_BOUND = "its bind fails", (Stage.BINDING,), Stage.BINDING
    REFUTED = "its planned node no longer fits", (Stage.QUEUED, Stage.BINDING), Stage.UNPLANNED
    FOUND = "it finds a node by itself", (Stage.LEFT_OUT, Stage.FOUND), Stage.FOUND
    STORED = "its entry is stored", (Stage.FOUND,), Stage.BINDING
    STORED_LATE = "its entry is stored after it left Permit", (Stage.FOUND,), Stage.QUEUED

    def __init__(self, meaning: str, stages: tuple[Stage, ...], leads_to: Stage) -> None:
        self.meaning = meaning
        self.stages = stages
        self.leads_to = leads_to
