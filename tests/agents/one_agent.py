"""Calls one agent for a small cluster whose nodes have annotations."""

import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from tests.plugins.one_plugin import cluster_of

from longshore.agents.annotations import read_load
from longshore.api import Pod
from longshore.api.meta import ApiObject
from longshore.cluster import ClusterState, PodInfo
from longshore.framework import CycleState

GOLDEN = Path(__file__).parent.parent / "data" / "extender-agents-golden.json"


@cache
def golden() -> Any:
    """The expected results of the agents, computed with 40 digits by another program."""
    return json.loads(GOLDEN.read_text())


def loaded(*objects: ApiObject) -> ClusterState:
    """A cluster whose load is read from the annotations."""
    cluster = cluster_of(*objects)
    read_load(cluster)
    return cluster


def made(kind: Any, cluster: ClusterState, **args: object) -> Any:
    return kind(args, handle=SimpleNamespace(cluster=cluster))


def scores(agent: Any, pod: Pod, cluster: ClusterState) -> dict[str, int]:
    nodes = cluster.all_nodes()
    found = np.broadcast_to(agent.score(CycleState(), PodInfo.of(pod), nodes), len(nodes))
    return dict(zip(nodes.names, found.tolist(), strict=True))


def refused(agent: Any, pod: Pod, cluster: ClusterState) -> dict[str, list[str]]:
    """The reasons by node; feasible nodes are absent."""
    nodes = cluster.all_nodes()
    found: dict[str, list[str]] = {}
    for rejection in agent.filter(CycleState(), PodInfo.of(pod), nodes):
        assert rejection.unresolvable is True
        for name, bad in zip(nodes.names, np.broadcast_to(rejection.where, len(nodes)), strict=True):
            if bad:
                found.setdefault(name, []).append(rejection.reason)
    return found
