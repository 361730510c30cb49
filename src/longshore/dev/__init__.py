"""A real local control plane: API server, etcd, controller manager, and KWOK. Built once, started in seconds.

    from longshore.dev import ControlPlane

    with ControlPlane.start(nodes=3) as cluster:
        print(cluster.kubectl("get", "nodes"))

Everything ends with the block, and also when the process ends for any reason. In tests, use the fixtures of
`longshore.dev.fixtures`; on the command line, use `longshore dev`.
"""

from longshore.dev.control_plane import ControlPlane
from longshore.dev.kubectl import KubectlError

__all__ = ["ControlPlane", "KubectlError"]
