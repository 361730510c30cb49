"""A pod set, from its trigger to its last bind, beside the most that the API server takes.

    make bench-podsets
    make bench-podsets ARGS="--nodes 1000 --pods 10000"

As in `bench.throughput`, there are one real API server and etcd, and the sides take turns with the same pods.
All pods are of one set, and held when its trigger is set to Schedule; from then on the time counts, so making
and storing the plan is part of it. The bar: 0.7 of the ceiling, by the medians of the rounds.

After that many sets are held at once and nothing happens: the share of a core that this takes. Its bar: 0.05.
"""

import argparse
import asyncio
import time

import msgspec
import uvloop
from bench.contest import CEILING, Contest, Side
from bench.options import arguments, run, sizes
from bench.report import report
from bench.rounds import Turns, note, take_turns
from bench.stage import NAMESPACE, Stage
from bench.usage import usage
from bench.workloads import NODE, POD_SET

from longshore.api.podset import API_VERSION, POD_SET_LABEL, SCHEDULER_NAME, plan_name
from longshore.dev import ControlPlane
from longshore.errors import UserError
from longshore.kube.client import Client
from longshore.kube.errors import ApiError
from longshore.kube.resources import PODS, SCHEDULE_PLANS, SCHEDULE_TRIGGERS
from longshore.kube.writer import Patch

_NAME = "pod set"
_BAR = 0.7
_HELD_WITHIN = 120.0
_TRIGGER = SCHEDULE_TRIGGERS.path(namespace=NAMESPACE, name=POD_SET)
_PLAN = SCHEDULE_PLANS.path(namespace=NAMESPACE, name=plan_name(NAMESPACE, POD_SET))

_IDLE_BAR = 0.05
_IDLE_SETS, _IDLE_PODS, _IDLE_SECONDS = 200, 20, 20.0
_SETTLE_SECONDS = 15.0


def _trigger(podset: str) -> dict[str, object]:
    meta = {"name": podset, "namespace": NAMESPACE, "labels": {POD_SET_LABEL: podset}}
    return {
        "apiVersion": API_VERSION,
        "kind": "ScheduleTrigger",
        "metadata": meta,
        "spec": {"state": "Planning"},
    }


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
        body = msgspec.json.encode(_trigger(POD_SET))
        await self._client.request("POST", SCHEDULE_TRIGGERS.path(namespace=NAMESPACE), body=body)

    async def release(self) -> float:
        await self._stage.wait_for_notes(within=_HELD_WITHIN)
        await asyncio.sleep(1.0)
        patch = msgspec.json.encode({"spec": {"state": "Schedule"}})
        began = time.perf_counter()
        await self._client.request("PATCH", _TRIGGER, body=patch, content_type=Patch.MERGE.value)
        return began


async def _idle_share(side: Side, stage: Stage) -> float:
    """Of one core, while sets are held and nothing happens."""
    client = stage.client
    for number in range(_IDLE_SETS):
        body = msgspec.json.encode(_trigger(f"idle-{number}"))
        await client.request("POST", SCHEDULE_TRIGGERS.path(namespace=NAMESPACE), body=body)

    async def create(number: int, member: int) -> None:
        labels = {POD_SET_LABEL: f"idle-{number}"}
        spec = {"schedulerName": SCHEDULER_NAME, "containers": [{"name": "main", "image": "none"}]}
        meta = {"name": f"idle-{number}-{member}", "labels": labels}
        body = msgspec.json.encode({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
        await client.request("POST", PODS.path(namespace=NAMESPACE), body=body)

    for number in range(_IDLE_SETS):
        await asyncio.gather(*(create(number, member) for member in range(_IDLE_PODS)))
    component = side.program([])
    component.start()
    try:
        await asyncio.sleep(_SETTLE_SECONDS)
        component.require_running()
        if component.pid is None:
            raise UserError("the scheduler has no process")
        before, began = usage(component.pid).cpu_seconds, time.perf_counter()
        await asyncio.sleep(_IDLE_SECONDS)
        return (usage(component.pid).cpu_seconds - before) / (time.perf_counter() - began)
    finally:
        component.kill()


def _measure(options: argparse.Namespace) -> bool:
    nodes, pods, rounds = sizes(options)
    began = time.monotonic()
    with ControlPlane.start(nodes=0, kwok=False, controller_manager=False) as plane:
        note(f"creating {nodes} nodes on {plane.server}")
        names = plane.add_nodes(nodes, cpu=NODE["cpu"], memory=NODE["memory"], pods=NODE["pods"])
        plane.create_namespace(NAMESPACE)
        for file in sorted((options.longshore.resolve() / "deploy" / "crds").glob("schedule*.yaml")):
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
                )
                turns = await take_turns(contest, [side], rounds)
                return turns, 0.0 if options.quick else await _idle_share(plain, stage)

        turns, idle = uvloop.run(measure())
    note(f"{time.monotonic() - began:.0f} s in all")
    rates, sound = report(turns)
    if not options.quick:
        print(f"{_IDLE_SETS} sets of {_IDLE_PODS} pods held: {idle:.1%} of a core (bar {_IDLE_BAR:.0%})")
    print(f"pod set, trigger to last bind/ceiling = {rates[_NAME] / rates[CEILING]:.2f} (bar {_BAR:g})")
    return sound


def main() -> None:
    run(_measure, arguments(__doc__, nodes=500).parse_args())


if __name__ == "__main__":
    main()
