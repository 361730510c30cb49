"""NodeDeclaredFeatures: a pod that needs certain features runs only on nodes that declare them."""

import numpy as np

from longshore.api import Node, Pod
from longshore.cluster import Nodes, PodInfo
from longshore.framework import Action, CycleState, Rejection, Resource, Scope, WakeOn

NAME = "NodeDeclaredFeatures"
REASON = "node(s) didn't match Pod's required features"

HOST_NETWORK_IN_USER_NAMESPACE = "UserNamespacesHostNetworkSupport"
RESTART_ALL_CONTAINERS = "RestartAllContainersOnContainerExits"


class NodeDeclaredFeatures:
    """Filter: the node declares all features that the pod needs. Very few pods need any."""

    name = NAME
    scope = Scope.NODE

    def __init__(self) -> None:
        self.wakes_on = (
            WakeOn(
                Resource.NODE,
                Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE,
                _features_changed,
                by_shape=True,
            ),
            WakeOn(Resource.POD, Action.UPDATE, _needs_changed, by_shape=True),
        )

    def concerns(self, pod: PodInfo) -> bool:
        return bool(needed_features(pod.pod))

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> list[Rejection]:
        needed = needed_features(pod.pod)
        cluster = nodes.cluster
        # Node by node: such pods are too rare to keep columns for them.
        lacking = [
            (node := cluster.node(row)) is not None and not needed.issubset(node.status.declared_features)
            for row in nodes.numbers.tolist()
        ]
        return [Rejection(REASON, np.array(lacking, np.bool_), unresolvable=True)]


def needed_features(pod: Pod) -> frozenset[str]:
    """Return the features that kube-scheduler 1.36 infers from the spec of a pod."""
    spec = pod.spec
    needed = set()
    if spec.host_network and spec.host_users is False:
        needed.add(HOST_NETWORK_IN_USER_NAMESPACE)
    if any(
        rule.action == "RestartAllContainers"
        for container in (*spec.containers, *spec.init_containers)
        for rule in container.restart_policy_rules
    ):
        needed.add(RESTART_ALL_CONTAINERS)
    return frozenset(needed)


def _features_changed(pod: Pod, old: Node | None, new: Node) -> bool:
    return old is None or old.status.declared_features != new.status.declared_features


def _needs_changed(pod: Pod, old: Pod | None, new: Pod) -> bool:
    itself = new.metadata.uid == pod.metadata.uid
    return itself and (old is None or needed_features(old) != needed_features(new))
