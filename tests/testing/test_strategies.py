"""The strategies generate what they promise, and the builders do not need them."""

import subprocess
import sys
from collections.abc import Callable
from typing import TypeVar

from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from longshore.cluster import PodInfo
from longshore.cluster.resources import allocatable_amounts
from longshore.testing import NodeBuilder, PodBuilder
from longshore.testing.strategies import choosy_pods, nodes, pods, varied_nodes

T = TypeVar("T")


def exists(strategy: st.SearchStrategy[T], condition: Callable[[T], bool]) -> bool:
    """Whether the strategy generates such an example. It is not minimized, which could take minutes."""
    find(strategy, condition, settings=settings(phases=[Phase.generate]))
    return True


@given(pods(), nodes())
def test_every_quantity_is_valid(pod: PodBuilder, node: NodeBuilder) -> None:
    assert PodInfo.of(pod).problem == ""
    assert allocatable_amounts(node.status.allocatable).keys() == node.status.allocatable.keys()


def test_pods_come_in_all_shapes() -> None:
    assert exists(pods(), lambda pod: len(pod.spec.containers) > 2)
    assert exists(pods(), lambda pod: any(c.restart_policy == "Always" for c in pod.spec.init_containers))
    assert exists(pods(), lambda pod: pod.spec.resources is not None and "cpu" in pod.spec.resources.requests)


def test_choosy_pods_have_constraints_and_varied_nodes_differ() -> None:
    assert exists(choosy_pods(), lambda pod: bool(pod.spec.topology_spread_constraints))
    assert exists(choosy_pods(), lambda pod: bool(pod.spec.affinity and pod.spec.affinity.pod_anti_affinity))
    assert exists(varied_nodes(), lambda node: node.spec.unschedulable and bool(node.spec.taints))


def test_builders_do_not_import_hypothesis() -> None:
    code = "import sys, longshore.testing; sys.exit('hypothesis' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
