"""PodTopologySpread: keeps the pods of a workload evenly distributed over zones, nodes or other domains."""

from longshore.plugins.podtopologyspread.plugin import PodTopologySpread

__all__ = ["PodTopologySpread"]
