"""Host ports: which are in use on each node, and where the ports of a pod would conflict with them.

Two ports conflict if number and protocol are equal, and the addresses are equal or one of them means all
addresses.
"""

from collections import Counter
from collections.abc import Iterable

import numpy as np

from longshore.api import Pod
from longshore.cluster.arrays import Bools

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - it means all addresses in a pod's ports

# Address, protocol and number.
HostPort = tuple[str, str, int]


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Return the host ports that the pod uses: those of its containers and its sidecars."""
    spec = pod.spec
    if not any(container.ports for container in (*spec.containers, *spec.init_containers)):
        return ()
    sidecars = (container for container in spec.init_containers if container.restart_policy == "Always")
    return tuple(
        (port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port)
        for container in (*spec.containers, *sidecars)
        for port in container.ports
        if port.host_port > 0
    )


def clash(wanted: Iterable[HostPort], used: Iterable[HostPort]) -> bool:
    taken = list(used)
    return any(
        protocol == other_protocol
        and number == other_number
        and (address == other or ANY_ADDRESS in (address, other))
        for address, protocol, number in wanted
        for other, other_protocol, other_number in taken
    )


class PortTable:
    """The ports in use, by protocol and number."""

    def __init__(self) -> None:
        self._users: dict[tuple[str, int], Counter[tuple[int, str]]] = {}

    def clashes(self, wanted: Iterable[HostPort], size: int) -> Bools:
        """Return a mask of `size` rows: true where at least one wanted port is in use."""
        found = np.zeros(size, np.bool_)
        for address, protocol, number in wanted:
            for row, other in self._users.get((protocol, number), ()):
                if address == other or ANY_ADDRESS in (address, other):
                    found[row] = True
        return found

    def add(self, ports: Iterable[HostPort], row: int) -> None:
        for address, protocol, number in ports:
            self._users.setdefault((protocol, number), Counter())[row, address] += 1

    def remove(self, ports: Iterable[HostPort], row: int) -> None:
        for address, protocol, number in ports:
            users = self._users[protocol, number]
            users[row, address] -= 1
            if not users[row, address]:
                del users[row, address]
            if not users:
                del self._users[protocol, number]
