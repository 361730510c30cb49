"""Pods a second: Longshore beside the stock kube-scheduler and the most that the API server takes.

    make bench-throughput                                     about seven minutes on two cores
    make bench-throughput ARGS="--nodes 5000 --pods 10000"
    make bench-throughput ARGS="--workload spread"            or anti-affinity

One real API server and etcd, no kubelets, no controllers. The sides take turns, each alone, each with the
same pods, which are there before it starts. The rate is pods over the time from the first to the last bind,
as one observer's watch sees them; the median of the rounds counts. Every side writes one bind and one
Scheduled event a pod: binds may go first, but all events are there 10 s after the last bind. CPU time is that
of the whole life of a process; of its peak memory the highest of all rounds is told.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvloop
from bench.contest import CEILING, KUBE_SCHEDULER, LONGSHORE, ROOT, Contest, Turn
from bench.stage import EVENTS_WITHIN, NAMESPACE, Stage
from bench.workloads import NODE, PODS_PER_NODE, WORKLOADS, ZONE, ZONES

from longshore.dev import ControlPlane
from longshore.dev.build import KUBERNETES_VERSION
from longshore.errors import UserError

_IN_FLIGHT = (16, 48, 96)
_BINDS_IN_FLIGHT = 48
_QUICK_NODES, _QUICK_PODS, _QUICK_ROUNDS = 100, 200, 1

Turns = dict[str, list[Turn]]


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _add_nodes(plane: ControlPlane, count: int) -> dict[str, str]:
    """Create the nodes, spread over the zones; their names with their zones."""
    zones: dict[str, str] = {}
    for number in range(ZONES):
        zone = f"zone-{number}"
        size = count // ZONES + (number < count % ZONES)
        for name in plane.add_nodes(size, **NODE, labels={ZONE: zone}):
            zones[name] = zone
    return zones


async def _best_in_flight(contest: Contest) -> int:
    """How many writes in flight suit this API server best. Binds alone come first: they warm it up, too."""
    rates = {}
    for limit, events in [(_BINDS_IN_FLIGHT, False), *((limit, True) for limit in _IN_FLIGHT)]:
        turn = await contest.ceiling(limit, events=events)
        if turn.faults:
            raise UserError(f"the ceiling's client: {'; '.join(turn.faults)}")
        what = "a bind and an event a pod" if events else "binds alone"
        print(f"ceiling {turn.rate:6.0f} pods/s: {what}, {limit} in flight", flush=True)
        if events:
            rates[limit] = turn.rate
    return max(rates, key=lambda limit: rates[limit])


async def _take_turns(contest: Contest, rounds: int) -> Turns:
    """The turns of each side. The order changes with the round, so that no side is always the first."""
    _note("looking for the ceiling")
    in_flight = await _best_in_flight(contest)
    sides: dict[str, Callable[[], Awaitable[Turn]]] = {
        KUBE_SCHEDULER: contest.kube_scheduler,
        LONGSHORE: contest.longshore,
        CEILING: lambda: contest.ceiling(in_flight),
    }
    turns: Turns = {side: [] for side in sides}
    for number in range(rounds):
        first = number % len(sides)
        for side in [*sides][first:] + [*sides][:first]:
            turn = await sides[side]()
            turns[side].append(turn)
            _note(f"round {number + 1} of {rounds}: {side:<14} {turn.rate:6.0f} pods/s")
    return turns


def _table(title: str, turns: Turns, cell: Callable[[Turn], str]) -> None:
    print(f"\n{title}")
    for side, seen in turns.items():
        print(f"  {side:<15}" + "".join(f"{cell(turn):>9}" for turn in seen))


def _report(turns: Turns) -> bool:
    """Print all rounds and the medians; whether all was as it must be."""
    _table("pods/s, first to last bind, each round", turns, lambda turn: f"{turn.rate:.0f}")
    _table("pods with a Scheduled event", turns, lambda turn: str(turn.events))
    title = f"seconds from the last bind to the last event (at most {EVENTS_WITHIN:g})"
    _table(title, turns, lambda turn: f"{turn.last_event - turn.last_bind:.1f}")
    title = "CPU time that others took on this machine: rounds where it differs much are hard to compare"
    _table(title, turns, lambda turn: f"{turn.disturbance:.0%}")
    print(f"\n{'medians':<17}{'pods/s':>9}{'to last event':>15}{'CPU s':>9}{'peak MiB':>10}")
    rates = {}
    for side, seen in turns.items():
        rates[side] = statistics.median(turn.rate for turn in seen)
        to_last_event = statistics.median(turn.rate_to_last_event for turn in seen)
        cpu = statistics.median(turn.usage.cpu_seconds for turn in seen)
        peak = max(turn.usage.peak_bytes for turn in seen) / 2**20
        print(f"  {side:<15}{rates[side]:9.0f}{to_last_event:15.0f}{cpu:9.1f}{peak:10.0f}")
    faults = [
        f"WRONG: {side}, round {number}: {fault}"
        for side, seen in turns.items()
        for number, turn in enumerate(seen, start=1)
        for fault in turn.faults
    ]
    print("", *faults, sep="\n")
    print(f"longshore/kube-scheduler = {rates[LONGSHORE] / rates[KUBE_SCHEDULER]:.2f}")
    print(f"longshore/ceiling = {rates[LONGSHORE] / rates[CEILING]:.2f}")
    return not faults


def _run(options: argparse.Namespace) -> bool:
    nodes, pods, rounds = options.nodes, options.pods, options.rounds
    if options.quick:
        nodes, pods, rounds = _QUICK_NODES, _QUICK_PODS, _QUICK_ROUNDS
    if min(nodes, rounds) < 1 or pods < 2:
        raise UserError("a measurement takes one node, one round and two pods at least")
    if pods > nodes * PODS_PER_NODE:
        raise UserError(f"{nodes} nodes have room for {nodes * PODS_PER_NODE} pods: add nodes")
    began = time.monotonic()
    with ControlPlane.start(nodes=0, scheduler=True, kwok=False, controller_manager=False) as plane:
        _note(f"creating {nodes} nodes on {plane.server}")
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
                return await _take_turns(Contest(plane, stage, checkout=options.longshore.resolve()), rounds)

        turns = uvloop.run(measure())
    _note(f"{time.monotonic() - began:.0f} s in all")
    return _report(turns)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=5000, help="pods in each turn")
    parser.add_argument("--workload", choices=WORKLOADS, default="basic")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a small round, to see that it works")
    parser.add_argument(
        "--longshore",
        type=Path,
        default=ROOT,
        metavar="CHECKOUT",
        help="the Longshore to measure, if not this",
    )
    try:
        sound = _run(parser.parse_args())
    except UserError as error:
        sys.exit(f"error: {error}")
    sys.exit(0 if sound else 1)


if __name__ == "__main__":
    main()
