"""`longshore demo`: the engine on a simulated cluster, with a picture of what it did.

Nodes and pods of mixed sizes come from the seed and time is virtual, so a run looks the same each time, save
for how fast this machine was.
"""

import json
import random
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from longshore.cli import options

if TYPE_CHECKING:
    from rich.console import Console

    from longshore.api import Node
    from longshore.sim import Simulation
    from longshore.testing import NodeBuilder, PodBuilder

_MOST_ROWS = 20
_MOST_REASONS = 5
_BAR = 18
_ARRIVALS = 30.0  # seconds of virtual time within which all pods come in

_NODE_SIZES = (("4", "16Gi"), ("8", "32Gi"), ("16", "64Gi"))
_POD_SIZES = (("100m", "128Mi"), ("250m", "1Gi"), ("500m", "2Gi"), ("1", "4Gi"), ("2", "2Gi"), ("4", "8Gi"))
_POD_SHARES = (5, 5, 4, 3, 2, 1)


@click.command("demo")
@click.option(
    "--nodes", type=click.IntRange(1, 10_000), default=12, show_default=True, help="How many nodes."
)
@click.option(
    "--pods", type=click.IntRange(0, 100_000), default=150, show_default=True, help="How many pods."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed, another cluster.")
@options.output
def command(nodes: int, pods: int, seed: int, output: str) -> None:
    """Schedule pods on a simulated cluster, right here in the terminal.

    Nothing but this program is needed: the cluster and its clock are simulated, the scheduler is real.

    Example: longshore demo --nodes 50 --pods 1000 --seed 7
    """
    from rich.console import Console

    with Console(stderr=True).status(f"scheduling {pods:,} pods on {nodes:,} nodes"):
        simulation, seconds = _run(nodes, pods, seed)
    result = _Result.of(simulation, seconds)
    if output == "json":
        click.echo(json.dumps(result.as_dict(), indent=2))
    else:
        title = f"longshore demo: {nodes:,} nodes, {pods:,} pods, seed {seed}"
        _draw(result, title, Console(file=sys.stdout, highlight=False))


def _run(nodes: int, pods: int, seed: int) -> "tuple[Simulation, float]":
    """Let it all happen; the seconds are those of this machine."""
    from longshore.engine import Engine
    from longshore.sim import Simulation

    chance = random.Random(seed)
    simulation = Simulation(Engine(seed=seed), seed=seed)
    simulation.create(*(_some_node(number, chance) for number in range(1, nodes + 1)))
    for number in range(1, pods + 1):
        simulation.create(_some_pod(number, chance), at=chance.uniform(0, _ARRIVALS))
    begin = time.perf_counter()
    simulation.run()
    return simulation, time.perf_counter() - begin


def _some_node(number: int, chance: random.Random) -> "NodeBuilder":
    from longshore.testing import node

    cpu, memory = chance.choice(_NODE_SIZES)
    return node(f"node-{number:03}").allocatable(cpu=cpu, memory=memory)


def _some_pod(number: int, chance: random.Random) -> "PodBuilder":
    from longshore.testing import pod

    ((cpu, memory),) = chance.choices(_POD_SIZES, _POD_SHARES)
    return pod(f"pod-{number:05}").requests(cpu=cpu, memory=memory).priority(chance.choice((0, 0, 0, 1000)))


class _Usage(NamedTuple):
    """What is used of a node, or of several: cpu in millicores, memory in bytes."""

    name: str
    pods: int
    cpu: int
    cpu_allocatable: int
    memory: int
    memory_allocatable: int

    @classmethod
    def together(cls, group: "list[_Usage]") -> "_Usage":
        name = group[0].name if len(group) == 1 else f"{group[0].name} to {group[-1].name}"
        return cls(name, *(sum(column) for column in zip(*(usage[1:] for usage in group), strict=True)))


class _Result(NamedTuple):
    nodes: list[_Usage]
    bound: int
    pending: int
    preempted: int
    reasons: list[tuple[str, int]]
    decisions: int
    seconds: float
    virtual_seconds: float

    @classmethod
    def of(cls, simulation: "Simulation", seconds: float) -> "_Result":
        pods = simulation.cluster.pods.values()
        waiting = [pod for pod in pods if not pod.spec.node_name]
        told = Counter(event.reason for event in simulation.cluster.events)
        reasons = Counter(
            c.message for pod in waiting for c in pod.status.conditions if c.type == "PodScheduled"
        )
        return cls(
            nodes=[_usage(simulation, node) for node in simulation.cluster.nodes.values()],
            bound=len(pods) - len(waiting),
            pending=len(waiting),
            preempted=told["Preempted"],
            reasons=reasons.most_common(),
            # Each attempt ends in one event: Scheduled or FailedScheduling.
            decisions=told["Scheduled"] + told["FailedScheduling"],
            seconds=seconds,
            virtual_seconds=simulation.now,
        )

    @property
    def decisions_per_second(self) -> int:
        return round(self.decisions / self.seconds)

    def as_dict(self) -> dict[str, Any]:
        return {
            "nodes": [usage._asdict() for usage in self.nodes],
            "pods": {"bound": self.bound, "pending": self.pending, "preempted": self.preempted},
            "pendingReasons": [{"message": message, "pods": number} for message, number in self.reasons],
            "decisions": self.decisions,
            "decisionsPerSecond": self.decisions_per_second,
            "virtualSeconds": round(self.virtual_seconds, 3),
        }


def _usage(simulation: "Simulation", node: "Node") -> _Usage:
    from longshore.cluster import CPU, MEMORY, PODS

    cluster = simulation.engine.cluster
    row = cluster.row(node.metadata.name)
    requested, allocatable = cluster.requested[:, row], cluster.allocatable[:, row]
    numbers = (requested[PODS], requested[CPU], allocatable[CPU], requested[MEMORY], allocatable[MEMORY])
    return _Usage(node.metadata.name, *(int(number) for number in numbers))


def _draw(result: _Result, title: str, console: "Console") -> None:
    from rich.table import Table
    from rich.text import Text

    full, empty = ("█", "░") if console.encoding.lower().startswith("utf") else ("#", ".")

    def bar(used: int, allocatable: int) -> Text:
        share = used / allocatable if allocatable else 0.0
        filled = round(share * _BAR)
        style = "red" if share > 0.95 else "yellow" if share > 0.75 else "green"
        return Text.assemble((full * filled, style), (empty * (_BAR - filled), "dim"), f" {share:4.0%}")

    size = -(-len(result.nodes) // _MOST_ROWS)
    groups = [_Usage.together(result.nodes[i : i + size]) for i in range(0, len(result.nodes), size)]
    picture = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in ("node" if size == 1 else "nodes", "pods", "cpu", "memory"):
        picture.add_column(heading, justify="right" if heading == "pods" else "left", no_wrap=True)
    for usage in groups:
        cpu, memory = bar(usage.cpu, usage.cpu_allocatable), bar(usage.memory, usage.memory_allocatable)
        picture.add_row(usage.name, f"{usage.pods:,}", cpu, memory)

    facts = Table.grid(padding=(0, 2, 0, 0))
    fates = (f"{result.bound:,} bound", f"{result.pending:,} pending", f"{result.preempted:,} preempted")
    facts.add_row("pods", ", ".join(fates))
    for number, (message, pods) in enumerate(result.reasons[:_MOST_REASONS]):
        facts.add_row("" if number else "pending", f"{pods:,} pods: {message}")
    if len(result.reasons) > _MOST_REASONS:
        facts.add_row("", f"and {len(result.reasons) - _MOST_REASONS:,} other reasons")
    facts.add_row(
        "decisions", f"{result.decisions:,}, {result.decisions_per_second:,} a second on this machine"
    )
    facts.add_row("virtual time", f"{result.virtual_seconds:.1f} s")

    console.print(Text(title, style="bold"), "", picture, "", facts, sep="\n")
