"""A contest: several sides bind the same pods on one API server, in turns.

Each side is a process that is started for its turn and ended after it, so that no other process watches the
cluster while a side is measured.
"""

import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

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
    """One participant. `program` returns its process, given the pods of the turn."""

    name: str
    # The schedulerName of its pods.
    scheduler_name: str
    program: Callable[[list[Target]], Component]
    # The ceiling ignores constraints, and can leave out events.
    constrained: bool = True
    events: bool = True
    # Called before it starts.
    prepare: Callable[[], Awaitable[None]] | None = None
    # Called after it has started, and returns the start of its time, if that is not the first bind.
    release: Callable[[], Awaitable[float]] | None = None
    # Returns faults in what it leaves behind, besides the nodes of the pods.
    inspect: Callable[[], Awaitable[list[str]]] | None = None
    # A process that it needs. It is ready before the side starts, ends after it, and is part of its cost.
    companion: Callable[[], Component] | None = None


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What was measured in one turn of a side. Times are of `time.perf_counter`."""

    pods: int
    # The time of the first bind, or of `release`; and how long after that the first bind came.
    first_bind: float
    to_first_bind: float
    last_bind: float
    last_event: float
    # The number of pods with a Scheduled event.
    events: int
    usage: Usage
    # The part of it that the companion took.
    cpu_companion: float
    # The share of the machine's CPU time that other processes took meanwhile.
    disturbance: float
    faults: list[str]

    @property
    def rate(self) -> float:
        """Pods per second, from the first to the last bind."""
        return self.pods / (self.last_bind - self.first_bind)

    @property
    def rate_to_last_event(self) -> float:
        return self.pods / (self.last_event - self.first_bind)


class Rights(NamedTuple):
    """A manifest in the `deploy` folder of Longshore, and a service account that it creates."""

    manifest: str
    account: str
    namespace: str


_SCHEDULER_RIGHTS = Rights("scheduler.yaml", "longshore", "kube-system")


class Contest:
    """Gives the sides their turns on one cluster. `checkout` is the Longshore that is measured."""

    def __init__(
        self, plane: ControlPlane, stage: Stage, *, checkout: Path, rights: Rights = _SCHEDULER_RIGHTS
    ) -> None:
        self.stage = stage
        self._plane = plane
        self._checkout = checkout.resolve()
        plane.apply(self._checkout / "deploy" / rights.manifest)
        self._kubeconfig = plane.service_account(rights.account, namespace=rights.namespace)

    @classmethod
    @asynccontextmanager
    async def on(
        cls,
        plane: ControlPlane,
        nodes: dict[str, str],
        *,
        pods: int,
        checkout: Path,
        workload: str = "basic",
        rights: Rights = _SCHEDULER_RIGHTS,
    ) -> AsyncIterator[Self]:
        """Open a contest over that many pods on the nodes, which come with their zones."""
        async with Stage(plane.kubeconfig, plane.folder, nodes=nodes, pods=pods, workload=workload) as stage:
            yield cls(plane, stage, checkout=checkout, rights=rights)

    def kube_scheduler(self) -> Side:
        scheduler = self._plane.scheduler
        assert scheduler is not None
        return Side(name=KUBE_SCHEDULER, scheduler_name="default-scheduler", program=lambda _pods: scheduler)

    def longshore(self, *command: str, name: str, scheduler_name: str) -> Side:
        """Return a command of Longshore that schedules the pods with this schedulerName."""
        arguments = [*command, "--kubeconfig", str(self._kubeconfig)]
        return Side(
            name=name,
            scheduler_name=scheduler_name,
            program=lambda _pods: self.command(name, *arguments),
        )

    def command(self, name: str, *command: str, ready: Callable[[], bool] | None = None) -> Component:
        """Return any command of the Longshore that is measured."""
        return self._python(name, self._checkout / "src", "-m", "longshore", *command, ready=ready)

    def ceiling(self, in_flight: int, *, events: bool = True) -> Side:
        def client(pods: list[Target]) -> Component:
            file = self._plane.folder / "pods.json"
            file.write_bytes(msgspec.json.encode(pods))
            # It has Longshore's rights, so that the server checks as much.
            arguments = [str(self._kubeconfig), str(file), "--in-flight", str(in_flight)]
            if not events:
                arguments.append("--binds-only")
            return self._python(CEILING, ROOT, "-m", "bench.ceiling", *arguments)

        return Side(name=CEILING, scheduler_name="none", program=client, constrained=False, events=events)

    async def turn(self, side: Side) -> Turn:
        """Create pods, let the side bind them all, measure it, and delete the pods."""
        made = await self.stage.set_up(side.scheduler_name)
        component = side.program(made)
        started = [component]
        if side.prepare is not None:
            await side.prepare()
        async with Observer(self.stage.client, namespace=NAMESPACE) as observer:
            machine = _Machine(self._plane)
            try:
                if side.companion is not None:
                    started.append(side.companion())
                    started[-1].restart()
                component.start()
                released = None if side.release is None else await side.release()
                await observer.wait_for(len(made), require_running=component.require_running)
                first_bind, last_bind = released or observer.binds[0], observer.binds[-1]
                with_event, last_event = 0, last_bind
                if side.events:
                    with_event, last_event = await self.stage.wait_for_events(last_bind=last_bind)
                component.require_running()
                cost = usage(*(each.pid for each in started if each.pid is not None))
                companion = usage(*(each.pid for each in started[1:] if each.pid is not None))
                disturbance = machine.disturbance(cost)
            except UserError as error:
                if component.exit_code is not None:
                    raise  # it has the reason
                raise UserError(f"{side.name}: {error}; its log: {last_trouble(component.log)}") from error
            finally:
                for each in started:
                    each.kill()
        faults = await self.stage.faults(made, constrained=side.constrained)
        if side.inspect is not None:
            faults += await side.inspect()
        if len(observer.binds) != len(made) or observer.deleted:
            faults.append(f"there were {len(observer.binds)} binds and {observer.deleted} deletions")
        if side.events and with_event < len(made):
            faults.append(
                f"{len(made) - with_event} pods had no event {EVENTS_WITHIN:g} s after the last bind"
            )
        await self.stage.clear()
        return Turn(
            pods=len(made),
            first_bind=first_bind,
            to_first_bind=observer.binds[0] - first_bind,
            last_bind=last_bind,
            last_event=last_event,
            events=with_event,
            usage=cost,
            cpu_companion=companion.cpu_seconds,
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
    """The CPU time of the machine from now on, and the part of it that the benchmark takes."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._began = time.monotonic()
        self._busy, self._ours = busy_seconds(), self._spent()

    def disturbance(self, side: Usage) -> float:
        """Return the share of the available CPU time that other processes took."""
        others = busy_seconds() - self._busy - (self._spent() - self._ours) - side.cpu_seconds
        available = (time.monotonic() - self._began) * (os.cpu_count() or 1)
        return max(0.0, others / available)

    def _spent(self) -> float:
        servers = [self._plane.etcd.pid, self._plane.api_server.pid]
        return time.process_time() + sum(usage(pid).cpu_seconds for pid in servers if pid)
