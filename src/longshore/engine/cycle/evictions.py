"""Carrying out what preemption decided: the victims are evicted, and lesser promises are taken back."""

from collections.abc import Callable, Generator, Sequence

from longshore.api import PodCondition
from longshore.cluster import ClusterState, PodInfo
from longshore.engine.cycle.reporting import EVENT_PREEMPTED
from longshore.framework.effects import (
    Answered,
    Ask,
    Evict,
    Gone,
    Nominate,
    Outcome,
    RecordEvent,
    Succeeded,
    Tell,
    Together,
)

DISRUPTION_TARGET = "DisruptionTarget"
REASON_PREEMPTED = "PreemptionByScheduler"
# How a victim was evicted that had no node yet: kube-scheduler's words for it.
IN_MEMORY = "in kube-scheduler memory"


def evict(
    victims: Sequence[PodInfo],
    pod: PodInfo,
    node: str,
    cluster: ClusterState,
    scheduler_name: str,
    tell: Callable[[Tell], None],
) -> Generator[Ask, Outcome, bool]:
    """Whether all of the victims are on their way out; if not, the pod is to look for another way."""
    spec = pod.pod.spec
    for info in list(cluster.nominations.on(node)):
        if info.pod.spec.priority < spec.priority:
            cluster.nominations.remove(info.pod.metadata.uid)
            tell(Nominate.of(info.pod, ""))
    condition = PodCondition(
        type=DISRUPTION_TARGET,
        status="True",
        reason=REASON_PREEMPTED,
        message=f"{scheduler_name}: preempting to accommodate a higher priority pod",
    )
    # The others are on their way out already.
    victims = [victim for victim in victims if victim.pod.metadata.deletion_timestamp is None]
    if not victims:
        return True
    outcome = yield Together(tuple(Evict.of(victim.pod, condition) for victim in victims))
    outcomes = outcome.value if isinstance(outcome, Answered) else []
    for victim, end in zip(victims, outcomes, strict=False):
        if isinstance(end, Succeeded | Answered):
            note = f"Preempted by pod {pod.pod.metadata.uid} on node {node}"
            preempted = RecordEvent.of(
                victim.pod,
                kind="Normal",
                reason=EVENT_PREEMPTED,
                action="Preempting",
                note=note if isinstance(end, Succeeded) else f"{note} ({end.value}).",
            )
            tell(preempted)
    gone = [isinstance(end, Succeeded | Answered | Gone) for end in outcomes]
    return len(gone) == len(victims) and all(gone)
