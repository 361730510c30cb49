"""The pinned pods: the pins in the labels of nodes, compared with where the pods are.

Anyone may have written a label. A label that can be read in two ways is listed twice, and one that cannot be
read is a warning.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from longshore.api import Node, Pod
from longshore.ask.pin_plan import in_order, node_of
from longshore.kube.caller import list_objects
from longshore.kube.client import Client
from longshore.kube.resources import NODES, PODS
from longshore.pin.labels import FORCE, PREFIX, Pin, pin_key, readings

# The prefix of a label that looks like a pin but names no scheduler.
_BARE_PREFIX = PREFIX.rstrip(".") + "/"


class PinnedNode(msgspec.Struct, frozen=True):
    """A node that has the label of a pin."""

    name: str
    force: bool


class ListedPin(msgspec.Struct, frozen=True, rename="camel"):
    """A label and a pod that it pins."""

    scheduler: str
    # None for a label of the older form, which has no namespace, while no such pod exists.
    namespace: str | None
    pod: str
    label: str
    older: bool
    nodes: tuple[PinnedNode, ...]
    # False for a label of the older form if a namespaced one exists.
    counts: bool
    exists: bool
    # The node that the pod runs on now, or an empty string.
    runs_on: str
    # Whether the pod runs on a node with the label; None if it does not run or the label does not count.
    agrees: bool | None
    notes: tuple[str, ...]


class PinList(msgspec.Struct, frozen=True):
    pins: tuple[ListedPin, ...]
    warnings: tuple[str, ...]


async def list_pins(client: Client, *, namespace: str = "", scheduler: str | None = None) -> PinList:
    """Return the pins, of all namespaces and schedulers unless one is given. Raises UserError."""
    labels = labels_of((await list_objects(client, NODES)).values())
    warnings = tuple(
        f"{label} on {', '.join(carriers)} pins nothing, because it does not name a scheduler"
        for label, carriers in labels.items()
        if label.startswith(_BARE_PREFIX)
    )
    if not any(map(readings, labels)):
        return PinList((), warnings)
    pods = await list_objects(client, PODS, namespace=namespace)
    return PinList(listed_pins(labels, pods.values(), namespace=namespace, scheduler=scheduler), warnings)


def labels_of(nodes: Iterable[Node]) -> dict[str, dict[str, str]]:
    """Return the labels that are pins or look like pins. For each, return its value by node."""
    found: dict[str, dict[str, str]] = {}
    for node in sorted(nodes, key=lambda node: node.metadata.name):
        for label, value in node.metadata.labels.items():
            if label.startswith((PREFIX, _BARE_PREFIX)):
                found.setdefault(label, {})[node.metadata.name] = value
    return found


def listed_pins(
    labels: Mapping[str, Mapping[str, str]],
    pods: Iterable[Pod],
    *,
    namespace: str = "",
    scheduler: str | None = None,
) -> tuple[ListedPin, ...]:
    """Return the pins in these labels; `pods` are the pods of the namespace, or of all namespaces."""
    by_name: dict[str, list[Pod]] = {}
    for pod in pods:
        by_name.setdefault(pod.metadata.name, []).append(pod)
    found = [
        pin
        for label in labels
        for pin in _of_label(label, labels, by_name, namespace)
        if scheduler in (None, pin.scheduler)
    ]
    # A label that can be read in both forms most likely has the namespaced form, unless a scheduler is given.
    likely = [pin for pin in found if not _is_unlikely(pin) or scheduler is not None]
    return tuple(sorted(likely, key=lambda e: (e.scheduler, e.namespace or "", in_order(e.pod), e.older)))


def _is_unlikely(pin: ListedPin) -> bool:
    return pin.older and not pin.exists and len(readings(pin.label)) > 1


def _of_label(
    label: str, labels: Mapping[str, Mapping[str, str]], by_name: Mapping[str, list[Pod]], namespace: str
) -> Iterator[ListedPin]:
    carriers = labels[label]
    for pin in readings(label):
        same_name = by_name.get(pin.pod, [])
        if not pin.older:
            if namespace in ("", pin.namespace):
                own = next((pod for pod in same_name if pod.metadata.namespace == pin.namespace), None)
                yield _listed(label, pin, own, carriers)
            continue
        pinned = [pod for pod in same_name if pod.spec.scheduler_name == pin.scheduler]
        for pod in pinned:
            newer = pin_key(pin.scheduler, pod.metadata.namespace, pin.pod) in labels
            yield _listed(label, pin, pod, carriers, counts=not newer)
        if not pinned:
            yield _listed(label, pin, None, carriers)


def _listed(
    label: str, pin: Pin, pod: Pod | None, carriers: Mapping[str, str], *, counts: bool = True
) -> ListedPin:
    forced = [node for node, value in carriers.items() if value == FORCE]
    runs_on = node_of(pod)
    agrees = runs_on in (forced or carriers) if runs_on and counts else None
    return ListedPin(
        scheduler=pin.scheduler,
        namespace=pod.metadata.namespace if pod else pin.namespace or None,
        pod=pin.pod,
        label=label,
        older=pin.older,
        nodes=tuple(PinnedNode(node, node in forced) for node in carriers),
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
        yield "ignored, because the namespaced label takes precedence"
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
