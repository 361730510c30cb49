"""A calm node and a full node, a pod that requests half a core, and a file with agents of all kinds."""

from longshore.agents.safe import REASON_RISK
from longshore.testing import NodeBuilder, node, pod

RISK = REASON_RISK.format(utilization=90, resource="cpu", percentile=30)
FILTER, PRIORITIES = "predicates/safe-overload", "priorities/safe-overload"
WEB = pod("web").requests(cpu="500m")


def with_free(name: str, mean: int, std: int = 400) -> NodeBuilder:
    """Return a node of four cores."""
    said = {"mean-free-cpu": str(mean), "std-free-cpu": str(std)}
    return node(name).allocatable(cpu="4").annotations(**said)


CALM, FULL = with_free("calm", 2000), with_free("full", 1000)

AGENTS = '''
from longshore.cluster import CPU
from longshore.framework import Rejection, Scope, Status

class Fails:
    name, verb = "Fails", "fails"

    def filter(self, state, pod, nodes):
        raise RuntimeError("boom")

    def score(self, state, pod, nodes):
        raise RuntimeError("boom")

class Mild:
    """Evicting pods would help."""
    name, verb, scope = "Mild", "mild", Scope.PODS

    def filter(self, state, pod, nodes):
        yield Rejection("node(s) were too hot", nodes.allocatable[CPU] < 3000)

class Counts:
    """Looks at the nodes together: how many there are."""
    name, verb = "Counts", "counts"

    def score(self, state, pod, nodes):
        return nodes.allocatable[CPU] * 0 + len(nodes)

class Plain:
    name, verb = "Plain", "plain"

    def filter_node(self, state, pod, node):
        return "not this one" if node.name == "full" else None

    def score_node(self, state, pod, node):
        return 100 if node.name == "calm" else 44

class OnlyCalm:
    name, verb = "OnlyCalm", "only-calm"

    def pre_filter(self, state, pod, cluster):
        return ["calm"] if "keep" in pod.labels else Status.unresolvable("the pod has no label keep")

    def filter(self, state, pod, nodes):
        return ()
'''
