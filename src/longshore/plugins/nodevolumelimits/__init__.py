"""NodeVolumeLimits: how many volumes of each CSI driver a node can attach."""

from longshore.plugins.nodevolumelimits.plugin import NodeVolumeLimits

__all__ = ["NodeVolumeLimits"]
