"""VolumeBinding: finds or provisions volumes for the claims of a pod, and binds them before the pod.

`plugin` has the extension points, `claims` sorts the pod's claims, `matching` finds existing volumes,
`provisioning` finds nodes for new ones, `writes` binds them, and `assumed` keeps what is not written yet.
"""

from longshore.plugins.volumebinding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
