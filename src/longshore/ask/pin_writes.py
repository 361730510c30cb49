"""Pins pods to nodes and removes pins, with the permissions of the caller.

Every write is tried as a dry run before the first one is made. New labels are written before old ones are
removed, so that a pinned pod always has a node.
"""

from collections.abc import Mapping

import msgspec

from longshore.api import Node, Pod
from longshore.api.meta import ApiObject, ApiStruct
from longshore.api.names import is_dns_subdomain
from longshore.ask.pin_plan import (
    Changes,
    NotPinned,
    PinOptions,
    PinPlan,
    PinRequest,
    carriers,
    in_order,
    node_of,
    plan_pins,
)
from longshore.errors import UserError
from longshore.kube.caller import find, list_objects, set_labels
from longshore.kube.client import Client
from longshore.kube.codec import JsonCodec
from longshore.kube.resources import NODES, PODS, Resource
from longshore.pin.labels import legacy_key, pin_key, readings


class _Ordinals(ApiStruct):
    start: int = 0


class _Spec(ApiStruct):
    replicas: int = 1
    ordinals: _Ordinals = _Ordinals()


class _StatefulSet(ApiObject):
    """The fields of a StatefulSet that determine the names of its pods."""

    spec: _Spec = _Spec()

    @property
    def pod_names(self) -> list[str]:
        first = self.spec.ordinals.start
        return [f"{self.metadata.name}-{number}" for number in range(first, first + self.spec.replicas)]


_STATEFUL_SETS = Resource(group="apps", plural="statefulsets", codec=JsonCodec(_StatefulSet))


class Unpinned(msgspec.Struct, frozen=True, rename="camel"):
    """The labels that were removed from nodes."""

    scheduler: str
    namespace: str
    pod: str
    label: str
    nodes: tuple[str, ...]
    older_label: str
    older_nodes: tuple[str, ...]
    warnings: tuple[str, ...]


async def pin(client: Client, *, namespace: str, pod: str, node: str, options: PinOptions) -> PinPlan:
    """Pin one pod, which need not exist yet. Raises UserError."""
    if not is_dns_subdomain(pod):
        raise UserError(f"{pod!r} is not a valid pod name: use lowercase letters, digits, - and .")
    now = await find(client, PODS, Pod, namespace=namespace, name=pod)
    nodes = await list_objects(client, NODES)
    planned = plan_pins([PinRequest(pod, node, now)], nodes, namespace=namespace, options=options)
    await _write(client, planned.changes)
    return planned


async def record(client: Client, *, namespace: str, name: str, options: PinOptions) -> PinPlan:
    """Pin each pod of a StatefulSet to the node that it runs on now. Raises UserError."""
    owner = await find(client, _STATEFUL_SETS, _StatefulSet, namespace=namespace, name=name)
    if owner is None:
        raise UserError(
            f"StatefulSet {name} does not exist in namespace {namespace}; -n chooses another namespace"
        )
    pods: dict[str, Pod | None] = dict.fromkeys(owner.pod_names)
    for pod in (await list_objects(client, PODS, namespace=namespace)).values():
        controller = pod.metadata.controller
        if controller is not None and controller.uid == owner.metadata.uid:
            pods[pod.metadata.name] = pod
    nodes = await list_objects(client, NODES)
    requests = []
    left_out = []
    for pod_name in sorted(pods, key=in_order):
        now = pods[pod_name]
        node = node_of(now)
        if node in nodes:
            requests.append(PinRequest(pod_name, node, now))
        else:
            left_out.append(NotPinned(pod_name, _why_not(now, node)))
    if not requests:
        raise UserError(f"no pod of StatefulSet {namespace}/{name} runs on a node, so none can be pinned")
    planned = plan_pins(requests, nodes, namespace=namespace, options=options)
    await _write(client, planned.changes)
    return msgspec.structs.replace(planned, left_out=tuple(left_out))


async def unpin(client: Client, *, namespace: str, pod: str, options: PinOptions) -> Unpinned:
    """Remove the labels of a pod, also those of the older form. Raises UserError if no node has one."""
    now = None
    if options.scheduler is None:
        now = await find(client, PODS, Pod, namespace=namespace, name=pod)
    scheduler = options.scheduler_of(now)
    nodes = await list_objects(client, NODES)
    label, older = pin_key(scheduler, namespace, pod), legacy_key(scheduler, pod)
    labeled, labeled_older = tuple(carriers(label, nodes)), tuple(carriers(older, nodes))
    warnings: tuple[str, ...] = ()
    if labeled_older and len(readings(older)) > 1:
        other = readings(older)[0]
        warnings = (
            f"{older} on {', '.join(labeled_older)} is not removed, because it also pins "
            f"{other.namespace}/{other.pod} for scheduler {other.scheduler}; "
            f"to remove it, run {options.kubectl} label node {labeled_older[0]} {older}-",
        )
        labeled_older = ()
    if not labeled and not labeled_older:
        raise UserError(
            "; ".join([f"no node is labeled {label}", *_hints(scheduler, namespace, pod, nodes), *warnings])
        )
    changes: dict[str, dict[str, str | None]] = {}
    for key, names in ((label, labeled), (older, labeled_older)):
        for name in names:
            changes.setdefault(name, {})[key] = None
    await _write(client, changes)
    return Unpinned(scheduler, namespace, pod, label, labeled, older, labeled_older, warnings)


async def _write(client: Client, changes: Changes) -> None:
    in_turn = sorted(changes, key=lambda node: (not _adds(changes[node]), node))
    for node in in_turn:
        await _relabel(client, node, changes[node], dry_run=True)
    for number, node in enumerate(in_turn):
        try:
            await _relabel(client, node, changes[node])
        except UserError as error:
            done = ", ".join(in_turn[:number]) or "none"
            raise UserError(
                f"{error}; nodes changed before {node}: {done}; run the same command again"
            ) from error


async def _relabel(
    client: Client, node: str, labels: Mapping[str, str | None], *, dry_run: bool = False
) -> None:
    """Change the labels of a node. A deleted node is an error only if a label is added to it."""
    if not await set_labels(client, NODES, node, labels, dry_run=dry_run) and _adds(labels):
        raise UserError(f"node {node} was deleted meanwhile")


def _adds(labels: Mapping[str, str | None]) -> bool:
    return any(value is not None for value in labels.values())


def _why_not(pod: Pod | None, node: str) -> str:
    if pod is None:
        return "the pod does not exist"
    if pod.terminal:
        return f"the pod has ended ({pod.status.phase})"
    return f"its node {node} does not exist" if node else "the pod is pending"


def _hints(scheduler: str, namespace: str, pod: str, nodes: dict[str, Node]) -> list[str]:
    """Return hints at pins of the pod for other schedulers."""
    found = {
        pin.scheduler
        for node in nodes.values()
        for key in node.metadata.labels
        for pin in readings(key)[:1]
        if pin.pod == pod and pin.namespace in (namespace, "") and pin.scheduler != scheduler
    }
    return [f"the pod is pinned for scheduler {name}: give --name {name}" for name in sorted(found)]
