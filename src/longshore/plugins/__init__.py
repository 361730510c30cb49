"""kube-scheduler's plugins, one file each, under the same names and with the same reasons."""

from longshore.plugins.noderesources_fit import NodeResourcesFit

__all__ = ["NodeResourcesFit"]
