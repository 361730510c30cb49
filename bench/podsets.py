"""A pod set, from its trigger to its last bind, beside the most that the API server takes.

    make bench-podsets
    make bench-podsets ARGS="--nodes 1000 --pods 10000"

As in `bench.throughput`, there are one real API server and etcd, and the sides take turns with the same pods.
All pods are of one set, and held when its trigger is set to Schedule; from then on the time counts, so making
and storing the plan is part of it. The bar: 0.7 of the ceiling, by the medians of the rounds. In every round
the first bind comes within a second of the trigger, with the default budget of 300 ms. At the end of each
turn there is one plan, and every pod is where it says.

After that 200 sets of 20 pods are held at once and nothing happens: the share of a core that this takes. Its
bar: 0.05. It ends with 1 if a bar is missed, unless it was a quick run.
"""

import argparse
import asyncio
import time

import msgspec
import uvloop
from bench.contest import CEILING, Contest, Side
from bench.held_sets import Crowd, idle_share, trigger
from bench.options import arguments, run, sizes
from bench.report import report, table
from bench.rounds import Turns, note, take_turns
from bench.stage import NAMESPACE, Stage
from bench.workloads import NODE, POD_SET

from longshore.api.pod_set import SCHEDULER_NAME, plan_name
from longshore.ask.pod_sets import read
from longshore.dev import ControlPlane
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
    """The set of the contest: held before each turn, released within it."""

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
        """How plan and pods differ."""
        found = await read(self._client, namespace=NAMESPACE)
        if len(found.plans) != 1:
            return [f"there are {len(found.plans)} plans of one set"]
        entries = {entry.pod: entry.node for entry in found.plans[0].spec.plan}
        places = {pod.metadata.name: pod.spec.node_name for pod in found.pods}
        astray = {name for name, _ in entries.items() ^ places.items()}
        return [f"{len(astray)} pods are elsewhere than the plan says"] if astray else []


def _measure(options: argparse.Namespace) -> bool:
    nodes, pods, rounds = sizes(options)
    crowd = _QUICK_IDLE if options.quick else _IDLE
    began = time.monotonic()
    with ControlPlane.start(nodes=0, kwok=False, controller_manager=False) as plane:
        note(f"creating {nodes} nodes on {plane.server}")
        names = plane.add_nodes(nodes, cpu=NODE["cpu"], memory=NODE["memory"], pods=NODE["pods"])
        plane.create_namespace(NAMESPACE)
        deploy = options.longshore.resolve() / "deploy"
        for file in (*sorted((deploy / "crds").glob("schedule*.yaml")), *deploy.glob("triggers.yaml")):
            plane.apply(file)
        print(f"{nodes} nodes, {pods} pods of one set", flush=True)

        async def measure() -> tuple[Turns, float]:
            async with Stage(
                plane.kubeconfig, plane.folder, nodes=dict.fromkeys(names, ""), pods=pods, workload=POD_SET
            ) as stage:
                podset = _Set(stage)
                contest = Contest(
                    plane,
                    stage,
                    checkout=options.longshore.resolve(),
                    manifest="scheduler.yaml",
                    account="longshore",
                    namespace="kube-system",
                )
                plain = contest.longshore(
                    "run", "--no-leader-elect", "--metrics-port=0", name=_NAME, scheduler_name=SCHEDULER_NAME
                )
                side = Side(
                    name=plain.name,
                    scheduler_name=plain.scheduler_name,
                    program=plain.program,
                    prepare=podset.hold,
                    release=podset.release,
                    inspect=podset.faults,
                )
                turns = await take_turns(contest, [side], rounds)
                note("holding many sets")
                # As it is deployed: it has to renew its lease, too.
                leader = contest.longshore(
                    "run", "--metrics-port=0", name="idle", scheduler_name=SCHEDULER_NAME
                )
                return turns, await idle_share(leader.program([]), stage, crowd)

        turns, idle = uvloop.run(measure())
    note(f"{time.monotonic() - began:.0f} s in all")
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
