"""Pods bound per second while thousands of pods of higher priority fit nowhere, on a real API server.

    make bench-unschedulable                                  about five minutes on two cores

`longshore run` takes turns with itself. In one turn of a round, its queue has 10,000 pods of priority 1,000
for which no node is large enough. In the other turn these pods belong to another scheduler.

The 10,000 pods are tried first, so the first bind comes after their attempts. The rate is that of the other
pods, from the first to the last bind, while events and conditions of the 10,000 pods are still written. The
bar is 0.8 of the rate without them, by the medians of the rounds. The exit code is 1 if the bar is missed.
`make bench-decisions` measures the same in memory, and with other reasons for pods to wait.
"""

import argparse
import asyncio

import msgspec
import uvloop
from bench.cluster import cluster
from bench.contest import Contest
from bench.options import arguments, run, sizes
from bench.report import report
from bench.rounds import Turns, alternate, note
from bench.workloads import pod as pod_object

from longshore.dev import ControlPlane
from longshore.kube.config import load
from longshore.kube.pool import Pool
from longshore.kube.resources import PODS

_ALONE, _WITH_OTHERS = "longshore", "with others"
_SCHEDULER_NAMES = {_ALONE: "longshore", _WITH_OTHERS: "longshore-and-others"}
_HOPELESS = "hopeless"
_WAITING, _QUICK_WAITING = 10_000, 200
_IN_FLIGHT = 48
_BAR = 0.8
_PRIORITY_CLASS = f"""
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {{name: {_HOPELESS}}}
value: 1000
"""


async def _crowd(plane: ControlPlane, count: int) -> None:
    """Create the pods that fit nowhere."""
    path = PODS.path(namespace=_HOPELESS)
    pool = Pool(load(plane.kubeconfig), size=_IN_FLIGHT)

    async def create(number: int) -> None:
        body = pod_object(
            f"pod-{number:05d}", workload="basic", scheduler_name=_SCHEDULER_NAMES[_WITH_OTHERS]
        )
        body["spec"]["priorityClassName"] = _HOPELESS
        body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1000"}}
        answer = await pool.send("POST", path, msgspec.json.encode(body))
        assert answer.status == 201, answer.body

    async with pool:
        await asyncio.gather(*map(create, range(count)))


def _measure(options: argparse.Namespace) -> bool:
    nodes, pods, rounds = sizes(options)
    waiting = _QUICK_WAITING if options.quick else _WAITING
    with cluster(nodes) as (plane, names):
        note(f"creating {waiting} pods")
        priority_class = plane.folder / "priority-class.yaml"
        priority_class.write_text(_PRIORITY_CLASS)
        plane.apply(priority_class)
        plane.create_namespace(_HOPELESS)
        print(f"{nodes} nodes, {pods} pods, next to {waiting} that fit nowhere", flush=True)

        async def measure() -> Turns:
            await _crowd(plane, waiting)
            async with Contest.on(plane, names, pods=pods, checkout=options.longshore) as contest:
                sides = [
                    contest.longshore(
                        "run",
                        "--no-leader-elect",
                        "--metrics-port=0",
                        f"--scheduler-name={scheduler_name}",
                        name=side,
                        scheduler_name=scheduler_name,
                    )
                    for side, scheduler_name in _SCHEDULER_NAMES.items()
                ]
                return await alternate(contest, sides, rounds)

        turns = uvloop.run(measure())
    rates, sound = report(turns)
    kept = rates[_WITH_OTHERS] / rates[_ALONE]
    print(f"next to {waiting} unschedulable pods/without = {kept:.2f} (bar {_BAR:g})")
    return sound and (options.quick or kept >= _BAR)


def main() -> None:
    run(_measure, arguments(__doc__, nodes=1000).parse_args())


if __name__ == "__main__":
    main()
