"""TaintToleration: a node rejects, or prefers not to run, pods that do not tolerate its taints."""

from longshore.api import Node, Pod, Taint
from longshore.cluster import Nodes, PodInfo
from longshore.cluster.arrays import Ints
from longshore.framework import Action, CycleState, Rejection, Resource, Scope, WakeOn
from longshore.framework.normalize import by_largest

NAME = "TaintToleration"
REASON = "node(s) had untolerated taint(s)"

_KEEP_AWAY = frozenset({"NoSchedule", "NoExecute"})


class TaintToleration:
    """Filter: the pod tolerates the taints of the node. Score: fewer untolerated PreferNoSchedule taints."""

    name = NAME
    scope = Scope.NODE

    def __init__(self) -> None:
        self.wakes_on = (
            WakeOn(
                Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, _node_became_tolerable, by_shape=True
            ),
            WakeOn(Resource.POD, Action.UPDATE_POD_TOLERATION, _own_change, by_shape=True),
        )

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> list[Rejection]:
        if not nodes.cluster.taints:
            return []
        untolerated = nodes.cluster.taints.count(lambda taints: not tolerates(pod.pod, taints), nodes.rows)
        return [Rejection(REASON, untolerated > 0, unresolvable=True)]

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Ints | int:
        if not nodes.cluster.taints:
            return 0
        tolerations = pod.pod.spec.tolerations

        def untolerated_preferences(taints: tuple[Taint, ...]) -> int:
            return sum(
                taint.effect == "PreferNoSchedule" and not any(t.tolerates(taint) for t in tolerations)
                for taint in taints
            )

        return nodes.cluster.taints.count(untolerated_preferences, nodes.rows)

    def normalize(self, state: CycleState, pod: PodInfo, scores: Ints, nodes: Nodes) -> Ints:
        return by_largest(scores, reverse=True)


def tolerates(pod: Pod, taints: tuple[Taint, ...]) -> bool:
    """Whether the pod tolerates all taints that forbid scheduling."""
    tolerations = pod.spec.tolerations
    return all(
        any(toleration.tolerates(taint) for toleration in tolerations)
        for taint in taints
        if taint.effect in _KEEP_AWAY
    )


def _node_became_tolerable(pod: Pod, old: Node | None, new: Node) -> bool:
    return tolerates(pod, new.spec.taints) and (old is None or not tolerates(pod, old.spec.taints))


def _own_change(pod: Pod, old: Pod | None, new: Pod) -> bool:
    return new.metadata.uid == pod.metadata.uid
