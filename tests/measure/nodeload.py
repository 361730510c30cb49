"""Metrics as node_exporter exposes them, for a node with an exactly known load: samples every 15 seconds."""

import secrets
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from longshore.api import Node, NodeAddress
from longshore.testing import node

GIB = 2.0**30
TOTAL = 16 * GIB
EVERY = 15.0
HISTORY = 20 * 60.0
# Age of the processor's counter in seconds. A deviation of the counter itself would be large.
UPTIME = 1e6

# The cores or bytes in use, given a time in seconds before the end.
Load = Callable[[float], float]


def node_name(word: str) -> str:
    """Return a name that no other test uses."""
    return f"{word}-{secrets.token_hex(3)}"


def addressed(name: str, *addresses: str) -> Node:
    """Return a node with these internal addresses, and its name as another address."""
    made = node(name)
    kinds = [("Hostname", name), *(("InternalIP", address) for address in addresses)]
    found = tuple(NodeAddress(type=kind, address=address) for kind, address in kinds)
    return replace(made, status=replace(made.status, addresses=found))


def steady(amount: float) -> Load:
    return lambda _before_end: amount


def history(
    instance: str,
    *,
    until: float,
    cores: Load | None = None,
    memory: Load | None = None,
    labels: str = "",
) -> str:
    """Return the metrics of the 20 minutes before a time. Two processors share the load."""
    count = int(HISTORY / EVERY)
    times = [until - EVERY * (count - step) for step in range(count + 1)]
    text = ""
    where = f'instance="{instance}"{labels}'
    if cores is not None:
        for processor in (0, 1):
            text += _counter(times, until, cores, f'{where},cpu="{processor}"')
    if memory is not None:
        used = [memory(until - time) for time in times]
        text += _series("node_memory_MemTotal_bytes", where, times, [TOTAL] * len(times))
        text += _series("node_memory_MemAvailable_bytes", where, times, [TOTAL - each for each in used])
    return text


def _counter(times: Sequence[float], until: float, cores: Load, where: str) -> str:
    """`user` counts half of the used time, and `idle` the rest, of which some waits for disks."""
    user, idle, iowait = [UPTIME], [UPTIME], [UPTIME]
    for time in times[:-1]:
        used = cores(until - time) / 2 * EVERY
        user.append(user[-1] + used)
        iowait.append(iowait[-1] + 0.3 * EVERY)
        idle.append(idle[-1] + max(0.0, 0.7 * EVERY - used))
    return "".join(
        _series("node_cpu_seconds_total", f'{where},mode="{mode}"', times, values)
        for mode, values in (("user", user), ("idle", idle), ("iowait", iowait))
    )


def _series(name: str, labels: str, times: Sequence[float], values: Sequence[float]) -> str:
    return "".join(
        f"{name}{{{labels}}} {value!r} {round(time * 1000)}\n"
        for time, value in zip(times, values, strict=True)
    )
