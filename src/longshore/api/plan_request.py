"""The question to a planner, and the address at which a planner is found.

A planner is any gRPC server behind a labeled Service. For each pod of a set, it answers with the node that
the pod should run on. The port and the cluster domain are part of the contract: neither is read from the
Service.
"""

import msgspec

from longshore.api.pod_set import PLANNER_SERVICE_PORT


class PlanRequest(msgspec.Struct, frozen=True, gc=False):
    """A request to plan a set. `eligible_nodes` passed the filters for `scheduled_pod` only."""

    namespace: str
    pod_set: str
    scheduled_pod: str
    eligible_nodes: tuple[str, ...] = ()


def address_of(service_name: str, service_namespace: str) -> str:
    """Return the address of the planner behind this Service."""
    return f"{service_name}.{service_namespace}.svc.cluster.local:{PLANNER_SERVICE_PORT}"
