"""Carries out a preemption: victims are evicted, and nominations of pods of lower priority are removed."""

from collections.abc import Callable, Generator, Sequence

from longshore.api import Pod, PodCondition
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
# What kube-scheduler says of a victim that was not bound yet.
_IN_MEMORY = "in kube-scheduler memory"


def evict(
    victims: Sequence[PodInfo],
    pod: PodInfo,
    node: str,
    cluster: ClusterState,
    scheduler_name: str,
    give_way: Callable[[str], bool],
    tell: Callable[[Tell], None],
) -> Generator[Ask, Outcome, bool]:
    """Return whether all victims are leaving; if not, the pod has to look for another way.

    A victim that is not bound yet can `give_way`, so it need not be deleted.
    """
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
    to_delete: list[Pod] = []
    for victim in (info.pod for info in victims):
        if victim.metadata.deletion_timestamp is not None:
            continue
        if give_way(victim.metadata.uid):
            tell(_preempted(victim, pod, node, f" ({_IN_MEMORY})."))
        else:
            to_delete.append(victim)
    if not to_delete:
        return True
    outcome = yield Together(tuple(Evict.of(victim, condition) for victim in to_delete))
    outcomes = outcome.value if isinstance(outcome, Answered) else [outcome] * len(to_delete)
    for victim, end in zip(to_delete, outcomes, strict=True):
        if isinstance(end, Succeeded):
            tell(_preempted(victim, pod, node))
    return all(isinstance(end, Succeeded | Gone) for end in outcomes)


def _preempted(victim: Pod, pod: PodInfo, node: str, how: str = "") -> RecordEvent:
    return RecordEvent.of(
        victim,
        kind="Normal",
        reason=EVENT_PREEMPTED,
        action="Preempting",
        note=f"Preempted by pod {pod.pod.metadata.uid} on node {node}{how}",
    )
