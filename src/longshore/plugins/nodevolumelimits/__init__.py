"""NodeVolumeLimits: a node can attach only a limited number of volumes of each CSI driver.

`plugin` compares a pod's volumes with the limits, `volumes` finds the volumes of a pod, and `attached` counts
the volumes that each node already has.
"""

from longshore.plugins.nodevolumelimits.plugin import NodeVolumeLimits

__all__ = ["NodeVolumeLimits"]
