"""InterPodAffinity: pods that require, prefer or avoid the topology domains of other pods."""

from longshore.plugins.interpodaffinity.plugin import InterPodAffinity

__all__ = ["InterPodAffinity"]
