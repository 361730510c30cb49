"""A simulated cluster with the scheduler of pod sets and the trigger controller on it."""

import random
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from longshore.api import Pod, Service
from longshore.api.meta import ApiObject, ObjectMeta
from longshore.api.plan_request import PlanRequest
from longshore.api.pod_set import (
    PLANNING,
    POD_SET_LABEL,
    QUIET_TIME_LABEL,
    SCHEDULE,
    SCHEDULER_NAME,
    Condition,
    PlanEntry,
    SchedulePlan,
    SchedulePlanSpec,
    ScheduleTrigger,
    ScheduleTriggerSpec,
    plan_name,
)
from longshore.config import LongshoreSettings, default_configuration
from longshore.config.registry import register
from longshore.engine import Engine
from longshore.framework.effects import Bind, CallPlanner, CreateObject, Effect, PatchObject
from longshore.podset.plugin import PodSetPlanner
from longshore.podset.profile import podset_profile
from longshore.podset.trigger_controller import TriggerController
from longshore.sim import Faults, Simulation
from longshore.testing import NodeBuilder, PodBuilder, node, pod, service

Planner = Callable[[PlanRequest], Mapping[str, str]]
T = TypeVar("T", bound=Effect)

# Any date, so that timestamps look real.
EPOCH = 1_800_000_000.0


def podset_engine(args: Mapping[str, object] | None = None) -> Engine:
    configuration = replace(
        default_configuration(),
        profiles=(podset_profile(args), *default_configuration().profiles),
        longshore=LongshoreSettings(tie_break="first"),
    )
    return Engine(
        configuration,
        plugins={"PodSetPlanner": register(PodSetPlanner)},
        controllers=[TriggerController],
        epoch=EPOCH,
    )


class Sets(Simulation):
    """A simulation in which `after` advances the time. Most tests use the set `batch`.

    `asked` has all effects that engines yielded. If `strict`, no pod may be bound to another node than in the
    stored plan, not even for a moment.
    """

    def __init__(
        self,
        *objects: ApiObject,
        args: Mapping[str, object] | None = None,
        bind_latency: float = 0.01,
        strict: bool = True,
        **scenario: Any,
    ) -> None:
        super().__init__(
            podset_engine(args),
            bind_latency=bind_latency,
            start_time=None,
            on_effect=self._note,
            **scenario,
        )
        self._args = args
        self._strict = strict
        self.asked: list[Effect] = []
        self.add(*objects)

    def _note(self, effect: Effect) -> None:
        self.asked.append(effect)
        if isinstance(effect, Bind) and self._strict:
            found = self.cluster.pods.get(f"{effect.namespace}/{effect.name}")
            podset = "" if found is None else found.metadata.labels.get(POD_SET_LABEL, "")
            if found is not None and found.spec.scheduler_name == SCHEDULER_NAME and podset:
                assert self.entries(podset, effect.namespace)[effect.name] == effect.node

    @property
    def planned_anyhow(self) -> bool:
        """Whether sets are planned even if there is no planner service."""
        return (self._args or {}).get("plannerFallback") != "none"

    def add(self, *objects: ApiObject) -> None:
        self.create(*objects)
        self.after(0.0)

    def take_away(self, *objects: ApiObject) -> None:
        self.delete(*objects)
        self.after(0.0)

    def after(self, seconds: float) -> None:
        self.run(until=self.now + seconds)

    def start_again(self, seed: int | None = None) -> None:
        """Kill the scheduler and start another. With a seed it lists the objects in a random order."""
        order = None if seed is None else random.Random(seed).shuffle
        self.restart(podset_engine(self._args), order=order)

    def start_planner(self, address: str, planner: Planner) -> None:
        self.cluster.planners = {**self.cluster.planners, address: planner}

    def break_writes(self, faults: Faults) -> None:
        self.cluster.write_faults = faults

    def asked_for(self, kind: type[T]) -> list[T]:
        return [effect for effect in self.asked if isinstance(effect, kind)]

    def plan_writes(self) -> list[CreateObject | PatchObject]:
        """The writes of plans, without writes of their status."""
        creates = [each for each in self.asked_for(CreateObject) if each.kind is SchedulePlan]
        patches = [each for each in self.asked_for(PatchObject) if each.kind is SchedulePlan]
        return [*creates, *(each for each in patches if each.subresource != "status")]

    def requests(self) -> list[PlanRequest]:
        return [call.request for call in self.asked_for(CallPlanner)]

    def pod(self, name: str, namespace: str = "default") -> Pod:
        return self.cluster.pods[f"{namespace}/{name}"]

    def node_of(self, name: str) -> str:
        return self.pod(name).spec.node_name

    def nodes(self) -> dict[str, str]:
        return {each.metadata.name: each.spec.node_name for each in self.cluster.pods.values()}

    def plan(self, podset: str = "batch", namespace: str = "default") -> SchedulePlan | None:
        found = self.cluster.others.get(SchedulePlan, {}).get(f"{namespace}/{plan_name(namespace, podset)}")
        assert found is None or isinstance(found, SchedulePlan)
        return found

    def stored_plan(self, podset: str = "batch") -> SchedulePlan:
        found = self.plan(podset)
        assert found is not None
        return found

    def entries(self, podset: str = "batch", namespace: str = "default") -> dict[str, str]:
        plan = self.plan(podset, namespace)
        return {} if plan is None else {entry.pod: entry.node for entry in plan.spec.plan}

    def trigger(self, name: str = "go") -> ScheduleTrigger:
        found = self.cluster.others[ScheduleTrigger][f"default/{name}"]
        assert isinstance(found, ScheduleTrigger)
        return found

    def set_state(self, state: str, name: str = "go") -> None:
        old = self.trigger(name)
        self.add(replace(old, spec=replace(old.spec, state=state)))

    def release(self, name: str = "go") -> None:
        self.set_state(SCHEDULE, name)

    def set_quiet_time(self, text: str | None, name: str = "go") -> None:
        old = self.trigger(name)
        labels = {key: value for key, value in old.metadata.labels.items() if key != QUIET_TIME_LABEL}
        if text is not None:
            labels[QUIET_TIME_LABEL] = text
        self.add(replace(old, metadata=replace(old.metadata, labels=labels)))

    def condition(self, name: str, namespace: str = "default") -> tuple[str, str]:
        """Return the reason and the message of the pod's condition, which say why it is not scheduled."""
        conditions = self.pod(name, namespace).status.conditions
        (found,) = [c for c in conditions if c.type == "PodScheduled"]
        return found.reason, found.message

    def reasons_told(self, name: str) -> list[str]:
        """Return the reasons of all events about objects with this name, in order."""
        return [event.reason for event in self.cluster.events if event.name == name]


