"""The only package that talks to the API server.

    async with Client(load()) as client:
        nodes = Reflector(client, NODES, on_change=print)
        await nodes.run()

A `Reflector` mirrors a resource and reports its changes, a `Writer` makes sure that each write happens once,
and a `LeaderElector` holds a lease. Objects are the small structs of `longshore.api`, decoded directly from
the bytes.
"""

from longshore.kube.client import Client
from longshore.kube.config import Connection, in_cluster, load
from longshore.kube.errors import ApiError, ConnectionFailed
from longshore.kube.lease import LeaderElector
from longshore.kube.pool import Pool
from longshore.kube.recorder import EventRecorder
from longshore.kube.reflector import Reflector
from longshore.kube.resources import NODES, PODS, Resource
from longshore.kube.writer import Patch, Writer

__all__ = [
    "NODES",
    "PODS",
    "ApiError",
    "Client",
    "Connection",
    "ConnectionFailed",
    "EventRecorder",
    "LeaderElector",
    "Patch",
    "Pool",
    "Reflector",
    "Resource",
    "Writer",
    "in_cluster",
    "load",
]
