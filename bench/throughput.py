"""Pods bound per second: Longshore, kube-scheduler, and a client that only writes (the ceiling).

    make bench-throughput                                     about eight minutes on two cores
    make bench-throughput ARGS="--nodes 5000 --pods 10000"
    make bench-throughput ARGS="--workload spread"            or anti-affinity

There is one real API server with etcd, and no kubelets and no controllers. The sides take turns. Each runs
alone, with the same pods, which exist before it starts.

The rate is the number of pods divided by the time from the first to the last bind, as the watch of one
observer sees them. The result is the median of the rounds. Every side writes one bind and one Scheduled event
for each pod. Binds can go first, but all events must exist 10 s after the last bind. The CPU time is that of
the whole life of a process. The peak memory is the highest of all rounds.
"""

import argparse

import uvloop
from bench.cluster import cluster
from bench.contest import CEILING, KUBE_SCHEDULER, Contest
from bench.options import arguments, run, sizes
from bench.report import report
from bench.rounds import Turns, take_turns
from bench.workloads import WORKLOADS, ZONES

from longshore.dev.build import KUBERNETES_VERSION

_LONGSHORE = "longshore"


def _measure(options: argparse.Namespace) -> bool:
    nodes, pods, rounds = sizes(options)
    with cluster(nodes, zones=ZONES, scheduler=True) as (plane, names):
        print(
            f"{nodes} nodes, {pods} pods, workload {options.workload}, kube-scheduler {KUBERNETES_VERSION}",
            flush=True,
        )

        async def measure() -> Turns:
            async with Contest.on(
                plane, names, pods=pods, workload=options.workload, checkout=options.longshore
            ) as contest:
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
