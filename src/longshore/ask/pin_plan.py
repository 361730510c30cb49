"""What it takes to pin pods to nodes, as a value: every check is made before the first label is written.

What would keep a pod from coming back where it is sent is no error, since it may change until then: it
becomes a warning that says what to do.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

import msgspec

from longshore.api import Node, Pod
from longshore.errors import UserError
from longshore.pin.labels import DEFAULT_SCHEDULER, FORCE, legacy_key, pin_key, problem_with, readings

# The scheduler of pods that ask for none: nobody means it when they pin a pod.
_CLUSTERS_OWN = "default-scheduler"
# What gives each of its pods a new name.
_NAMES_ANEW = frozenset({"DaemonSet", "Job", "ReplicaSet", "ReplicationController"})

# By node, what becomes of its labels: a value, or None for one that is taken away.
Changes = Mapping[str, Mapping[str, str | None]]


class Wish(NamedTuple):
    """This pod to this node; `now` is the pod as it is, if there is one."""

    pod: str
    node: str
    now: Pod | None


class How(msgspec.Struct, frozen=True, kw_only=True):
    # The name of the scheduler: what is asked for, and what counts where neither that nor the pod tells.
    scheduler: str | None = None
    fallback: str = DEFAULT_SCHEDULER
    force: bool = False
    # Leave the label on the other nodes that have it.
    also: bool = False
    # How kubectl is called to talk to the same cluster.
    kubectl: str = "kubectl"

    def scheduler_of(self, pod: Pod | None) -> str:
        if self.scheduler is not None:
            return self.scheduler
        own = pod.spec.scheduler_name if pod else ""
        return own if own not in ("", _CLUSTERS_OWN) else self.fallback


class Pinned(msgspec.Struct, frozen=True, rename="camel"):
    scheduler: str
    namespace: str
    pod: str
    node: str
    label: str
    force: bool
    # Whether anything had to be written for it.
    changed: bool
    exists: bool
    # Where the pod is now; empty if nowhere.
    runs_on: str
    taken_from: tuple[str, ...]
    also_on: tuple[str, ...]


class LeftOut(msgspec.Struct, frozen=True):
    pod: str
    reason: str


class Plan(msgspec.Struct, frozen=True, rename="camel"):
    pins: tuple[Pinned, ...]
    changes: Changes
    warnings: tuple[str, ...]
    left_out: tuple[LeftOut, ...] = ()


def plan(wishes: Sequence[Wish], nodes: Mapping[str, Node], *, namespace: str, how: How) -> Plan:
    """Raises UserError if any of the pods cannot be pinned."""
    pins: list[Pinned] = []
    changes: dict[str, dict[str, str | None]] = {}
    warnings: list[str] = []
    for wish in wishes:
        scheduler = how.scheduler_of(wish.now)
        label = pin_key(scheduler, namespace, wish.pod)
        if problem := problem_with(label):
            raise UserError(f"pod {namespace}/{wish.pod} cannot be pinned: {problem}")
        if wish.node not in nodes:
            raise UserError(_no_node(wish.node, nodes))
        before = carriers(label, nodes)
        others = tuple(name for name in before if name != wish.node)
        value = FORCE if how.force else ""
        wanted: dict[str, str | None] = {wish.node: value} | ({} if how.also else dict.fromkeys(others))
        changed = {name: value for name, value in wanted.items() if before.get(name) != value}
        for name, new in changed.items():
            changes.setdefault(name, {})[label] = new
        pin = Pinned(
            scheduler=scheduler,
            namespace=namespace,
            pod=wish.pod,
            node=wish.node,
            label=label,
            force=how.force,
            changed=bool(changed),
            exists=wish.now is not None,
            runs_on=node_of(wish.now),
            taken_from=() if how.also else others,
            also_on=others if how.also else (),
        )
        pins.append(pin)
        warnings += _about_labels(pin, before, nodes)
        warnings += _about_pod(pin, wish.now, how.kubectl)
        warnings += _about_node(nodes[wish.node], how)
    return Plan(tuple(pins), changes, tuple(dict.fromkeys(warnings)))


def carriers(label: str, nodes: Mapping[str, Node]) -> dict[str, str]:
    """The nodes that have the label, by name, with its value."""
    return {
        name: node.metadata.labels[label]
        for name, node in sorted(nodes.items())
        if label in node.metadata.labels
    }


def node_of(pod: Pod | None) -> str:
    """Where the pod runs; nowhere if it has ended."""
    return "" if pod is None or pod.terminal else pod.spec.node_name


def in_order(name: str) -> tuple[str, int, str]:
    """Sorts web-10 behind web-9."""
    found = re.fullmatch(r"(.*-)([0-9]+)", name)
    return (found[1], int(found[2]), name) if found else (name, -1, name)


def _no_node(name: str, nodes: Mapping[str, Node]) -> str:
    close = get_close_matches(name, list(nodes), n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else "kubectl get nodes shows those there are"
    return f"there is no node {name}: {hint}"


def _about_labels(pin: Pinned, before: Mapping[str, str], nodes: Mapping[str, Node]) -> Iterator[str]:
    name = f"{pin.namespace}/{pin.pod}"
    if before.get(pin.node) == FORCE and not pin.force:
        yield f"{name} was pinned to {pin.node} by force, and is no longer: --force keeps that"
    forced = [other for other in pin.also_on if before[other] == FORCE]
    if forced and not pin.force:
        yield f"{name} goes to {', '.join(forced)} and not to {pin.node}: labels of value force go first"
    if pin.force and len(forced) < len(pin.also_on):
        rest = [other for other in pin.also_on if other not in forced]
        yield f"{name} goes no more to {', '.join(rest)}: labels of value force go first"
    older = legacy_key(pin.scheduler, pin.pod)
    elsewhere = [other for other in carriers(older, nodes) if other != pin.node]
    if elsewhere and len(readings(older)) == 1:
        yield f"{older} on {', '.join(elsewhere)} does not count for {name} beside this label"


def _about_pod(pin: Pinned, pod: Pod | None, kubectl: str) -> Iterator[str]:
    if pod is None:
        return
    name, controller = f"{pin.namespace}/{pin.pod}", pod.metadata.controller
    own = pod.spec.scheduler_name
    if own != pin.scheduler:
        # Told once for all pods of a StatefulSet.
        made = f"pods of {controller.kind} {controller.name} have" if controller else f"{name} has"
        yield (
            f"{made} schedulerName {own}, and scheduler {pin.scheduler} does not look at such pods: "
            f"write schedulerName: {pin.scheduler} where they are made"
        )
    if controller is not None and controller.kind in _NAMES_ANEW:
        yield (
            f"{name} does not come back under this name, since a {controller.kind} makes it: "
            "pin the pods of a StatefulSet"
        )
    elif pin.runs_on in ("", pin.node) or pod.metadata.deletion_timestamp is not None:
        return
    elif controller is None:
        yield f"{name} runs on {pin.runs_on}, and nothing brings it back: create it again for {pin.node}"
    else:
        yield (
            f"{name} runs on {pin.runs_on} until it is deleted and comes back on {pin.node}: "
            f"{kubectl} delete pod {pin.pod} -n {pin.namespace}"
        )


def _about_node(node: Node, how: How) -> Iterator[str]:
    name = node.metadata.name
    if node.spec.unschedulable:
        waits = f"a pod waits until {how.kubectl} uncordon {name}, unless --force sends it there"
        yield f"node {name} is cordoned: {'a pod is sent there all the same' if how.force else waits}"
    if not node.ready:
        waits = "a pod waits until it is, unless --force sends it there"
        yield f"node {name} is not ready: {'a pod is sent there all the same' if how.force else waits}"
