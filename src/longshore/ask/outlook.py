"""The decision that a scheduler would make about a pod in a snapshot: the answer of `longshore explain`.

A pod that has a node is evaluated as if it had none, to show where it would go now. For a pod of a set, the
answer also says what holds the pod and which node its plan chose.
"""

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from longshore.api import Change, Pod, SchedulePlan, ScheduleTrigger
from longshore.ask.membership import Membership, membership
from longshore.ask.snapshot import Snapshot
from longshore.cluster import PodInfo
from longshore.config.setup import Setup
from longshore.engine import Engine
from longshore.engine.answers.explanation import Explanation, WayOut, explain, explain_way_out
from longshore.engine.profiles import Profiles
from longshore.podset.arguments import NAME as POD_SET_PLANNER
from longshore.podset.profile import holds_sets, without_planner


class Subject(msgspec.Struct, frozen=True, rename="camel"):
    """The pod as it is in the API server."""

    namespace: str
    name: str
    scheduler_name: str
    phase: str = ""
    node: str = ""
    nominated_node: str = ""
    # From its condition PodScheduled.
    reason: str = ""
    message: str = ""
    # Whether it is being deleted.
    ending: bool = False

    @classmethod
    def of(cls, pod: Pod) -> "Subject":
        condition = next(
            (c for c in pod.status.conditions if c.type == "PodScheduled" and c.status != "True"), None
        )
        return cls(
            pod.metadata.namespace,
            pod.metadata.name,
            pod.spec.scheduler_name,
            phase=pod.status.phase,
            node=pod.spec.node_name,
            nominated_node=pod.status.nominated_node_name,
            reason=condition.reason if condition else "",
            message=condition.message if condition else "",
            ending=pod.metadata.deletion_timestamp is not None,
        )


class Outlook(msgspec.Struct, frozen=True, rename="camel"):
    pod: Subject
    # The scheduler name of the profile that was evaluated, and the weights of its scoring plugins.
    profile: str
    weights: Mapping[str, int]
    explanation: Explanation
    # A plugin that keeps the pod out of the queue, with its reason.
    gated_by: str = ""
    # What preemption would do, if the pod does not fit anywhere.
    preemption: WayOut | None = None
    # The rank of the pod's node, 1 being the best; 0 if it has no node or the node is not feasible now.
    rank: int = 0
    # Set if the profile holds sets and the pod belongs to one.
    pod_set: Membership | None = None
    warnings: tuple[str, ...] = ()


def outlook(setup: Setup, snapshot: Snapshot, pod: Pod) -> Outlook:
    """Return what a scheduler with this setup would decide about the pod."""
    profiles = setup.configuration.profiles
    configuration = replace(setup.configuration, profiles=tuple(map(without_planner, profiles)))
    engine = Engine(configuration, plugins=setup.plugins)
    for found in snapshot.objects:
        itself = isinstance(found, Pod) and found.key == pod.key
        if not itself and not isinstance(found, ScheduleTrigger | SchedulePlan):
            engine.receive(Change(None, found), now=0.0)
    warnings = [*setup.warnings, *snapshot.warnings]
    name = pod.spec.scheduler_name
    if name not in engine.profiles:
        warnings.append(
            f"the pod belongs to scheduler {name}, which may decide differently: this answer is for profile "
            f"{engine.scheduler_name}"
        )
        name = engine.scheduler_name
    if setup.configuration.webhooks:
        warnings.append("the configuration has extenders, which were not called")
    pending = engine.kept(replace(pod, spec=replace(pod.spec, node_name="", scheduler_name=name)))
    info = PodInfo.of(pending)
    chooser = engine.chooser(name)
    explanation = Explanation(error=info.problem) if info.problem else explain(chooser, info)
    preemption = None
    if not explanation.feasible and not explanation.error:
        preemption = explain_way_out(chooser, info)
    holds = any(holds_sets(profile) for profile in profiles if profile.scheduler_name == name)
    joined = membership(snapshot.objects, pod) if holds else None
    return Outlook(
        Subject.of(pod),
        name,
        {slot.name: slot.weight for slot in chooser.profile.scores},
        explanation,
        gated_by=_gate(engine, pending, joined),
        preemption=preemption,
        rank=_rank(explanation.totals, pod.spec.node_name),
        pod_set=joined,
        warnings=tuple(warnings),
    )


def _gate(engine: Engine, pending: Pod, joined: Membership | None) -> str:
    gate = Profiles(engine.profiles).pre_enqueue(pending, "")
    if gate is not None:
        return f"{gate.plugin}: {gate.message}"
    return f"{POD_SET_PLANNER}: {joined.waits}" if joined is not None and joined.waits else ""


def _rank(totals: Mapping[str, int], node: str) -> int:
    return 1 + sum(total > totals[node] for total in totals.values()) if node in totals else 0
