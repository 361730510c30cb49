"""The control plane that a contest runs on: an API server with etcd, and nodes without kubelets."""

from collections.abc import Iterator
from contextlib import contextmanager

from bench.rounds import note
from bench.stage import NAMESPACE
from bench.workloads import NODE, ZONE

from longshore.dev import ControlPlane


@contextmanager
def cluster(
    nodes: int, *, zones: int = 0, scheduler: bool = False
) -> Iterator[tuple[ControlPlane, dict[str, str]]]:
    """Start a control plane with that many nodes, spread over the zones, and the namespace of the pods.

    Yields the control plane, and the names of the nodes with their zones. With `scheduler`, kube-scheduler is
    part of it: it is stopped until its first turn.
    """
    with ControlPlane.start(nodes=0, scheduler=scheduler, kwok=False, controller_manager=False) as plane:
        note(f"creating {nodes} nodes on {plane.server}")
        names = _add_nodes(plane, nodes, zones)
        if plane.scheduler is not None:
            plane.scheduler.kill()
        plane.create_namespace(NAMESPACE)
        yield plane, names


def _add_nodes(plane: ControlPlane, count: int, zones: int) -> dict[str, str]:
    if not zones:
        return dict.fromkeys(
            plane.add_nodes(count, cpu=NODE["cpu"], memory=NODE["memory"], pods=NODE["pods"]), ""
        )
    names: dict[str, str] = {}
    for number in range(zones):
        zone = f"zone-{number}"
        size = count // zones + (number < count % zones)
        names |= dict.fromkeys(plane.add_nodes(size, **NODE, labels={ZONE: zone}), zone)
    return names
