"""What is pinned: the labels of all nodes, read back, beside where the pods are.

A label may have been written by anyone. One that can be read in two ways is shown in both, and one that
cannot be read is named.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from longshore.api import Node, Pod
from longshore.ask.pin_plan import in_order, node_of
from longshore.kube.caller import list_objects
from longshore.kube.client import Client
from longshore.kube.resources import NODES, PODS
from longshore.pin.labels import FORCE, PREFIX, Pin, pin_key, readings

# What begins like a pin and names no scheduler.
_BARE_PREFIX = PREFIX.rstrip(".") + "/"


class Labeled(msgspec.Struct, frozen=True):
    name: str
    force: bool


class Entry(msgspec.Struct, frozen=True, rename="camel"):
    """One label, and one pod that it is about."""

    scheduler: str
    # None in the older form, as long as there is no such pod: it may come in any namespace.
    namespace: str | None
    pod: str
    label: str
    older: bool
    nodes: tuple[Labeled, ...]
    # False for one of the older form beside a namespaced one.
    counts: bool
    exists: bool
    # Where the pod is now; empty if nowhere.
    runs_on: str
    # Whether that is where the label sends it; None if there is nothing to compare.
    agrees: bool | None
    notes: tuple[str, ...]


class Overview(msgspec.Struct, frozen=True):
    pins: tuple[Entry, ...]
    warnings: tuple[str, ...]


async def look(client: Client, *, namespace: str = "", scheduler: str | None = None) -> Overview:
    """Of all namespaces and schedulers, unless one is named. Raises UserError."""
    labels = labels_of((await list_objects(client, NODES)).values())
    warnings = tuple(
        f"{label} on {', '.join(carriers)} pins nothing, since it names no scheduler"
        for label, carriers in labels.items()
        if label.startswith(_BARE_PREFIX)
    )
    if not any(map(readings, labels)):
        return Overview((), warnings)
    pods = await list_objects(client, PODS, namespace=namespace)
    return Overview(entries(labels, pods.values(), namespace=namespace, scheduler=scheduler), warnings)


def labels_of(nodes: Iterable[Node]) -> dict[str, dict[str, str]]:
    """The labels that pin, or seem to: for each the nodes that have it, with its value."""
    found: dict[str, dict[str, str]] = {}
    for node in sorted(nodes, key=lambda node: node.metadata.name):
        for label, value in node.metadata.labels.items():
            if label.startswith((PREFIX, _BARE_PREFIX)):
                found.setdefault(label, {})[node.metadata.name] = value
    return found


def entries(
    labels: Mapping[str, Mapping[str, str]],
    pods: Iterable[Pod],
    *,
    namespace: str = "",
    scheduler: str | None = None,
) -> tuple[Entry, ...]:
    """`pods` are those of the namespace, or of all."""
    by_name: dict[str, list[Pod]] = {}
    for pod in pods:
        by_name.setdefault(pod.metadata.name, []).append(pod)
    found = [
        entry
        for label in labels
        for entry in _of_label(label, labels, by_name, namespace)
        if scheduler in (None, entry.scheduler)
    ]
    # The older reading of a label that has a namespaced one is mere theory, unless there is such a scheduler.
    proven = [entry for entry in found if not _is_theory(entry) or scheduler is not None]
    return tuple(sorted(proven, key=lambda e: (e.scheduler, e.namespace or "", in_order(e.pod), e.older)))


def _is_theory(entry: Entry) -> bool:
    return entry.older and not entry.exists and len(readings(entry.label)) > 1


def _of_label(
    label: str, labels: Mapping[str, Mapping[str, str]], by_name: Mapping[str, list[Pod]], namespace: str
) -> Iterator[Entry]:
    carriers = labels[label]
    for pin in readings(label):
        same_name = by_name.get(pin.pod, [])
        if not pin.older:
            if namespace in ("", pin.namespace):
                own = next((pod for pod in same_name if pod.metadata.namespace == pin.namespace), None)
                yield _entry(label, pin, own, carriers)
            continue
        meant = [pod for pod in same_name if pod.spec.scheduler_name == pin.scheduler]
        for pod in meant:
            newer = pin_key(pin.scheduler, pod.metadata.namespace, pin.pod) in labels
            yield _entry(label, pin, pod, carriers, counts=not newer)
        if not meant:
            yield _entry(label, pin, None, carriers)


def _entry(
    label: str, pin: Pin, pod: Pod | None, carriers: Mapping[str, str], *, counts: bool = True
) -> Entry:
    forced = [node for node, value in carriers.items() if value == FORCE]
    runs_on = node_of(pod)
    agrees = runs_on in (forced or carriers) if runs_on and counts else None
    return Entry(
        scheduler=pin.scheduler,
        namespace=pod.metadata.namespace if pod else pin.namespace or None,
        pod=pin.pod,
        label=label,
        older=pin.older,
        nodes=tuple(Labeled(node, node in forced) for node in carriers),
        counts=counts,
        exists=pod is not None,
        runs_on=runs_on,
        agrees=agrees,
        notes=tuple(_notes(label, pin, pod, counts=counts)),
    )


def _notes(label: str, pin: Pin, pod: Pod | None, *, counts: bool) -> Iterator[str]:
    if pin.older:
        yield "older form"
    if not counts:
        yield "does not count beside the namespaced label"
    first, *_ = readings(label)
    if pin != first:
        yield f"also read as {first.namespace}/{first.pod} of scheduler {first.scheduler}"
    if pod is None:
        yield "no such pod"
    elif pod.terminal:
        yield f"the pod has ended ({pod.status.phase})"
    elif not pod.spec.node_name:
        yield "the pod is pending"
    if pod is not None and pod.spec.scheduler_name != pin.scheduler:
        yield f"the pod has schedulerName {pod.spec.scheduler_name}"
