"""Pods a second while thousands of others wait in vain, with a higher priority: on a real API server.

    make bench-unschedulable                                  about five minutes on two cores

`longshore run` takes turns with itself. In one turn of a round 10,000 pods of priority 1,000 that no node is
large enough for are in its queue, in the other they are another scheduler's. They are tried first, so the
first bind comes when all of them have been: the rate is that of the other pods, from the first to the last
bind, while what is to be told about the 10,000 is still written. By the medians of the rounds it is to be 0.8
of the rate without them, else this ends with 1. `make bench-decisions` has the same in memory, and for other
reasons to wait.
"""

import argparse
import asyncio
import time

import msgspec
import uvloop
from bench.contest import Contest
from bench.options import arguments, run, sizes
from bench.report import report
from bench.rounds import Turns, alternate, note
from bench.stage import NAMESPACE, Stage
from bench.workloads import NODE
from bench.workloads import pod as pod_object

from longshore.dev import ControlPlane
from longshore.kube.config import load
from longshore.kube.pool import Pool
from longshore.kube.resources import PODS

_ALONE, _BESIDE = "longshore", "beside others"
_SCHEDULER_NAMES = {_ALONE: "longshore", _BESIDE: "longshore-beside"}
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
        body = pod_object(f"pod-{number:05d}", workload="basic", scheduler_name=_SCHEDULER_NAMES[_BESIDE])
        body["spec"]["priorityClassName"] = _HOPELESS
        body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1000"}}
        answer = await pool.send("POST", path, msgspec.json.encode(body))
        assert answer.status == 201, answer.body

    async with pool:
        await asyncio.gather(*map(create, range(count)))


def _measure(options: argparse.Namespace) -> bool:
    nodes, pods, rounds = sizes(options)
    waiting = _QUICK_WAITING if options.quick else _WAITING
    began = time.monotonic()
    with ControlPlane.start(nodes=0, kwok=False, controller_manager=False) as plane:
        note(f"creating {nodes} nodes and {waiting} pods on {plane.server}")
        names = plane.add_nodes(nodes, cpu=NODE["cpu"], memory=NODE["memory"], pods=NODE["pods"])
        priority_class = plane.folder / "priority-class.yaml"
        priority_class.write_text(_PRIORITY_CLASS)
        plane.apply(priority_class)
        for namespace in (NAMESPACE, _HOPELESS):
            plane.create_namespace(namespace)
        print(f"{nodes} nodes, {pods} pods, beside {waiting} that fit nowhere", flush=True)

        async def measure() -> Turns:
            await _crowd(plane, waiting)
            places = dict.fromkeys(names, "")
            async with Stage(
                plane.kubeconfig, plane.folder, nodes=places, pods=pods, workload="basic"
            ) as stage:
                contest = Contest(
                    plane,
                    stage,
                    checkout=options.longshore.resolve(),
                    manifest="scheduler.yaml",
                    account="longshore",
                    namespace="kube-system",
                )
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
    note(f"{time.monotonic() - began:.0f} s in all")
    rates, sound = report(turns)
    kept = rates[_BESIDE] / rates[_ALONE]
    print(f"beside {waiting} unschedulable pods/without = {kept:.2f} (bar {_BAR:g})")
    return sound and (options.quick or kept >= _BAR)


def main() -> None:
    run(_measure, arguments(__doc__, nodes=1000).parse_args())


if __name__ == "__main__":
    main()
