"""Compares the nodes of pods with their plans, in one namespace or in all."""

from collections.abc import Iterator

import msgspec

from longshore.api.pod_set import SCHEDULER_NAME
from longshore.ask.pod_sets import Found, list_custom, set_name
from longshore.kube.caller import list_objects
from longshore.kube.client import Client
from longshore.kube.resources import PODS, SCHEDULE_PLANS

NO_SUCH_POD = "the pod does not exist"
PENDING = "the pod has no node yet"
NOT_IN_THE_PLAN = "the plan has no entry for the pod"
NO_PLAN = "the pod's set has no plan"


class Mismatch(msgspec.Struct, frozen=True, rename="camel"):
    """A pod that is not where it should be; `node` is the planned node, or an empty string."""

    namespace: str
    pod_set: str
    pod: str
    node: str
    runs_on: str
    reason: str


class Verification(msgspec.Struct, frozen=True):
    plans: int
    # The number of entries in all plans.
    entries: int
    mismatches: tuple[Mismatch, ...]
    strict: bool

    @property
    def holds(self) -> bool:
        return not self.mismatches and bool(self.plans or not self.strict)


async def verify(client: Client, *, namespace: str = "", strict: bool = False) -> Verification:
    """Verify the plans of a namespace, or of all namespaces. Raises UserError."""
    plans = await list_custom(client, SCHEDULE_PLANS, namespace=namespace)
    if not plans:
        return Verification(0, 0, (), strict)
    pods = await list_objects(client, PODS, namespace=namespace)
    return compare(Found(tuple(pods.values()), plans=plans), strict=strict)


def compare(found: Found, *, strict: bool = False) -> Verification:
    """Compare pods with plans. If strict, pods without a node and pods in no plan are mismatches too."""
    mismatches = [*_misplaced(found, strict=strict), *(_unplanned(found) if strict else ())]
    return Verification(
        len(found.plans),
        sum(len(plan.spec.plan) for plan in found.plans),
        tuple(sorted(mismatches, key=lambda each: (each.namespace, each.pod_set, each.pod))),
        strict,
    )


def _misplaced(found: Found, *, strict: bool) -> Iterator[Mismatch]:
    pods = {pod.key: pod for pod in found.pods}
    for plan in found.plans:
        namespace = plan.metadata.namespace
        for entry in plan.spec.plan:
            pod = pods.get(f"{namespace}/{entry.pod}")
            node = "" if pod is None else pod.spec.node_name
            if pod is None:
                reason = NO_SUCH_POD
            elif node:
                reason = "" if node == entry.node else f"the pod is on {node}"
            else:
                reason = PENDING if strict else ""
            if reason:
                yield Mismatch(namespace, set_name(plan), entry.pod, entry.node, node, reason)


def _unplanned(found: Found) -> Iterator[Mismatch]:
    """Yield pods of sets that the planner schedules but that are in no plan."""
    for podset in found.sets:
        planned = {entry.pod for entry in podset.plan.spec.plan} if podset.plan else ()
        for pod in (*podset.pending.values(), *podset.bound.values()):
            name = pod.metadata.name
            if name not in planned and pod.spec.scheduler_name == SCHEDULER_NAME:
                reason = NOT_IN_THE_PLAN if podset.plan else NO_PLAN
                yield Mismatch(podset.namespace, podset.name, name, "", pod.spec.node_name, reason)
