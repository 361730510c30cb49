"""The sides of a contest on one API server, and one turn of one of them.

Each side is a process of its own, started for its turn and ended with it: nobody else watches the cluster
while a side is measured.
"""

import os
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
from bench.ceiling import Target
from bench.observer import Observer
from bench.stage import EVENTS_WITHIN, NAMESPACE, Stage
from bench.usage import Usage, busy_seconds, usage

from longshore.dev import ControlPlane
from longshore.dev.component import Component, last_trouble
from longshore.errors import UserError

KUBE_SCHEDULER = "kube-scheduler"
CEILING = "ceiling"
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, kw_only=True)
class Side:
    """One that takes part. `program` is its process, given the pods of the turn."""

    name: str
    # What its pods ask for
    scheduler_name: str
    program: Callable[[list[Target]], Component]
    # The ceiling heeds no constraints, and need not write events.
    constrained: bool = True
    events: bool = True
    # What is done before it starts; and, if its time does not count from the first bind, what sets it going,
    # with the time of that.
    prepare: Callable[[], Awaitable[None]] | None = None
    release: Callable[[], Awaitable[float]] | None = None
    # What is wrong with what it leaves behind, beside where the pods are.
    inspect: Callable[[], Awaitable[list[str]]] | None = None
    # A process that it cannot do without: ready before it starts, ended after it, and part of its cost.
    beside: Callable[[], Component] | None = None


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One side's turn as it was seen; times are of `time.perf_counter`."""

    pods: int
    # Or when it was set going, and how long after that the first bind came
    first_bind: float
    to_first_bind: float
    last_bind: float
    last_event: float
    # Pods with a Scheduled event
    events: int
    usage: Usage
    # What of it went to the process beside the scheduler
    cpu_beside: float
    # Of the machine's CPU time, what went to others while this side ran
    disturbance: float
    faults: list[str]

    @property
    def rate(self) -> float:
        """Pods a second, from the first to the last bind."""
        return self.pods / (self.last_bind - self.first_bind)

    @property
    def rate_to_last_event(self) -> float:
        return self.pods / (self.last_event - self.first_bind)


class Contest:
    """Gives the sides their turns on one cluster.

    `checkout` is the Longshore that is measured, with the rights of this account of this manifest of it.
    """

    def __init__(
        self,
        plane: ControlPlane,
        stage: Stage,
        *,
        checkout: Path,
        manifest: str,
        account: str,
        namespace: str,
    ) -> None:
        self._plane = plane
        self._stage = stage
        self._checkout = checkout
        plane.apply(checkout / "deploy" / manifest)
        self._kubeconfig = plane.service_account(account, namespace=namespace)

    def kube_scheduler(self) -> Side:
        scheduler = self._plane.scheduler
        assert scheduler is not None
        return Side(name=KUBE_SCHEDULER, scheduler_name="default-scheduler", program=lambda _pods: scheduler)

    def longshore(self, *command: str, name: str, scheduler_name: str) -> Side:
        """A command of Longshore's that schedules the pods of that name."""
        arguments = [*command, "--kubeconfig", str(self._kubeconfig)]
        return Side(
            name=name,
            scheduler_name=scheduler_name,
            program=lambda _pods: self.command(name, *arguments),
        )

    def command(self, name: str, *command: str, ready: Callable[[], bool] | None = None) -> Component:
        """Any command of the Longshore that is measured."""
        return self._python(name, self._checkout / "src", "-m", "longshore", *command, ready=ready)

    def ceiling(self, in_flight: int, *, events: bool = True) -> Side:
        def client(pods: list[Target]) -> Component:
            file = self._plane.folder / "pods.json"
            file.write_bytes(msgspec.json.encode(pods))
            # With Longshore's rights, so that the server has as much to check.
            arguments = [str(self._kubeconfig), str(file), "--in-flight", str(in_flight)]
            if not events:
                arguments.append("--binds-only")
            return self._python(CEILING, ROOT, "-m", "bench.ceiling", *arguments)

        return Side(name=CEILING, scheduler_name="nobody", program=client, constrained=False, events=events)

    async def turn(self, side: Side) -> Turn:
        """Fresh pods, one side that binds them all, what it cost, and the end of both."""
        made = await self._stage.set_up(side.scheduler_name)
        component = side.program(made)
        started = [component]
        if side.prepare is not None:
            await side.prepare()
        async with Observer(self._stage.client, namespace=NAMESPACE) as observer:
            machine = _Machine(self._plane)
            try:
                if side.beside is not None:
                    started.append(side.beside())
                    started[-1].restart()
                component.start()
                released = None if side.release is None else await side.release()
                await observer.wait_for(len(made), require_running=component.require_running)
                first_bind, last_bind = released or observer.binds[0], observer.binds[-1]
                told, last_event = 0, last_bind
                if side.events:
                    told, last_event = await self._stage.wait_for_events(last_bind=last_bind)
                component.require_running()
                cost = usage(*(each.pid for each in started if each.pid is not None))
                beside = usage(*(each.pid for each in started[1:] if each.pid is not None))
                disturbance = machine.disturbance(cost)
            except UserError as error:
                if component.exit_code is not None:
                    raise  # with the reason
                raise UserError(f"{side.name}: {error}; its log: {last_trouble(component.log)}") from error
            finally:
                for each in started:
                    each.kill()
        faults = await self._stage.faults(made, constrained=side.constrained)
        if side.inspect is not None:
            faults += await side.inspect()
        if len(observer.binds) != len(made) or observer.deleted:
            faults.append(f"{len(observer.binds)} binds and {observer.deleted} deletions were seen")
        if side.events and told < len(made):
            faults.append(f"{len(made) - told} pods had no event {EVENTS_WITHIN:g} s after the last bind")
        await self._stage.clear()
        return Turn(
            pods=len(made),
            first_bind=first_bind,
            to_first_bind=observer.binds[0] - first_bind,
            last_bind=last_bind,
            last_event=last_event,
            events=told,
            usage=cost,
            cpu_beside=beside.cpu_seconds,
            disturbance=disturbance,
            faults=faults,
        )

    def _python(
        self, name: str, path: Path, *arguments: str, ready: Callable[[], bool] | None = None
    ) -> Component:
        paths = [str(path), os.environ.get("PYTHONPATH", "")]
        command = [f"PYTHONPATH={os.pathsep.join(filter(None, paths))}", sys.executable, *arguments]
        return Component(name, Path("/usr/bin/env"), command, folder=self._plane.folder, ready=ready)


class _Machine:
    """The CPU time of the machine from now on, and how much of it is the benchmark's."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._began = time.monotonic()
        self._busy, self._ours = busy_seconds(), self._spent()

    def disturbance(self, side: Usage) -> float:
        """The share of the CPU time there was that others took."""
        others = busy_seconds() - self._busy - (self._spent() - self._ours) - side.cpu_seconds
        there_was = (time.monotonic() - self._began) * (os.cpu_count() or 1)
        return max(0.0, others / there_was)

    def _spent(self) -> float:
        servers = [self._plane.etcd.pid, self._plane.api_server.pid]
        return time.process_time() + sum(usage(pid).cpu_seconds for pid in servers if pid)
