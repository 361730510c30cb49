"""Pinned pods a second: `longshore static` beside the most that the API server takes.

    make bench-static                                         under ten minutes on two cores
    make bench-static ARGS="--nodes 1000 --pods 10000"

As in `bench.throughput`, there are one real API server and etcd, the sides take turns with the same pods, and
the rate is pods over the time from the first to the last bind as one observer's watch sees them. Each pod is
pinned to a node by a label that the node has from the start, and has to be there at the end; it has its
Scheduled event 10 s after the last bind. `longshore static --daemon` has the rights of deploy/static.yaml,
and so has the ceiling. The bar: 0.85 of the ceiling, by the medians of the rounds. The ceiling writes each
event right after its bind, and the scheduler's may lag: the ratio can pass 1. The rates to the last event
compare all that was written.
"""

import argparse
import asyncio
import time

import msgspec
import uvloop
from bench.contest import CEILING, Contest
from bench.options import arguments, run, sizes
from bench.report import report
from bench.rounds import Turns, note, take_turns
from bench.stage import NAMESPACE, Stage
from bench.workloads import NODE, PINNED

from longshore.dev import ControlPlane
from longshore.kube.resources import NODES
from longshore.kube.writer import Patch
from longshore.pin.labels import pin_key

_STATIC = "static"
_BAR = 0.85


async def _pin(stage: Stage) -> None:
    """Label the nodes for the pods of all turns: their names are always the same."""
    labels: dict[str, dict[str, str]] = {}
    for pod, node in stage.places.items():
        labels.setdefault(node, {})[pin_key(_STATIC, NAMESPACE, pod)] = ""

    async def label(node: str) -> None:
        patch = msgspec.json.encode({"metadata": {"labels": labels[node]}})
        await stage.client.request("PATCH", NODES.path(name=node), body=patch, content_type=Patch.MERGE.value)

    await asyncio.gather(*map(label, labels))


def _measure(options: argparse.Namespace) -> bool:
    nodes, pods, rounds = sizes(options)
    began = time.monotonic()
    with ControlPlane.start(nodes=0, kwok=False, controller_manager=False) as plane:
        note(f"creating {nodes} nodes on {plane.server}")
        names = plane.add_nodes(nodes, cpu=NODE["cpu"], memory=NODE["memory"], pods=NODE["pods"])
        plane.create_namespace(NAMESPACE)
        print(f"{nodes} nodes, {pods} pods, each pinned to its node", flush=True)

        async def measure() -> Turns:
            async with Stage(
                plane.kubeconfig, plane.folder, nodes=dict.fromkeys(names, ""), pods=pods, workload=PINNED
            ) as stage:
                await _pin(stage)
                contest = Contest(
                    plane,
                    stage,
                    checkout=options.longshore.resolve(),
                    manifest="static.yaml",
                    account="longshore-static",
                    namespace="longshore-static",
                )
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
    note(f"{time.monotonic() - began:.0f} s in all")
    rates, sound = report(turns)
    print(f"longshore static/ceiling = {rates[_STATIC] / rates[CEILING]:.2f} (bar {_BAR:g})")
    return sound


def main() -> None:
    run(_measure, arguments(__doc__, nodes=500).parse_args())


if __name__ == "__main__":
    main()
