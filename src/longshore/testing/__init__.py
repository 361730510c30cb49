"""Pods and nodes for tests, written as a sentence:

    pod("web").requests(cpu="500m", memory="1Gi").labels(app="web")
    node("n1").allocatable(cpu="4", memory="8Gi", pods="110")

What comes back is a `Pod` or a `Node`, at every step. `longshore.testing.strategies` has Hypothesis
strategies for both; Hypothesis itself is needed only there.
"""

from longshore.testing.builders import NodeBuilder, PodBuilder, node, pod

__all__ = ["NodeBuilder", "PodBuilder", "node", "pod"]
