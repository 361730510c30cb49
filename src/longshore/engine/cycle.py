"""One attempt to schedule one pod, from the decision to the bind.

A generator: it yields an effect wherever something outside has to happen, and is resumed with the outcome.
What it returns is the pod's fate. While its bind is under way the pod is assumed to be on its node, so the
pods after it find that room taken.
"""

import enum
from collections.abc import Generator
from typing import assert_never

from longshore.api import PodCondition
from longshore.cluster import ClusterState, PodInfo
from longshore.engine.decision import decide
from longshore.engine.effects import Bind, Effect, RecordEvent, SetCondition
from longshore.engine.events import Conflict, Failed, Gone, Outcome, Succeeded
from longshore.engine.queue import Entry
from longshore.framework import Code, Profile, Status

POD_SCHEDULED = "PodScheduled"
REASON_UNSCHEDULABLE = "Unschedulable"
REASON_SCHEDULER_ERROR = "SchedulerError"
EVENT_SCHEDULED = "Scheduled"
EVENT_FAILED_SCHEDULING = "FailedScheduling"


class Fate(enum.Enum):
    """Where an attempt leaves the pod."""

    BOUND = enum.auto()
    # Gone: nothing is left to schedule.
    DROPPED = enum.auto()
    # To be tried again after a while.
    RETRIED = enum.auto()
    # To be tried again when the cluster, or the pod itself, has changed.
    SET_ASIDE = enum.auto()


Cycle = Generator[Effect, Outcome, Fate]


def cycle(entry: Entry, cluster: ClusterState, profile: Profile) -> Cycle:
    """Decide, bind, and tell people. `entry` holds the newest version of the pod throughout."""
    pod = PodInfo.of(entry.pod)
    if pod.problem:
        # Nothing but another version of the pod can cure it.
        yield from _failure(entry, REASON_SCHEDULER_ERROR, pod.problem)
        return Fate.SET_ASIDE

    node = decide(pod, cluster, profile)
    if isinstance(node, Status):
        if node.code is Code.ERROR:
            yield from _failure(entry, REASON_SCHEDULER_ERROR, node.message)
            return Fate.RETRIED
        yield from _failure(entry, REASON_UNSCHEDULABLE, node.message)
        return Fate.SET_ASIDE

    cluster.assume(pod, node)
    outcome = yield Bind.of(pod.pod, node)
    match outcome:
        case Succeeded():
            note = f"Successfully assigned {pod.pod.key} to {node}"
            yield RecordEvent.of(pod.pod, kind="Normal", reason=EVENT_SCHEDULED, action="Binding", note=note)
            return Fate.BOUND
        case Gone():
            cluster.forget(pod.pod)
            return Fate.DROPPED
        case Conflict():
            # Most likely bound by someone else, and the watch is about to say so; else it is tried again.
            cluster.forget(pod.pod)
            return Fate.RETRIED
        case Failed(message):
            # The bind may have landed after all, with only its answer lost. So the room stays taken until the
            # next attempt begins, by when the watch has had its time to tell.
            yield from _failure(entry, REASON_SCHEDULER_ERROR, f"binding to {node}: {message}")
            return Fate.RETRIED
        case _:
            assert_never(outcome)


def _failure(entry: Entry, reason: str, message: str) -> Generator[Effect, Outcome, None]:
    """Tell people; a condition that the pod already carries is not written again."""
    pod = entry.pod
    condition = PodCondition(type=POD_SCHEDULED, status="False", reason=reason, message=message)
    yield RecordEvent.of(
        pod, kind="Warning", reason=EVENT_FAILED_SCHEDULING, action="Scheduling", note=message
    )
    if condition not in pod.status.conditions:
        yield SetCondition.of(pod, condition)
