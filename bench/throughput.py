"""Pods a second: Longshore beside the stock kube-scheduler and the most that the API server takes.

    make bench-throughput                                     about eight minutes on two cores
    make bench-throughput ARGS="--nodes 5000 --pods 10000"
    make bench-throughput ARGS="--workload spread"            or anti-affinity

One real API server and etcd, no kubelets, no controllers. The sides take turns, each alone, each with the
same pods, which are there before it starts. The rate is pods over the time from the first to the last bind,
as one observer's watch sees them; the median of the rounds counts. Every side writes one bind and one
Scheduled event a pod: binds may go first, but all events are there 10 s after the last bind. CPU time is that
of the whole life of a process; of its peak memory the highest of all rounds is told.
"""

import argparse
import time

import uvloop
from bench.contest import CEILING, KUBE_SCHEDULER, Contest
from bench.options import arguments, run, sizes
from bench.report import report
from bench.rounds import Turns, note, take_turns
from bench.stage import NAMESPACE, Stage
from bench.workloads import NODE, WORKLOADS, ZONE, ZONES

from longshore.dev import ControlPlane
from longshore.dev.build import KUBERNETES_VERSION

_LONGSHORE = "longshore"


def _add_nodes(plane: ControlPlane, count: int) -> dict[str, str]:
    """Create the nodes, spread over the zones; their names with their zones."""
    zones: dict[str, str] = {}
    for number in range(ZONES):
        zone = f"zone-{number}"
        size = count // ZONES + (number < count % ZONES)
        for name in plane.add_nodes(size, **NODE, labels={ZONE: zone}):
            zones[name] = zone
    return zones


def _measure(options: argparse.Namespace) -> bool:
    nodes, pods, rounds = sizes(options)
    began = time.monotonic()
    with ControlPlane.start(nodes=0, scheduler=True, kwok=False, controller_manager=False) as plane:
        note(f"creating {nodes} nodes on {plane.server}")
        zones = _add_nodes(plane, nodes)
        assert plane.scheduler is not None
        plane.scheduler.kill()  # until its turn
        plane.create_namespace(NAMESPACE)
        print(
            f"{nodes} nodes, {pods} pods, workload {options.workload}, kube-scheduler {KUBERNETES_VERSION}",
            flush=True,
        )

        async def measure() -> Turns:
            async with Stage(
                plane.kubeconfig, plane.folder, nodes=zones, pods=pods, workload=options.workload
            ) as stage:
                contest = Contest(
                    plane,
                    stage,
                    checkout=options.longshore.resolve(),
                    manifest="scheduler.yaml",
                    account="longshore",
                    namespace="kube-system",
                )
                longshore = contest.longshore(
                    "run",
                    "--no-leader-elect",
                    "--metrics-port=0",
                    "--scheduler-name=longshore",
                    name=_LONGSHORE,
                    scheduler_name="longshore",
                )
                return await take_turns(contest, [contest.kube_scheduler(), longshore], rounds)

        turns = uvloop.run(measure())
    note(f"{time.monotonic() - began:.0f} s in all")
    rates, sound = report(turns)
    print(f"longshore/kube-scheduler = {rates[_LONGSHORE] / rates[KUBE_SCHEDULER]:.2f}")
    print(f"longshore/ceiling = {rates[_LONGSHORE] / rates[CEILING]:.2f}")
    return sound


def main() -> None:
    parser = arguments(__doc__, nodes=1000)
    parser.add_argument("--workload", choices=WORKLOADS, default="basic")
    run(_measure, parser.parse_args())


if __name__ == "__main__":
    main()
