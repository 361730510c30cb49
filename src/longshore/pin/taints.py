"""PinnedTaints: how taints apply to pinned pods.

A pod that is pinned to a node with a NoSchedule taint, such as a control-plane node, is meant to run there.
So these taints do not count, unless they mean that the node cannot run pods. NoExecute taints always count,
because they would evict the pod again.
"""

from collections.abc import Callable

from longshore.api import Node, Pod, Taint
from longshore.cluster import Nodes, PodInfo
from longshore.cluster.arrays import Bools
from longshore.framework import Action, CycleState, Rejection, Resource, Scope, WakeOn
from longshore.plugins.tainttoleration import REASON, tolerates

NAME = "PinnedTaints"
REASON_NOT_READY = "node(s) were not ready"

_NOT_READY = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
_ALWAYS_COUNT = _NOT_READY | {"node.kubernetes.io/unschedulable"}


class PinnedTaints:
    """Filter: the pod tolerates the taints that count. With `respect`, all of them count."""

    name = NAME
    scope = Scope.NODE

    def __init__(self, *, respect: bool = False) -> None:
        self._respect = respect
        self.wakes_on = (
            WakeOn(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, self._became_tolerable),
            WakeOn(Resource.POD, Action.UPDATE_POD_TOLERATION, _own_change),
        )

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> list[Rejection]:
        def where(counts: Callable[[Taint], bool]) -> Bools:
            def forbids(taints: tuple[Taint, ...]) -> bool:
                return not tolerates(pod.pod, tuple(taint for taint in taints if counts(taint)))

            return nodes.cluster.taints.count(forbids, nodes.rows) > 0

        return [
            Rejection(REASON_NOT_READY, where(lambda taint: taint.key in _NOT_READY), unresolvable=True),
            Rejection(
                REASON,
                where(lambda taint: self._counts(taint) and taint.key not in _NOT_READY),
                unresolvable=True,
            ),
        ]

    def _counts(self, taint: Taint) -> bool:
        return self._respect or taint.effect == "NoExecute" or taint.key in _ALWAYS_COUNT

    def _became_tolerable(self, pod: Pod, old: Node | None, new: Node) -> bool:
        def tolerated(node: Node) -> bool:
            return tolerates(pod, tuple(taint for taint in node.spec.taints if self._counts(taint)))

        return tolerated(new) and (old is None or not tolerated(old))


def _own_change(pod: Pod, old: Pod | None, new: Pod) -> bool:
    return new.metadata.uid == pod.metadata.uid
