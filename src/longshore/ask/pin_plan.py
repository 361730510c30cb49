"""The plan of `longshore pin`: the labels to write, checked before the first of them is written.

A condition that would keep a pod from its node is not an error, because it may change before the pod is
scheduled. It becomes a warning that says what to do.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

import msgspec

from longshore.api import Node, Pod
from longshore.errors import UserError
from longshore.pin.labels import DEFAULT_SCHEDULER, FORCE, legacy_key, pin_key, problem_with, readings

# The scheduler of pods that name none. It does not read pins.
_DEFAULT_SCHEDULER = "default-scheduler"
# Controllers that give each pod a new name.
_RENAMING_KINDS = frozenset({"DaemonSet", "Job", "ReplicaSet", "ReplicationController"})

_FORCE_FIRST = "labels with the value force take precedence"
# The new values of labels by node; None removes a label.
Changes = Mapping[str, Mapping[str, str | None]]


class PinRequest(NamedTuple):
    """A pod and the node to pin it to; `now` is the pod if it exists."""

    pod: str
    node: str
    now: Pod | None


class PinOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `longshore pin` and `unpin`."""

    # The scheduler that was given, and the one to use if the pod does not name one either.
    scheduler: str | None = None
    fallback: str = DEFAULT_SCHEDULER
    force: bool = False
    # Keep the label on other nodes that have it.
    also: bool = False
    # The kubectl command that talks to the same cluster.
    kubectl: str = "kubectl"

    def scheduler_of(self, pod: Pod | None) -> str:
        """Return the name of the scheduler that the pin is for."""
        if self.scheduler is not None:
            return self.scheduler
        own = pod.spec.scheduler_name if pod else ""
        return own if own not in ("", _DEFAULT_SCHEDULER) else self.fallback


class Pinned(msgspec.Struct, frozen=True, rename="camel"):
    """One pin of a plan."""

    scheduler: str
    namespace: str
    pod: str
    node: str
    label: str
    force: bool
    # Whether a label must be written.
    changed: bool
    exists: bool
    # The node that the pod runs on now, or an empty string.
    runs_on: str
    taken_from: tuple[str, ...]
    also_on: tuple[str, ...]


class NotPinned(msgspec.Struct, frozen=True):
    """A pod of a StatefulSet that is not pinned, and why."""

    pod: str
    reason: str


class PinPlan(msgspec.Struct, frozen=True, rename="camel"):
    """The pins, the labels to write for them, and warnings."""

    pins: tuple[Pinned, ...]
    changes: Changes
    warnings: tuple[str, ...]
    left_out: tuple[NotPinned, ...] = ()


def plan_pins(
    requests: Sequence[PinRequest], nodes: Mapping[str, Node], *, namespace: str, options: PinOptions
) -> PinPlan:
    """Return the plan for these pods. Raises UserError if any of them cannot be pinned."""
    pins: list[Pinned] = []
    changes: dict[str, dict[str, str | None]] = {}
    warnings: list[str] = []
    for request in requests:
        scheduler = options.scheduler_of(request.now)
        label = pin_key(scheduler, namespace, request.pod)
        if problem := problem_with(label):
            raise UserError(f"pod {namespace}/{request.pod} cannot be pinned: {problem}")
        if request.node not in nodes:
            raise UserError(no_such_node(request.node, nodes))
        before = carriers(label, nodes)
        others = tuple(name for name in before if name != request.node)
        value = FORCE if options.force else ""
        removed = {} if options.also else dict.fromkeys(others)
        wanted: dict[str, str | None] = {request.node: value} | removed
        changed = {name: value for name, value in wanted.items() if before.get(name) != value}
        for name, new in changed.items():
            changes.setdefault(name, {})[label] = new
        pin = Pinned(
            scheduler=scheduler,
            namespace=namespace,
            pod=request.pod,
            node=request.node,
            label=label,
            force=options.force,
            changed=bool(changed),
            exists=request.now is not None,
            runs_on=node_of(request.now),
            taken_from=() if options.also else others,
            also_on=others if options.also else (),
        )
        pins.append(pin)
        warnings += _about_labels(pin, before, nodes)
        warnings += _about_pod(pin, request.now, options.kubectl)
        warnings += _about_node(nodes[request.node], options)
    return PinPlan(tuple(pins), changes, tuple(dict.fromkeys(warnings)))


