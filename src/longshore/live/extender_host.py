"""What stands behind an extender: it follows nodes and pods, and takes in what was measured.

It decides and binds nothing. Controllers of agents have their errands run, such as the writing down of what
was learnt, and providers of measurements are asked as in a scheduler.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import structlog

from longshore.config import MeasurementSettings
from longshore.engine import Engine, Measurements
from longshore.engine.events import Event
from longshore.kube.client import Client
from longshore.kube.kinds import CUSTOM, NOT_ENDED
from longshore.kube.recorder import EventRecorder
from longshore.kube.reflector import Reflector
from longshore.kube.resources import NODES, PODS, Resource
from longshore.kube.writer import Writer
from longshore.live.clock import follow
from longshore.kube.custom_resources import CustomMirror
from longshore.kube.cluster import Performer
from longshore.kube.webhook_calls import WebhookCalls
from longshore.measure.providers import Measuring, make_provider

log = structlog.get_logger()

# The engine is told the time at least this often: plugins may ask it.
_TICK = 1.0
_SOON = 0.005
_STOP_SECONDS = 5.0


class ExtenderHost:
    """`on_measured` hears of measurements as well, once the engine has them."""

    def __init__(
        self,
        engine: Engine,
        client: Client,
        writer: Writer,
        recorder: EventRecorder,
        *,
        measurements: MeasurementSettings,
        on_measured: Callable[[Measurements], None] = lambda _measurements: None,
    ) -> None:
        self._engine = engine
        self._wake = asyncio.Event()
        self._on_measured = on_measured
        self._performer = Performer(writer, recorder, WebhookCalls(()), on_done=self._done)
        self._reflectors = [
            self._mirror(client, NODES),
            self._mirror(client, PODS, field_selector=NOT_ENDED),
        ]
        self._custom = [CustomMirror(client, self._mirror(client, CUSTOM[kind])) for kind in engine.watches]
        self._known = asyncio.Event()
        self._measuring = Measuring(
            measurements, make_provider(measurements, client), engine.cluster, self._measured
        )
        self._ready = False

    def _mirror(self, client: Client, resource: Resource[Any], *, field_selector: str = "") -> Reflector[Any]:
        return Reflector(
            client, resource, self._receive, on_synced=self._wake.set, field_selector=field_selector
        )

    @property
    def hindrance(self) -> str:
        """Why it does not know yet what answers depend on; nothing once it does."""
        if self._ready:
            return ""
        if waiting := self._unlisted:
            return f"{' and '.join(waiting)} are still being listed"
        if any(getattr(each, "unready", False) for each in self._engine.controllers):
            return "what agents have learnt is still being read"
        # One round is enough: a provider that fails is a matter of the agents' policies.
        return "" if self._measuring.rounds else "the first measurements are awaited"

    @property
    def _unlisted(self) -> list[str]:
        waiting = [str(each.resource) for each in self._reflectors if not each.synced.is_set()]
        return waiting + [str(each.reflector.resource) for each in self._custom if not each.settled]

    async def run(self, *, until: asyncio.Event) -> None:
        """Follow the cluster until told to stop; then let what is under way end."""
        mirrors: list[Reflector[Any] | CustomMirror] = [*self._reflectors, *self._custom]
        tasks = [asyncio.create_task(mirror.run()) for mirror in mirrors]
        tasks += [asyncio.create_task(self._measure()), asyncio.create_task(self._act())]
        stopped = asyncio.create_task(until.wait())
        try:
            # None of these ends by itself, unless it broke: then the process ends with its error.
            done, _ = await asyncio.wait([stopped, *tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            if self._ready:
                await self._finish()
        finally:
            for task in (stopped, *tasks):
                task.cancel()
            await asyncio.gather(stopped, *tasks, return_exceptions=True)
            await self._performer.finish(within=_STOP_SECONDS)

    async def _measure(self) -> None:
        await self._known.wait()
        await self._measuring.run()

    def _receive(self, event: Event) -> None:
        self._engine.receive(event, now=time.monotonic())

    async def _finish(self) -> None:
        """What controllers still want to have done is done, as far as it does not take too long."""
        self._perform_all(self._engine.finish(now=time.monotonic()))
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                while self._performer.answers_due:  # noqa: ASYNC110 - an answer may lead to a further effect
                    await asyncio.sleep(_SOON)
        except TimeoutError:
            log.warning("stopped with errands under way")

    def _done(self, event: Event) -> None:
        self._receive(event)
        self._perform_all(self._engine.advance(now=time.monotonic(), max_cycles=0))
        self._wake.set()

    def _measured(self, measurements: Measurements) -> None:
        self._receive(measurements)
        self._on_measured(measurements)
        self._wake.set()

    async def _act(self) -> None:
        while True:
            self._wake.clear()
            follow(self._engine)
            now = time.monotonic()
            if not self._unlisted:
                self._known.set()
                self._perform_all(self._engine.advance(now=now, max_cycles=0))
            if not self._ready and not self.hindrance:
                self._ready = True
                cluster = self._engine.cluster
                log.info("ready", nodes=cluster.node_count, pods=cluster.pod_count)
            due = [at for each in self._engine.controllers if (at := each.deadline) is not None]
            wait = min(_TICK, max(_SOON, min(due, default=now + _TICK) - now))
            try:
                async with asyncio.timeout(wait):
                    await self._wake.wait()
            except TimeoutError:
                pass

    def _perform_all(self, requests: list[Any]) -> None:
        for request in requests:
            self._performer.perform(request)
