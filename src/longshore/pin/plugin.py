"""NodePin: a pod goes only to nodes with its pinning label.

The other filters decide whether such a node is feasible; they examine only these nodes. If several are
feasible, the last node of the pod is preferred.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec
import numpy as np

from longshore.api import Node, Pod
from longshore.cluster import ClusterState, Nodes, PodInfo
from longshore.cluster.arrays import Ints
from longshore.config.plugin_arguments import read_plugin_arguments
from longshore.framework import (
    MAX_SCORE,
    Action,
    Code,
    CycleState,
    Forced,
    Handle,
    Resource,
    Status,
    WakeOn,
)
from longshore.pin.index import PinIndex
from longshore.pin.labels import FORCE, legacy_key, pin_key, problem_with

NAME = "NodePin"
REASON_NOT_PINNED = "no node is labeled {key}"
REASON_NODE_GONE = "no node is labeled {key}: {node} was, but no longer exists"
REASON_NOT_A_LABEL = "the pod's name cannot be expressed as a label: {problem}"

# The most pods whose last node is remembered. Beyond the limit, the oldest entries are dropped.
_MOST_REMEMBERED = 100_000


class NodePinArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The arguments of the plugin in a configuration file."""

    # Whether labels of the older form, without a namespace, count if there is none of the newer form.
    legacy_labels: bool = False
    # What happens to a pod without a labeled node: it waits, or it is scheduled by the other plugins alone.
    unpinned: Literal["Wait", "Schedule"] = "Wait"


class NodePin:
    name = NAME

    def __init__(
        self, args: object = None, *, handle: Handle, on_legacy: Callable[[str, str], None] | None = None
    ) -> None:
        """`on_legacy` is called with the key and the node each time a label of the older form is used."""
        self._args = read_plugin_arguments(NodePinArgs, args, plugin=NAME)
        self._handle = handle
        self._on_legacy = on_legacy
        self._index: PinIndex | None = None
        self._last_nodes: OrderedDict[str, str] = OrderedDict()
        self.wakes_on: Sequence[WakeOn] = (
            WakeOn(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self._became_pinned),
        )
        handle.on_pod_change(self._remember, NAME)

    def pre_filter(
        self, state: CycleState, pod: PodInfo, cluster: ClusterState
    ) -> Status | list[str] | Forced | None:
        index = self._current(cluster)
        keys = self._keys(pod.pod)
        if keys and (problem := problem_with(keys[0])):
            return self._without_label(Status.unresolvable(REASON_NOT_A_LABEL.format(problem=problem)))
        for key in keys:
            pins = index.nodes(key)
            if not pins:
                continue
            if key != keys[0] and self._on_legacy is not None:
                self._on_legacy(key, min(pins))
            forced = [node for node, value in pins.items() if value == FORCE]
            if forced:
                last = self._last_nodes.get(pod.pod.key, "")
                return Forced(last if last in forced else min(forced))
            return list(pins)
        gone = next((node for key in keys if (node := index.gone(key))), "")
        reason = REASON_NODE_GONE if gone else REASON_NOT_PINNED
        return self._without_label(Status(Code.PENDING, (reason.format(key=keys[0], node=gone),)))

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Ints | int:
        last = self._last_nodes.get(pod.pod.key)
        row = None if last is None else nodes.cluster.row(last)
        return 0 if row is None else (nodes.numbers == row) * np.int64(MAX_SCORE)

    def _current(self, cluster: ClusterState) -> PinIndex:
        if self._index is None:
            self._index = PinIndex(cluster)
        self._index.refresh()
        return self._index

    def _keys(self, pod: Pod) -> tuple[str, ...]:
        """Return the keys that pin the pod. The first one that any node has counts."""
        scheduler, meta = pod.spec.scheduler_name, pod.metadata
        key = pin_key(scheduler, meta.namespace, meta.name)
        return (key, legacy_key(scheduler, meta.name)) if self._args.legacy_labels else (key,)

    def _without_label(self, status: Status) -> Status | None:
        return status if self._args.unpinned == "Wait" else None

    def _remember(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        if pod is None or not pod.spec.node_name:
            return
        self._last_nodes[pod.key] = pod.spec.node_name
        self._last_nodes.move_to_end(pod.key)
        if len(self._last_nodes) > _MOST_REMEMBERED:
            self._last_nodes.popitem(last=False)

    def _became_pinned(self, pod: Pod, old: Node | None, new: Node) -> bool:
        before = {} if old is None else old.metadata.labels
        return any(new.metadata.labels.get(key) != before.get(key) for key in self._keys(pod))
