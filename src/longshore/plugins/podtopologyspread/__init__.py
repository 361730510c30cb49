"""PodTopologySpread: keeps the pods of a workload evenly distributed over zones, nodes, or other domains.

`plugin` has the extension points, `constraints` resolves the constraints of a pod, `counts` counts the pods
in each domain for the filter, and `scoring` computes the scores.
"""

from longshore.plugins.podtopologyspread.plugin import PodTopologySpread

__all__ = ["PodTopologySpread"]
