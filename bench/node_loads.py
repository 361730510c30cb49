"""Loads of nodes for a benchmark, as annotations.

They have no time of measurement, so they do not become too old while a benchmark runs.
"""

import asyncio
from collections.abc import Sequence

import msgspec
from bench.workloads import NODE

from longshore.kube.client import Client
from longshore.kube.resources import NODES
from longshore.kube.writer import Patch

_CPU = int(NODE["cpu"]) * 1000
_MEMORY = int(NODE["memory"].removesuffix("Gi")) << 30
_AT_ONCE = 48


def _free(number: int) -> dict[str, str]:
    """Return loads that every filter accepts: 40 to 90 % of the node are free, with a deviation of 5 %."""
    share = 0.4 + 0.5 * (number * 7919 % 997) / 996
    return {
        "mean-free-cpu": f"{_CPU * share:.0f}",
        "std-free-cpu": f"{_CPU * 0.05:.0f}",
        "mean-free-memory": f"{_MEMORY * share:.0f}",
        "std-free-memory": f"{_MEMORY * 0.05:.0f}",
        "congestion-factor": str(number * 31 % 101),
    }


async def annotate(client: Client, nodes: Sequence[str]) -> None:
    turn = asyncio.Semaphore(_AT_ONCE)

    async def write(number: int, node: str) -> None:
        patch = msgspec.json.encode({"metadata": {"annotations": _free(number)}})
        async with turn:
            await client.request("PATCH", NODES.path(name=node), body=patch, content_type=Patch.MERGE.value)

    await asyncio.gather(*(write(number, node) for number, node in enumerate(nodes)))
