"""What a planner is asked, and where it is found.

A planner is any gRPC server behind a labeled Service that says for each pod of a set on which node it shall
run. The port and the domain of the cluster are part of the contract: neither is read from the Service.
"""

import msgspec

PLANNER_PORT = 7309


class PlanRequest(msgspec.Struct, frozen=True, gc=False):
    """Plan this set. `eligible_nodes` passed the filters for `scheduled_pod`, and for no other pod."""

    namespace: str
    pod_set: str
    scheduled_pod: str
    eligible_nodes: tuple[str, ...] = ()


def address_of(service_name: str, service_namespace: str) -> str:
    """Where the planner behind this Service answers."""
    return f"{service_name}.{service_namespace}.svc.cluster.local:{PLANNER_PORT}"
