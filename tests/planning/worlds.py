"""A cluster for planning, and a snapshot of everything that it counts."""

from collections.abc import Mapping
from typing import Any

from tests.engine.stage import engine_of

from longshore.api import Change, Pod
from longshore.cluster import ClusterState, PodInfo
from longshore.engine import Engine
from longshore.planning import Plan, Problem, greedy
from longshore.testing import NodeBuilder, node


def room(name: str, cpu: str = "4", memory: str = "8Gi") -> NodeBuilder:
    return node(name).allocatable(cpu=cpu, memory=memory)


def three(cpu: str = "4") -> tuple[NodeBuilder, ...]:
    return tuple(room(name, cpu) for name in ("n1", "n2", "n3"))


def never_late() -> float:
    return 0.0


class World:
    """An engine with the default plugins, followed by those of the test, and with these objects."""

    def __init__(self, *objects: Any, plugins: tuple[Any, ...] = ()) -> None:
        self.engine: Engine = engine_of(*plugins, defaults=True)
        for each in objects:
            self.engine.receive(Change(None, each), now=0.0)

    @property
    def cluster(self) -> ClusterState:
        return self.engine.cluster

    def problem(self, *pods: Pod, **options: Any) -> Problem:
        return Problem(self.engine.chooser("longshore"), [PodInfo.of(pod) for pod in pods], **options)

    def plan(self, *pods: Pod, **options: Any) -> Plan:
        return greedy.plan(self.problem(*pods, **options), clock=never_late)

    def first_round(self, *pods: Pod, **options: Any) -> Plan:
        """The plan if there is no time for a second round."""
        return greedy.plan(self.problem(*pods, **options), clock=never_late, budget=0.0)


def by_name(plan: Plan) -> dict[str, str]:
    """The node of each pod, by the names of the pods."""
    return {each.pod.partition("/")[2]: each.node for each in plan.assignments}


def reasons(plan: Plan) -> dict[str, str]:
    return {each.pod.partition("/")[2]: each.reason for each in plan.left_out}


def infos(*pods: Pod) -> Mapping[str, PodInfo]:
    return {pod.metadata.uid: PodInfo.of(pod) for pod in pods}


def picture(cluster: ClusterState) -> dict[str, object]:
    """Everything that changes when pods come and go."""
    pod_counts = cluster.pod_counts
    terms = (pod_counts._affinity, pod_counts._anti_affinity, pod_counts._preferred)
    return {
        "requested": cluster.requested.tolist(),
        "nonzero": cluster.nonzero_requested.tolist(),
        "pods": {pod.key: (cluster.node_of(pod), cluster.is_assumed(pod)) for pod in cluster.pods()},
        "on nodes": [[info.pod.key for info in cluster.pods_on(row)] for row in range(len(cluster.known))],
        "ports": {port: dict(users) for port, users in cluster.ports._users.items()},
        "claims": dict(cluster._claim_users),
        "groups": {
            ns: {k: dict(g.rows) for k, g in groups.items()} for ns, groups in pod_counts._groups.items()
        },
        "terms": [{term: dict(group.rows) for term, group in each._groups.items()} for each in terms],
        "nominated": {
            name: {info.pod.metadata.uid for info in cluster.nominations.on(name)}
            for name in cluster.nominations.nodes()
        },
    }
