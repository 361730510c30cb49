"""InterPodAffinity: pods that require, prefer, or avoid the topology domains of other pods.

`plugin` has the extension points, `terms` the affinity terms of the pod and sums by domain, `scoring` the
weights of preferences, and `hints` the events after which a rejected pod is tried again.
"""

from longshore.plugins.interpodaffinity.plugin import InterPodAffinity

__all__ = ["InterPodAffinity"]
