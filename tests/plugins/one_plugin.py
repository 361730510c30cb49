"""Calls one plugin for a small cluster, in the order in which the engine calls it."""

from typing import Any

import numpy as np

from longshore.api import Node, Pod
from longshore.api.meta import ApiObject
from longshore.cluster import ClusterState, PodInfo
from longshore.framework import SKIP, Action, ClusterEvent, CycleState, Resource, Status


def cluster_of(*objects: ApiObject) -> ClusterState:
    cluster = ClusterState()
    for obj in objects:
        if isinstance(obj, Node):
            cluster.add_node(obj)
        elif isinstance(obj, Pod):
            cluster.add_pod(obj)
        else:
            cluster.put(type(obj), None, obj)
    return cluster


def concerned(plugin: Any, pod: Pod) -> bool:
    return not hasattr(plugin, "concerns") or plugin.concerns(PodInfo.of(pod))


def rejections(plugin: Any, pod: Pod, *objects: ApiObject) -> dict[str, Status]:
    """The status of each rejected node, by name; feasible nodes are absent."""
    cluster, info, state = cluster_of(*objects), PodInfo.of(pod), CycleState()
    if not concerned(plugin, pod):
        return {}
    if hasattr(plugin, "pre_filter"):
        answer = plugin.pre_filter(state, info, cluster)
        if answer is SKIP:
            return {}
        assert not isinstance(answer, Status), answer
    nodes = cluster.all_nodes()
    found: dict[str, tuple[list[str], bool]] = {}
    for rejection in plugin.filter(state, info, nodes):
        where = np.broadcast_to(rejection.where, len(nodes))
        unresolvable = np.broadcast_to(rejection.unresolvable, len(nodes))
        for row, name in enumerate(nodes.names):
            if where[row]:
                reasons, ever = found.get(name, ([], False))
                found[name] = ([*reasons, rejection.reason], ever or bool(unresolvable[row]))
    return {
        name: Status.unresolvable(*reasons) if unresolvable else Status.unschedulable(*reasons)
        for name, (reasons, unresolvable) in found.items()
    }


def scores(plugin: Any, pod: Pod, *objects: ApiObject) -> dict[str, int] | None:
    """The scores after normalization, by name; None if the plugin does not score such pods."""
    cluster, info, state = cluster_of(*objects), PodInfo.of(pod), CycleState()
    nodes = cluster.all_nodes()
    if not concerned(plugin, pod):
        return None
    if hasattr(plugin, "pre_score") and plugin.pre_score(state, info, nodes) is SKIP:
        return None
    given = np.broadcast_to(np.asarray(plugin.score(state, info, nodes)), len(nodes)).copy()
    if hasattr(plugin, "normalize"):
        given = plugin.normalize(state, info, given, nodes)
    return dict(zip(nodes.names, given.tolist(), strict=True))


def wakes(
    plugin: Any,
    pod: Pod,
    resource: Resource,
    action: Action,
    old: Node | Pod | None = None,
    new: Node | Pod | None = None,
) -> bool:
    """Whether the event makes a pod that this plugin rejected schedulable again."""
    event = ClusterEvent(resource, action, old, new)
    return any(
        wake.matches(event) and (wake.hint is None or wake.hint(pod, old, new)) for wake in plugin.wakes_on
    )
