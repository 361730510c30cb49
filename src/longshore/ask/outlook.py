"""What a scheduler says about one pod in a cluster as it was looked at: the answer of `longshore explain`.

A pod that has a node is imagined without it: the question is where it would go now. For a pod of a set it is
where it could go: what holds it, and where its plan sends it, is told beside that.
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
    """The pod as the API server has it."""

    namespace: str
    name: str
    scheduler_name: str
    phase: str = ""
    node: str = ""
    nominated_node: str = ""
    # What its condition PodScheduled says.
    reason: str = ""
    message: str = ""
    # Being deleted.
    ending: bool = False

    @classmethod
    def of(cls, pod: Pod) -> "Subject":
        told = next(
            (c for c in pod.status.conditions if c.type == "PodScheduled" and c.status != "True"), None
        )
        return cls(
            pod.metadata.namespace,
            pod.metadata.name,
            pod.spec.scheduler_name,
            phase=pod.status.phase,
            node=pod.spec.node_name,
            nominated_node=pod.status.nominated_node_name,
            reason=told.reason if told else "",
            message=told.message if told else "",
            ending=pod.metadata.deletion_timestamp is not None,
        )


class Outlook(msgspec.Struct, frozen=True, rename="camel"):
    pod: Subject
    # The scheduler name of the profile that was asked, and its plugins that score with their weights.
    profile: str
    weights: Mapping[str, int]
    explanation: Explanation
    # A plugin that keeps the pod out of the queue, with its reason.
    gated_by: str = ""
    # If nothing fits.
    preemption: WayOut | None = None
    # The place of the node that it has, 1 being the best; 0 if it has none, or one that will not do now.
    rank: int = 0
    # If the profile holds sets, and the pod belongs to one.
    pod_set: Membership | None = None
    warnings: tuple[str, ...] = ()


def outlook(setup: Setup, snapshot: Snapshot, pod: Pod) -> Outlook:
    profiles = setup.configuration.profiles
    asked = replace(setup.configuration, profiles=tuple(map(without_planner, profiles)))
    engine = Engine(asked, plugins=setup.plugins)
    for thing in snapshot.objects:
        itself = isinstance(thing, Pod) and thing.key == pod.key
        if not itself and not isinstance(thing, ScheduleTrigger | SchedulePlan):
            engine.receive(Change(None, thing), now=0.0)
    warnings = [*setup.warnings, *snapshot.warnings]
    name = pod.spec.scheduler_name
    if name not in engine.profiles:
        warnings.append(
            f"the pod belongs to scheduler {name}, which may decide otherwise: this is profile "
            f"{engine.scheduler_name}"
        )
        name = engine.scheduler_name
    if setup.configuration.webhooks:
        warnings.append("extenders have a say as well, and were not asked")
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