def carriers(label: str, nodes: Mapping[str, Node]) -> dict[str, str]:
    """Return the label's value by the name of each node that has it."""
    return {
        name: node.metadata.labels[label]
        for name, node in sorted(nodes.items())
        if label in node.metadata.labels
    }


def node_of(pod: Pod | None) -> str:
    """Return the node that the pod runs on, or an empty string if it is pending or has ended."""
    return "" if pod is None or pod.terminal else pod.spec.node_name


def in_order(name: str) -> tuple[str, int, str]:
    """Return a sort key that puts web-10 after web-9."""
    found = re.fullmatch(r"(.*-)([0-9]+)", name)
    return (found[1], int(found[2]), name) if found else (name, -1, name)


def no_such_node(name: str, nodes: Mapping[str, Node]) -> str:
    """Return the error for a name that no node has, with a suggestion."""
    close = get_close_matches(name, list(nodes), n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else "kubectl get nodes lists the nodes"
    return f"node {name} does not exist: {hint}"


def _about_labels(pin: Pinned, before: Mapping[str, str], nodes: Mapping[str, Node]) -> Iterator[str]:
    name = f"{pin.namespace}/{pin.pod}"
    if before.get(pin.node) == FORCE and not pin.force:
        yield f"{name} was pinned to {pin.node} by force, and no longer is: give --force to keep that"
    forced = [other for other in pin.also_on if before[other] == FORCE]
    if forced and not pin.force:
        yield f"{name} goes to {', '.join(forced)} and not to {pin.node}: {_FORCE_FIRST}"
    if pin.force and len(forced) < len(pin.also_on):
        rest = [other for other in pin.also_on if other not in forced]
        yield f"{name} no longer goes to {', '.join(rest)}: {_FORCE_FIRST}"
    older = legacy_key(pin.scheduler, pin.pod)
    elsewhere = [other for other in carriers(older, nodes) if other != pin.node]
    if elsewhere and len(readings(older)) == 1:
        yield f"{older} on {', '.join(elsewhere)} has no effect on {name}: this label takes precedence"


def _about_pod(pin: Pinned, pod: Pod | None, kubectl: str) -> Iterator[str]:
    if pod is None:
        return
    name, controller = f"{pin.namespace}/{pin.pod}", pod.metadata.controller
    own = pod.spec.scheduler_name
    if own != pin.scheduler:
        # The same text for all pods of a StatefulSet, so that it is printed once.
        subject = f"pods of {controller.kind} {controller.name} have" if controller else f"{name} has"
        yield (
            f"{subject} schedulerName {own}, so scheduler {pin.scheduler} ignores them: "
            f"set schedulerName: {pin.scheduler} in their template or manifest"
        )
    if controller is not None and controller.kind in _RENAMING_KINDS:
        yield (
            f"{name} will not be created again with this name, because a {controller.kind} creates it: "
            "pin pods of a StatefulSet instead"
        )
    elif pin.runs_on in ("", pin.node) or pod.metadata.deletion_timestamp is not None:
        return
    elif controller is None:
        yield (
            f"{name} runs on {pin.runs_on}, and no controller creates it again: to move it to {pin.node}, "
            "delete it and create it again"
        )
    else:
        yield (
            f"{name} runs on {pin.runs_on} until it is deleted; to move it to {pin.node}, run "
            f"{kubectl} delete pod {pin.pod} -n {pin.namespace}"
        )


def _about_node(node: Node, options: PinOptions) -> Iterator[str]:
    name = node.metadata.name
    forced = "with --force, pods are bound there anyway"
    if node.spec.unschedulable:
        waits = f"pods wait until {options.kubectl} uncordon {name}, or give --force"
        yield f"node {name} is cordoned: {forced if options.force else waits}"
    if not node.ready:
        waits = "pods wait until it is, or give --force"
        yield f"node {name} is not ready: {forced if options.force else waits}"
