"""Pinned pods bound per second: `longshore static`, compared with a client that only writes (the ceiling).

    make bench-static                                         under ten minutes on two cores
    make bench-static ARGS="--nodes 1000 --pods 10000"

The sides take turns on one real API server, and the rate is measured as in `bench.throughput`. Each pod is
pinned to a node by a label that the node has from the start, and must be on that node at the end.
`longshore static --daemon` and the ceiling have the rights of deploy/static.yaml.

The bar is 0.85 of the ceiling, by the medians of the rounds. The ratio can exceed 1: the ceiling writes each
event right after its bind, while the scheduler can write its events later. The rates to the last event
compare everything that was written.
"""

import argparse
import asyncio

import msgspec
import uvloop
from bench.cluster import cluster
from bench.contest import CEILING, Contest, Rights
from bench.options import arguments, run, sizes
from bench.report import report
from bench.rounds import Turns, take_turns
from bench.stage import NAMESPACE, Stage
from bench.workloads import PINNED

from longshore.kube.resources import NODES
from longshore.kube.writer import Patch
from longshore.pin.labels import pin_key

_STATIC = "static"
_RIGHTS = Rights("static.yaml", "longshore-static", "longshore-static")
_BAR = 0.85


async def _pin(stage: Stage) -> None:
    """Label the nodes for the pods of all turns. The names of the pods are the same in every turn."""
    labels: dict[str, dict[str, str]] = {}
    for pod, node in stage.places.items():
        labels.setdefault(node, {})[pin_key(_STATIC, NAMESPACE, pod)] = ""

    async def label(node: str) -> None:
        patch = msgspec.json.encode({"metadata": {"labels": labels[node]}})
        await stage.client.request("PATCH", NODES.path(name=node), body=patch, content_type=Patch.MERGE.value)

    await asyncio.gather(*map(label, labels))


def _measure(options: argparse.Namespace) -> bool:
    nodes, pods, rounds = sizes(options)
    with cluster(nodes) as (plane, names):
        print(f"{nodes} nodes, {pods} pods, each pinned to its node", flush=True)

        async def measure() -> Turns:
            async with Contest.on(
                plane, names, pods=pods, workload=PINNED, checkout=options.longshore, rights=_RIGHTS
            ) as contest:
                await _pin(contest.stage)
                static = contest.longshore(
                    "static",
                    "--daemon",
                    "--prometheus-port=0",
                    f"--name={_STATIC}",
                    name=_STATIC,
                    scheduler_name=_STATIC,
                )
                return await take_turns(contest, [static], rounds)

        turns = uvloop.run(measure())
    rates, sound = report(turns)
    print(f"longshore static/ceiling = {rates[_STATIC] / rates[CEILING]:.2f} (bar {_BAR:g})")
    return sound


def main() -> None:
    run(_measure, arguments(__doc__, nodes=500).parse_args())


if __name__ == "__main__":
    main()
