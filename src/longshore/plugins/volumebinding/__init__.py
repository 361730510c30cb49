"""VolumeBinding: finds or provisions volumes for the claims of a pod, and binds them before the pod."""

from longshore.plugins.volumebinding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
