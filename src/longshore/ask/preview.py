"""The plan that a set would get now. It is computed here, and nothing is written.

The scheduler's own plugins decide, without the one that holds pods until they are planned. Pods with an entry
in the stored plan keep it if it is still valid, as they would when the set is released.
"""

import time
from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from longshore.api import Change, SchedulePlan, ScheduleTrigger, ScheduleTriggerSpec, Service
from longshore.api.pod_set import PACK, SCHEDULER_NAME
from longshore.ask.node_loads import NodeLoad, node_loads
from longshore.ask.pod_sets import read, sets_of
from longshore.ask.snapshot import Snapshot, joined, take_all
from longshore.cluster import PodInfo
from longshore.config import default_configuration
from longshore.config.registry import load_plugins
from longshore.config.setup import Setup, enable, set_up
from longshore.engine import Engine
from longshore.engine.decision.chooser import Chooser
from longshore.errors import UserError
from longshore.kube.client import Client
from longshore.kube.resources import SCHEDULE_PLANS, SCHEDULE_TRIGGERS
from longshore.planning import LeftOut, Objective, Plan, Problem
from longshore.podset.arguments import NAME, planner_settings
from longshore.podset.built_in import finish, search
from longshore.podset.members import Facts, Members
from longshore.podset.plan_entries import entries_of
from longshore.podset.planner_services import planners_of
from longshore.podset.profile import podset_profile, without_planner
from longshore.podset.sets import PodSet, Sets
from longshore.podset.stages import Stage
from longshore.podset.texts import other_gates, why_gated, why_held
from longshore.podset.transitions import observed


class Wanted(msgspec.Struct, frozen=True, rename="camel"):
    """How to plan the set; budget in seconds."""

    objective: Objective
    all_or_nothing: bool
    budget: float


class PreviewedPod(msgspec.Struct, frozen=True):
    pod: str
    node: str
    # Whether the stored plan has it already.
    stored: bool


class NotPlaced(msgspec.Struct, frozen=True):
    pod: str
    reason: str


class Preview(msgspec.Struct, frozen=True, rename="camel"):
    namespace: str
    pod_set: str
    # The trigger that counts, and why it holds the set; empty if it does not.
    trigger: str
    held_by: str
    wanted: Wanted
    planner: str
    objective: float
    bound: float | None
    gap: float | None
    seconds: float
    assignments: tuple[PreviewedPod, ...]
    left_out: tuple[NotPlaced, ...]
    # Pods of the set that this planner does not plan, or not yet.
    not_planned: tuple[NotPlaced, ...]
    nodes: tuple[NodeLoad, ...]
    warnings: tuple[str, ...] = ()


async def take(client: Client, *, namespace: str, podset: str) -> Snapshot:
    """Read everything that is needed to plan the set. Raises UserError, also if there is no such set."""
    found = await read(client, namespace=namespace)
    found.podset(namespace, podset)
    everything = await take_all(client, SCHEDULE_TRIGGERS, SCHEDULE_PLANS)
    # Include what the caller may read in the namespace only.
    return joined(Snapshot((*found.pods, *found.triggers, *found.plans)), everything)


def planner_setup(config: str | None = None, *, plugins: Sequence[str] = ()) -> Setup:
    """Return the profile of pod sets without the plugin that holds them. Raises UserError."""
    if config is None:
        registered = load_plugins(plugins)
        own = replace(default_configuration(), profiles=(podset_profile(),))
        given = [plugin for plugin in registered.values() if plugin.source in plugins]
        setup = Setup(enable(own, given), registered)
    else:
        setup = set_up(config, plugins=plugins)
        if all(each.scheduler_name != SCHEDULER_NAME for each in setup.configuration.profiles):
            raise UserError(f"{config} has no profile for the pods of sets: schedulerName {SCHEDULER_NAME}")
    profiles = tuple(map(without_planner, setup.configuration.profiles))
    return Setup(replace(setup.configuration, profiles=profiles), setup.plugins, setup.warnings)


