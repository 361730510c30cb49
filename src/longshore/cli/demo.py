"""`longshore demo`: schedule pods and a pod set on a simulated cluster.

The sizes of nodes and pods come from the seed and time is virtual, so each run prints the same result, except
for the speed of this machine.
"""

import itertools
import json
import random
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import click

from longshore.cli import options

if TYPE_CHECKING:
    from longshore.api import Node, ScheduleTrigger
    from longshore.cli.demo_text import Result, Usage
    from longshore.engine import Engine
    from longshore.sim import Simulation
    from longshore.testing import NodeBuilder, PodBuilder

SET = "batch"
TRIGGER = "go"
QUIET = "2m0s"
# Seconds of virtual time: all pods are created within the first, and scheduled within the second.
_ARRIVALS = 30.0
_SETTLED = 10.0
# Seconds that each reading of the stopwatch adds, so that a plan does not depend on a real clock.
_LOOK = 1e-4
# The time when the simulation starts.
_EPOCH = 1_800_000_000.0

_NODE_SIZES = (("4", "16Gi"), ("8", "32Gi"), ("16", "64Gi"))
_POD_SIZES = (("100m", "128Mi"), ("250m", "1Gi"), ("500m", "2Gi"), ("1", "4Gi"), ("2", "2Gi"), ("4", "8Gi"))
_POD_SHARES = (5, 5, 4, 3, 2, 1)


@click.command("demo")
@click.option(
    "--nodes", type=click.IntRange(1, 10_000), default=12, show_default=True, help="Number of nodes."
)
@click.option(
    "--pods",
    type=click.IntRange(0, 100_000),
    default=150,
    show_default=True,
    help="Number of pods; a third of them form a pod set.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed for the sizes of nodes and pods.")
@options.output
def command(nodes: int, pods: int, seed: int, output: str) -> None:
    """Schedule pods on a simulated cluster, in the terminal.

    Most pods are bound as they are created. A third form a pod set: it is held until its trigger fires,
    planned as a whole, bound by the plan, and deleted at the end. You need nothing besides this program: the
    cluster and its clock are simulated, the scheduler is real.

    Example: longshore demo --nodes 50 --pods 1000 --seed 7
    """
    from rich.console import Console

    from longshore.cli.demo_text import as_dict, draw

    with Console(stderr=True).status(f"scheduling {pods:,} pods on {nodes:,} nodes"):
        result = _run(nodes, pods, seed)
    if output == "json":
        click.echo(json.dumps(as_dict(result), indent=2))
    else:
        title = f"longshore demo: {nodes:,} nodes, {pods:,} pods, seed {seed}"
        draw(result, title, Console(file=sys.stdout, highlight=False))


def _run(nodes: int, pods: int, seed: int) -> "Result":
    """Run the scenario: create everything, let the trigger fire, and delete the pods of the set."""
    from longshore.cli.demo_text import Result
    from longshore.sim import Simulation

    chance = random.Random(seed)
    simulation = Simulation(_engine(seed), seed=seed)
    simulation.create(*(_random_node(number, chance) for number in range(1, nodes + 1)), _trigger())
    last_created = 0.0
    members = []
    for number in range(1, pods + 1):
        at = chance.uniform(0, _ARRIVALS)
        pod = _random_pod(number, chance)
        if number % 3 == 1:
            members.append(pod := _member(pod))
            last_created = max(last_created, at)
        simulation.create(pod, at=at)
    begin = time.perf_counter()
    simulation.run(until=_ARRIVALS + _SETTLED)
    before = [_usage(simulation, node) for node in simulation.cluster.nodes.values()]
    held, why = _held(simulation)
    fires = _fire_time(simulation)
    simulation.run(until=fires + _SETTLED)
    seconds = time.perf_counter() - begin
    planned, bound, agree = _plan_followed(simulation)
    after = [_usage(simulation, node) for node in simulation.cluster.nodes.values()]
    events = Counter(event.reason for event in simulation.cluster.events)
    fates = _fates(simulation)
    simulation.delete(*members)
    simulation.run(until=simulation.now + _SETTLED)
    return Result(
        before=before,
        after=after,
        held=held,
        why_held=why,
        last_created=last_created,
        fired=fires,
        planned=planned,
        members_bound=bound,
        as_planned=agree,
        plan_gone=not _entries(simulation),
        ended=simulation.now,
        bound=fates.bound,
        pending=fates.pending,
        preempted=events["Preempted"],
        reasons=fates.reasons,
        # Each attempt ends in one event: Scheduled or FailedScheduling.
        decisions=events["Scheduled"] + events["FailedScheduling"],
        seconds=seconds,
    )


# What is simulated.


