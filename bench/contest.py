"""The sides of the throughput benchmark, and one turn of one of them.

Each side is a process of its own, started for its turn and ended with it: nobody else watches the cluster
while a side is measured.
"""

import os
import sys
import time
from collections.abc import Callable
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
LONGSHORE = "longshore"
CEILING = "ceiling"
ROOT = Path(__file__).parents[1]
_SCHEDULER_NAMES = {KUBE_SCHEDULER: "default-scheduler", LONGSHORE: "longshore", CEILING: "nobody"}


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One side's turn as it was seen; times are of `time.perf_counter`."""

    pods: int
    first_bind: float
    last_bind: float
    last_event: float
    # Pods with a Scheduled event
    events: int
    usage: Usage
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
    """Gives the sides their turns on one cluster. `checkout` is the Longshore that is measured."""

    def __init__(self, plane: ControlPlane, stage: Stage, *, checkout: Path) -> None:
        self._plane = plane
        self._stage = stage
        self._checkout = checkout
        plane.apply(checkout / "deploy" / "scheduler.yaml")
        self._kubeconfig = plane.service_account("longshore", namespace="kube-system")

    async def kube_scheduler(self) -> Turn:
        scheduler = self._plane.scheduler
        assert scheduler is not None
        return await self._turn(KUBE_SCHEDULER, lambda _: scheduler)

    async def longshore(self) -> Turn:
        run = [
            "-m",
            "longshore",
            "run",
            "--no-leader-elect",
            "--metrics-port=0",
            "--kubeconfig",
            str(self._kubeconfig),
        ]
        name = ["--scheduler-name", _SCHEDULER_NAMES[LONGSHORE]]
        return await self._turn(
            LONGSHORE, lambda _: self._python(LONGSHORE, self._checkout / "src", *run, *name)
        )

    async def ceiling(self, in_flight: int, *, events: bool = True) -> Turn:
        def client(pods: list[Target]) -> Component:
            file = self._plane.folder / "pods.json"
            file.write_bytes(msgspec.json.encode(pods))
            # With Longshore's rights, so that the server has as much to check.
            arguments = [str(self._kubeconfig), str(file), "--in-flight", str(in_flight)]
            if not events:
                arguments.append("--binds-only")
            return self._python(CEILING, ROOT, "-m", "bench.ceiling", *arguments)

        return await self._turn(CEILING, client, events=events)

    def _python(self, name: str, path: Path, *arguments: str) -> Component:
        paths = [str(path), os.environ.get("PYTHONPATH", "")]
        command = [f"PYTHONPATH={os.pathsep.join(filter(None, paths))}", sys.executable, *arguments]
        return Component(name, Path("/usr/bin/env"), command, folder=self._plane.folder)

    async def _turn(
        self, side: str, program: Callable[[list[Target]], Component], *, events: bool = True
    ) -> Turn:
        """Fresh pods, one side that binds them all, what it cost, and the end of both."""
        made = await self._stage.set_up(_SCHEDULER_NAMES[side])
        component = program(made)
        async with Observer(self._stage.client, namespace=NAMESPACE) as observer:
            machine = _Machine(self._plane)
            component.start()
            try:
                await observer.wait_for(len(made), require_running=component.require_running)
                first_bind, last_bind = observer.binds[0], observer.binds[-1]
                told, last_event = 0, last_bind
                if events:
                    told, last_event = await self._stage.wait_for_events(last_bind=last_bind)
                component.require_running()
                assert component.pid is not None
                cost = usage(component.pid)
                disturbance = machine.disturbance(cost)
            except UserError as error:
                if component.exit_code is not None:
                    raise  # with the reason
                raise UserError(f"{side}: {error}; its log: {last_trouble(component.log)}") from error
            finally:
                component.kill()
        faults = await self._stage.faults(made, constrained=side != CEILING)
        if len(observer.binds) != len(made) or observer.deleted:
            faults.append(f"{len(observer.binds)} binds and {observer.deleted} deletions were seen")
        if events and told < len(made):
            faults.append(f"{len(made) - told} pods had no event {EVENTS_WITHIN:g} s after the last bind")
        await self._stage.clear()
        return Turn(
            pods=len(made),
            first_bind=first_bind,
            last_bind=last_bind,
            last_event=last_event,
            events=told,
            usage=cost,
            disturbance=disturbance,
            faults=faults,
        )


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
