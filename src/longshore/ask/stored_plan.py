"""The stored plan of a set next to the nodes where its pods are: what `longshore plan` shows."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from longshore.api import Condition, Node, Pod, UnplacedPod
from longshore.api.meta import ApiObject
from longshore.ask.node_loads import NodeLoad, node_loads
from longshore.ask.pod_sets import Found, read
from longshore.ask.snapshot import Snapshot, readable
from longshore.cluster import ClusterState, PodInfo
from longshore.errors import UserError
from longshore.kube.client import Client
from longshore.kube.kinds import NOT_ENDED
from longshore.kube.resources import NODES, WHOLE_PODS
from longshore.podset.sets import PodSet
from longshore.podset.texts import why_held

# Where a pod is, compared to its entry: on the node, on another one, on none yet, ended, or missing.
Standing = Literal["there", "elsewhere", "pending", "ended", "missing"]


class Entry(msgspec.Struct, frozen=True, rename="camel"):
    pod: str
    node: str
    runs_on: str
    standing: Standing


class UnplannedPod(msgspec.Struct, frozen=True, rename="camel"):
    """A pod of the set without an entry."""

    pod: str
    runs_on: str


class StoredPlan(msgspec.Struct, frozen=True, rename="camel"):
    namespace: str
    pod_set: str
    name: str
    planner: str | None
    # Its cost, the least that any plan costs, and how much cheaper a better plan could be, as a share.
    objective: float | None
    bound: float | None
    gap: float | None
    seconds: float | None
    entries: tuple[Entry, ...]
    without_entry: tuple[UnplannedPod, ...]
    # From the status of the plan.
    unplaced: tuple[UnplacedPod, ...]
    conditions: tuple[Condition, ...]
    # Empty if the caller may not see all nodes and pods.
    nodes: tuple[NodeLoad, ...]
    warnings: tuple[str, ...] = ()


async def stored_plan(client: Client, *, namespace: str, podset: str) -> StoredPlan:
    """Return the stored plan. Raises UserError, also if the set has no plan."""
    found = await read(client, namespace=namespace)
    view(found, Snapshot(()), namespace=namespace, podset=podset)
    room = [await readable(client, NODES), await readable(client, WHOLE_PODS, {"fieldSelector": NOT_ENDED})]
    warnings = tuple(f"node loads are not shown: {line}" for part in room for line in part.warnings)
    objects = () if warnings else tuple(each for part in room for each in part.objects)
    return view(found, Snapshot(objects, warnings), namespace=namespace, podset=podset)


def view(found: Found, room: Snapshot, *, namespace: str, podset: str) -> StoredPlan:
    """`room` has the nodes, and the pods that fill them. Raises UserError if the set has no plan."""
    seen = found.podset(namespace, podset)
    plan = seen.plan
    if plan is None:
        raise UserError(f"{_why_no_plan(seen)}; --preview shows what would be planned now")
    pods = {pod.metadata.name: pod for pod in found.pods if pod.metadata.namespace == namespace}
    entries = tuple(_entry(each.pod, each.node, pods.get(each.pod)) for each in plan.spec.plan)
    planned = {entry.pod for entry in entries}
    status = plan.status
    return StoredPlan(
        namespace,
        podset,
        plan.metadata.name,
        status.planner,
        status.objective,
        status.bound,
        status.gap,
        status.seconds,
        entries,
        tuple(
            UnplannedPod(pod.metadata.name, pod.spec.node_name)
            for pod in sorted((*seen.bound.values(), *seen.pending.values()), key=lambda pod: pod.key)
            if pod.metadata.name not in planned
        ),
        status.unplaced,
        status.conditions,
        _loads(room.objects, _coming(entries, pods)),
        room.warnings,
    )


def _why_no_plan(seen: PodSet) -> str:
    name = f"pod set {seen.name} in namespace {seen.namespace} has no plan"
    return name if seen.released else f"{name}: {why_held(seen)}"


def _entry(name: str, node: str, pod: Pod | None) -> Entry:
    if pod is None:
        return Entry(name, node, "", "missing")
    runs_on = pod.spec.node_name
    if pod.terminal:
        return Entry(name, node, runs_on, "ended")
    standing: Standing = "pending"
    if runs_on:
        standing = "there" if runs_on == node else "elsewhere"
    return Entry(name, node, runs_on, standing)


def _coming(entries: Sequence[Entry], pods: Mapping[str, Pod]) -> Iterator[tuple[PodInfo, str]]:
    for entry in entries:
        if entry.standing == "pending":
            yield PodInfo.of(pods[entry.pod]), entry.node


def _loads(objects: Sequence[ApiObject], coming: Iterator[tuple[PodInfo, str]]) -> tuple[NodeLoad, ...]:
    cluster = ClusterState()
    for each in objects:
        match each:
            case Node():
                cluster.add_node(each)
            case Pod():
                cluster.add_pod(each)
    # A pod that was bound between the two reads is in the cluster already.
    return node_loads(cluster, (pair for pair in coming if cluster.pod(pair[0].pod.key) is None))