def _engine(seed: int) -> "Engine":
    """An engine as in `longshore run`: the default profile, that of pod sets, and the trigger controller."""
    from msgspec.structs import replace

    from longshore.cli.setups import set_up
    from longshore.config import LongshoreSettings
    from longshore.engine import Engine
    from longshore.podset.trigger_controller import TriggerController

    setup = set_up(None)
    looks = itertools.count()
    return Engine(
        replace(setup.configuration, longshore=LongshoreSettings(seed=seed)),
        plugins=setup.plugins,
        controllers=[TriggerController],
        epoch=_EPOCH,
        stopwatch=lambda: next(looks) * _LOOK,
    )


def _trigger() -> "ScheduleTrigger":
    from longshore.api.meta import ObjectMeta
    from longshore.api.pod_set import (
        PLANNING,
        POD_SET_LABEL,
        QUIET_TIME_LABEL,
        ScheduleTrigger,
        ScheduleTriggerSpec,
    )

    labels = {POD_SET_LABEL: SET, QUIET_TIME_LABEL: QUIET}
    return ScheduleTrigger(
        metadata=ObjectMeta(name=TRIGGER, namespace="default", labels=labels),
        spec=ScheduleTriggerSpec(state=PLANNING),
    )


def _random_node(number: int, chance: random.Random) -> "NodeBuilder":
    from longshore.testing import node

    cpu, memory = chance.choice(_NODE_SIZES)
    return node(f"node-{number:03}").allocatable(cpu=cpu, memory=memory)


def _random_pod(number: int, chance: random.Random) -> "PodBuilder":
    from longshore.testing import pod

    ((cpu, memory),) = chance.choices(_POD_SIZES, _POD_SHARES)
    return pod(f"pod-{number:05}").requests(cpu=cpu, memory=memory).priority(chance.choice((0, 0, 0, 1000)))


def _member(pod: "PodBuilder") -> "PodBuilder":
    from longshore.api.pod_set import POD_SET_LABEL, SCHEDULER_NAME

    return pod.labels(**{POD_SET_LABEL: SET}).scheduler(SCHEDULER_NAME)


# What is shown of it.


def _fire_time(simulation: "Simulation") -> float:
    """When the trigger will fire, according to its status."""
    from longshore.api.pod_set import ScheduleTrigger
    from longshore.podset.conditions import seconds_of

    trigger = simulation.cluster.others[ScheduleTrigger][f"default/{TRIGGER}"]
    at = seconds_of(trigger.status.fire_at) if isinstance(trigger, ScheduleTrigger) else None
    if at is None:
        raise ValueError("the trigger does not say when it fires")
    return at - _EPOCH


def _held(simulation: "Simulation") -> tuple[int, str]:
    """The number of pods that wait for the trigger, and the message in the condition of the first one."""
    reasons = [
        condition.message
        for pod in simulation.cluster.pods.values()
        for condition in pod.status.conditions
        if condition.reason == "WaitingForTrigger"
    ]
    return len(reasons), reasons[0] if reasons else ""


def _entries(simulation: "Simulation") -> dict[str, str]:
    from longshore.api.pod_set import SchedulePlan

    plans = simulation.cluster.others.get(SchedulePlan, {}).values()
    return {
        entry.pod: entry.node for plan in plans if isinstance(plan, SchedulePlan) for entry in plan.spec.plan
    }


def _plan_followed(simulation: "Simulation") -> tuple[int, int, int]:
    """The number of pods in the plan, of pods of the set that are bound, and of those bound as planned."""
    from longshore.api.pod_set import POD_SET_LABEL

    entries = _entries(simulation)
    nodes = {
        pod.metadata.name: pod.spec.node_name
        for pod in simulation.cluster.pods.values()
        if pod.spec.node_name and POD_SET_LABEL in pod.metadata.labels
    }
    return len(entries), len(nodes), sum(entries.get(pod) == node for pod, node in nodes.items())


class _Fates(NamedTuple):
    bound: int
    pending: int
    reasons: list[tuple[str, int]]


def _fates(simulation: "Simulation") -> _Fates:
    pods = simulation.cluster.pods.values()
    waiting = [pod for pod in pods if not pod.spec.node_name]
    reasons = Counter(c.message for pod in waiting for c in pod.status.conditions if c.type == "PodScheduled")
    return _Fates(len(pods) - len(waiting), len(waiting), reasons.most_common())


def _usage(simulation: "Simulation", node: "Node") -> "Usage":
    from longshore.cli.demo_text import Usage
    from longshore.cluster import CPU, MEMORY, PODS

    cluster = simulation.engine.cluster
    row = cluster.row(node.metadata.name)
    requested, allocatable = cluster.requested[:, row], cluster.allocatable[:, row]
    numbers = (requested[PODS], requested[CPU], allocatable[CPU], requested[MEMORY], allocatable[MEMORY])
    return Usage(node.metadata.name, *(int(number) for number in numbers))
