"""A pod set from its trigger to its last bind, compared with a client that only writes (the ceiling).

    make bench-podsets
    make bench-podsets ARGS="--nodes 1000 --pods 10000"

The sides take turns on one real API server, as in `bench.throughput`. All pods are in one set, which is held
until its trigger is set to Schedule. The time starts then, so it includes making and storing the plan. The
bars:

- The rate is 0.7 of the ceiling, by the medians of the rounds.
- In every round the first bind comes within a second of the trigger, with the default budget of 300 ms.
- Then 200 sets of 20 pods are held while nothing happens. This takes less than 0.05 of a core.

At the end of each turn there must be one plan, and every pod must be on the node of its entry. The exit code
is 1 if a bar is missed, unless it was a quick run.
"""

import argparse
import asyncio
import time
from dataclasses import replace

import msgspec
import uvloop
from bench.cluster import cluster
from bench.contest import CEILING, Contest
from bench.held_sets import Crowd, idle_share, trigger
from bench.options import arguments, run, sizes
from bench.report import report, table
from bench.rounds import Turns, note, take_turns
from bench.stage import NAMESPACE, Stage
from bench.workloads import POD_SET

from longshore.api.pod_set import SCHEDULER_NAME, plan_name
from longshore.ask.pod_sets import read
from longshore.kube.client import Client
from longshore.kube.errors import ApiError
from longshore.kube.resources import SCHEDULE_PLANS, SCHEDULE_TRIGGERS
from longshore.kube.writer import Patch

_NAME = "pod set"
_BAR = 0.7
_FIRST_BIND_BAR = 1.0
_IDLE_BAR = 0.05
_IDLE, _QUICK_IDLE = Crowd(sets=200, pods=20, seconds=20.0), Crowd(sets=5, pods=4, seconds=2.0)
_HELD_WITHIN = 120.0
_TRIGGER = SCHEDULE_TRIGGERS.path(namespace=NAMESPACE, name=POD_SET)
_PLAN = SCHEDULE_PLANS.path(namespace=NAMESPACE, name=plan_name(NAMESPACE, POD_SET))


class _Set:
    """The pod set of the contest. It is held before each turn, and released in it."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._client: Client = stage.client

    async def hold(self) -> None:
        for path in (_TRIGGER, _PLAN):
            try:
                await self._client.request("DELETE", path)
            except ApiError as error:
                if error.status != 404:
                    raise
        body = msgspec.json.encode(trigger(POD_SET))
        await self._client.request("POST", SCHEDULE_TRIGGERS.path(namespace=NAMESPACE), body=body)

    async def release(self) -> float:
        await self._stage.wait_for_notes(within=_HELD_WITHIN)
        await asyncio.sleep(1.0)
        patch = msgspec.json.encode({"spec": {"state": "Schedule"}})
        began = time.perf_counter()
        await self._client.request("PATCH", _TRIGGER, body=patch, content_type=Patch.MERGE.value)
        return began

    async def faults(self) -> list[str]:
        """Return the differences between the plan and the pods."""
        found = await read(self._client, namespace=NAMESPACE)
        if len(found.plans) != 1:
            return [f"there are {len(found.plans)} plans for one set"]
        entries = {entry.pod: entry.node for entry in found.plans[0].spec.plan}
        places = {pod.metadata.name: pod.spec.node_name for pod in found.pods}
        astray = {name for name, _ in entries.items() ^ places.items()}
        return [f"{len(astray)} pods are not on the node of their plan entry"] if astray else []


def _measure(options: argparse.Namespace) -> bool:
    nodes, pods, rounds = sizes(options)
    crowd = _QUICK_IDLE if options.quick else _IDLE
    with cluster(nodes) as (plane, names):
        deploy = options.longshore.resolve() / "deploy"
        for file in (*sorted((deploy / "crds").glob("schedule*.yaml")), *deploy.glob("triggers.yaml")):
            plane.apply(file)
        print(f"{nodes} nodes, {pods} pods of one set", flush=True)

        async def measure() -> tuple[Turns, float]:
            async with Contest.on(
                plane, names, pods=pods, workload=POD_SET, checkout=options.longshore
            ) as contest:
                podset = _Set(contest.stage)
                scheduler = contest.longshore(
                    "run", "--no-leader-elect", "--metrics-port=0", name=_NAME, scheduler_name=SCHEDULER_NAME
                )
                side = replace(scheduler, prepare=podset.hold, release=podset.release, inspect=podset.faults)
                turns = await take_turns(contest, [side], rounds)
                note("holding many sets")
                # With leader election, as deployed: the scheduler renews its lease, too.
                leader = contest.longshore(
                    "run", "--metrics-port=0", name="idle", scheduler_name=SCHEDULER_NAME
                )
                return turns, await idle_share(leader.program([]), contest.stage, crowd)

        turns, idle = uvloop.run(measure())
    rates, sound = report(turns)
    table(
        "seconds from the trigger to the first bind",
        {_NAME: turns[_NAME]},
        lambda t: f"{t.to_first_bind:.2f}",
    )
    first = max(turn.to_first_bind for turn in turns[_NAME])
    share = rates[_NAME] / rates[CEILING]
    print(f"{crowd.sets} sets of {crowd.pods} pods held: {idle:.1%} of a core (bar {_IDLE_BAR:.0%})")
    print(f"pod set, trigger to first bind = {first:.2f} s in the slowest round (bar {_FIRST_BIND_BAR:g} s)")
    print(f"pod set, trigger to last bind/ceiling = {share:.2f} (bar {_BAR:g})")
    bars = {"held sets": idle < _IDLE_BAR, "first bind": first < _FIRST_BIND_BAR, "rate": share >= _BAR}
    missed = [name for name, met in bars.items() if not met]
    if missed:
        note(f"bars missed: {', '.join(missed)}")
    return sound and (options.quick or not missed)


def main() -> None:
    run(_measure, arguments(__doc__, nodes=500).parse_args())


if __name__ == "__main__":
    main()