def conditions(thing: ScheduleTrigger | SchedulePlan) -> dict[str, Condition]:
    return {each.type: each for each in thing.status.conditions}


def trigger(
    name: str = "go",
    *,
    podset: str = "batch",
    state: str = PLANNING,
    quiet: str = "",
    namespace: str = "default",
    **spec: object,
) -> ScheduleTrigger:
    labels = {POD_SET_LABEL: podset} | ({QUIET_TIME_LABEL: quiet} if quiet else {})
    meta = ObjectMeta(name=name, namespace=namespace, labels=labels)
    return ScheduleTrigger(metadata=meta, spec=replace(ScheduleTriggerSpec(state=state), **spec))


def member(name: str, *, podset: str = "batch", cpu: str = "1", namespace: str = "default") -> PodBuilder:
    return (
        pod(name, namespace=namespace)
        .labels(**{POD_SET_LABEL: podset})
        .scheduler(SCHEDULER_NAME)
        .requests(cpu=cpu)
    )


def worker(name: str, cpu: str = "4") -> NodeBuilder:
    return node(name).allocatable(cpu=cpu, memory="8Gi")


def plan_by_hand(entries: Mapping[str, str], podset: str = "batch", *, labeled: bool = True) -> SchedulePlan:
    labels = {POD_SET_LABEL: podset} if labeled else {}
    meta = ObjectMeta(name=plan_name("default", podset), namespace="default", labels=labels)
    entry = (PlanEntry(pod, node) for pod, node in entries.items())
    return SchedulePlan(metadata=meta, spec=SchedulePlanSpec(tuple(entry)))


def planner(name: str = "planner", podset: str = "default", *, namespace: str = "planner-system") -> Service:
    """Return the Service of a planner for the set, or for all sets without their own planner."""
    found = service(name, namespace=namespace)
    labels = {f"planner.ciena.io/{podset}": "enabled"}
    return replace(found, metadata=replace(found.metadata, labels=labels))


def address(name: str = "planner", namespace: str = "planner-system") -> str:
    return f"{name}.{namespace}.svc.cluster.local:7309"


WORKERS = (worker("n1"), worker("n2"), worker("n3"))