def preview(
    setup: Setup,
    snapshot: Snapshot,
    *,
    namespace: str,
    podset: str,
    objective: Objective | None = None,
    budget: float | None = None,
) -> Preview:
    """`objective` and `budget`, in seconds, are those of the trigger unless they are given."""
    engine = Engine(setup.configuration, plugins=setup.plugins)
    for each in snapshot.objects:
        if not isinstance(each, ScheduleTrigger | SchedulePlan):
            engine.receive(Change(None, each), now=0.0)
    sets = sets_of(snapshot.objects)
    seen = sets.get((namespace, podset)) or PodSet(namespace, podset)
    chooser = engine.chooser(SCHEDULER_NAME)
    _nominate_others(chooser, sets, seen)
    wanted = _wanted(seen.trigger, objective, budget)
    members = _members(seen, released=True)
    gated = members.of(Stage.GATED)
    pods = {each.uid: PodInfo.of(engine.kept(each.pod)) for each in members if each.stage is not Stage.GATED}
    uids = {info.pod.metadata.name: uid for uid, info in pods.items()}
    kept = {uids[name]: node for name, node in entries_of(seen.plan).items() if name in uids}
    plan = _plan(chooser, pods, kept, wanted, why_gated(gated[0].pod) if gated else "")
    nodes = {each.uid: each.node for each in plan.assignments}
    return Preview(
        namespace,
        podset,
        seen.trigger.metadata.name if seen.trigger else "",
        "" if seen.released else why_held(seen),
        wanted,
        plan.planner,
        plan.objective,
        plan.bound,
        plan.gap,
        plan.seconds,
        tuple(
            PreviewedPod(pods[uid].pod.metadata.name, node, kept.get(uid) == node)
            for uid, node in nodes.items()
        ),
        tuple(NotPlaced(pods[each.uid].pod.metadata.name, each.reason) for each in plan.left_out),
        _not_planned(seen, members),
        node_loads(chooser.cluster, ((pods[uid], node) for uid, node in nodes.items())),
        (*setup.warnings, *snapshot.warnings, *_not_asked(setup, chooser, podset)),
    )


def _wanted(trigger: ScheduleTrigger | None, objective: Objective | None, budget: float | None) -> Wanted:
    spec = trigger.spec if trigger else ScheduleTriggerSpec()
    return Wanted(
        objective or ("Pack" if spec.objective == PACK else "Balance"),
        spec.all_or_nothing,
        spec.budget_seconds if budget is None else budget,
    )


def _members(podset: PodSet, *, released: bool) -> Members:
    """Return the members in the stages that they have if the set is released."""
    trigger, pending = podset.trigger, podset.pending
    whole = trigger is not None and trigger.spec.all_or_nothing
    # In the order in which the scheduler has them.
    pods = (pending[uid] for uid in sorted(pending) if pending[uid].spec.scheduler_name == SCHEDULER_NAME)
    return observed(pods, Facts(released, whole, entries_of(podset.plan)))


def _not_planned(podset: PodSet, members: Members) -> tuple[NotPlaced, ...]:
    found = []
    for uid, pod in sorted(podset.pending.items()):
        member = members.get(uid)
        if member is None:
            found.append(NotPlaced(pod.metadata.name, f"it belongs to scheduler {pod.spec.scheduler_name}"))
        elif member.stage is Stage.GATED:
            gates = ", ".join(other_gates(pod))
            found.append(NotPlaced(pod.metadata.name, f"it waits for scheduling gates: {gates}"))
    return tuple(found)


def _plan(
    chooser: Chooser, pods: Mapping[str, PodInfo], kept: Mapping[str, str], wanted: Wanted, gated: str
) -> Plan:
    """Plan as the scheduler does. `gated` is why an all-or-nothing set waits."""
    whole = wanted.all_or_nothing
    if whole and gated:
        return Plan((), tuple(LeftOut(info.pod.key, uid, gated) for uid, info in pods.items()))
    problem = Problem(
        chooser, list(pods.values()), objective=wanted.objective, kept=kept, all_or_nothing=whole
    )
    waiting = {uid: info.pod for uid, info in pods.items()}
    return finish(
        search(problem, lambda: waiting, clock=time.monotonic, budget=wanted.budget, moves_kept=whole)
    )


def _nominate_others(chooser: Chooser, sets: Sets, seen: PodSet) -> None:
    """Reserve room for pods of other sets that are already on their way."""
    for other in sets:
        if other is seen or not other.released:
            continue
        entries = entries_of(other.plan)
        for member in _members(other, released=True).of(Stage.PLANNED, Stage.QUEUED):
            chooser.cluster.nominations.add(PodInfo.of(member.pod), entries[member.name])


def _not_asked(setup: Setup, chooser: Chooser, podset: str) -> Iterator[str]:
    [profile] = [each for each in setup.configuration.profiles if each.scheduler_name == SCHEDULER_NAME]
    args = profile.args.get(NAME)
    settings = planner_settings(args if isinstance(args, Mapping) else None)
    if planners := planners_of(podset, tuple(chooser.cluster.objects(Service)), settings):
        names = ", ".join(each.name for each in planners)
        yield f"the planner of the set, Service {names}, was not asked: the built-in planner made this plan"
    if setup.configuration.webhooks:
        yield "the configuration has extenders, which were not called"
