"""A real local control plane: API server, etcd, controller manager and KWOK, built once, started in seconds.

    from longshore.dev import ControlPlane

    with ControlPlane.start(nodes=3) as cluster:
        print(cluster.kubectl("get", "nodes"))

Everything ends with the block, and with the process however it ends. In tests use the fixtures of
`longshore.dev.fixtures`; on the command line, `longshore dev`.
"""

from longshore.dev.control_plane import ControlPlane
from longshore.dev.kubectl import KubectlError

__all__ = ["ControlPlane", "KubectlError"]
