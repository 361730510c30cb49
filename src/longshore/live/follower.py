"""Runs the engine against a real cluster.

Reflectors put changes into one inbox; the loop hands them to the engine, lets it decide for a few
milliseconds, starts the writes it asks for, and goes back to the inbox. Nothing here waits for a write, so
neither a slow API server nor a long queue of pods keeps the watches from being drained.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Any

import structlog

from longshore.config import MeasurementSettings
from longshore.engine import Engine, Instruction
from longshore.engine.events import Event, Outcome
from longshore.framework.effects import Effect
from longshore.kube.client import Client
from longshore.kube.kinds import CUSTOM, NOT_ENDED, OTHERS
from longshore.kube.recorder import EventRecorder
from longshore.kube.reflector import Reflector
from longshore.kube.resources import ANNOTATED_PODS, NODES, PODS, Resource
from longshore.kube.writer import Writer
from longshore.live.clock import follow
from longshore.kube.custom_resources import CustomMirror
from longshore.kube.cluster import Performer
from longshore.kube.planner_calls import PlannerCalls
from longshore.kube.webhook_calls import WebhookCalls
from longshore.kube.operations import Write
from longshore.measure.providers import Measuring, make_provider

log = structlog.get_logger()

# Decisions are made in slices of this many seconds between looks at the inbox.
_SLICE = 0.005
_CYCLES_AT_ONCE = 8
_STOP_SECONDS = 10.0
# How often to look whether writes have ended: not every one of them is answered.
_POLL = 0.02


class Driver:
    """One scheduler on one cluster."""

    def __init__(
        self,
        engine: Engine,
        client: Client,
        writer: Writer,
        recorder: EventRecorder,
        webhooks: WebhookCalls | None = None,
        *,
        on_event: Callable[[Event, float], None] = lambda _event, _now: None,
        on_write: Callable[[Write, Outcome], None] | None = None,
        others: Sequence[Resource[Any]] = (NODES, *OTHERS),
        unable: Collection[type[Effect]] = (),
        planners: PlannerCalls | None = None,
        measurements: MeasurementSettings | None = None,
        finish_within: float = _STOP_SECONDS,
    ) -> None:
        """`others`: what is watched besides pods; `unable`: effects that are left undone.

        `measurements`: where they come from, if anything decides by them; there are no decisions before the
        first round of them.

        `finish_within`: seconds for the writes under way when it is to stop, and again for events about them.
        """
        # Asked before decisions and again before each write: whether we hold the lease.
        self.may_bind: Callable[[], bool] = lambda: True
        self._finish_within = finish_within
        self._engine = engine
        self._inbox: deque[Event] = deque()
        self._wake = asyncio.Event()
        self._on_event = on_event
        self._ready = False
        self._stopping = False
        self._performer = Performer(
            writer,
            recorder,
            webhooks or WebhookCalls(()),
            on_done=self._put,
            on_room=self._wake.set,
            on_write=on_write,
            may_write=self._holds_lease,
            unable=unable,
            planners=planners,
        )
        pods = ANNOTATED_PODS if webhooks else PODS
        self._pods = self._mirror(client, pods, field_selector=NOT_ENDED)
        self._reflectors = [self._pods, *(self._mirror(client, each) for each in others)]
        self._known = asyncio.Event()
        self._measuring = (
            None
            if measurements is None
            else Measuring(measurements, make_provider(measurements, client), engine.cluster, self._put)
        )
        self._custom = [CustomMirror(client, self._mirror(client, CUSTOM[kind])) for kind in engine.watches]

    def _mirror(self, client: Client, resource: Resource[Any], *, field_selector: str = "") -> Reflector[Any]:
        return Reflector(client, resource, self._put, on_synced=self._wake.set, field_selector=field_selector)

    @property
    def synced(self) -> bool:
        return all(each.synced.is_set() for each in self._reflectors) and all(c.settled for c in self._custom)

    @property
    def ready(self) -> bool:
        """The engine knows all that was there at the start."""
        return self._ready

    @property
    def reflectors(self) -> Sequence[Reflector[Any]]:
        """Those that there is something to mirror for."""
        return [*self._reflectors, *(each.reflector for each in self._custom if not each.absent)]

    @property
    def events_waiting(self) -> int:
        return len(self._inbox)

    @property
    def writes_in_flight(self) -> int:
        return self._performer.writes_in_flight

    async def run(self, *, until: asyncio.Event) -> None:
        """Schedule until told to stop; then let what is under way end."""
        mirrors: list[Reflector[Any] | CustomMirror] = [*self._reflectors, *self._custom]
        reflectors = [asyncio.create_task(mirror.run()) for mirror in mirrors]
        if self._measuring is not None:
            reflectors.append(asyncio.create_task(self._measure(self._measuring)))
        stopped = asyncio.create_task(until.wait())
        loop = asyncio.create_task(self._loop())
        try:
            # None of these ends by itself, unless it broke: then the process ends with its error.
            done, _ = await asyncio.wait([stopped, loop, *reflectors], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            if self.may_bind():
                self._stopping = True
                self._perform(self._engine.finish(now=time.monotonic()))
                self._wake.set()
                await asyncio.wait([loop], timeout=self._finish_within)
        finally:
            for task in (loop, stopped, *reflectors):
                task.cancel()
            await asyncio.gather(loop, stopped, *reflectors, return_exceptions=True)
            await self._performer.finish(within=self._finish_within)
            log.info("stopped", bound=self._performer.bound)

    async def _measure(self, measuring: Measuring) -> None:
        await self._known.wait()
        await measuring.run()

    def nudge(self) -> None:
        """Look again whether there is something to do."""
        self._wake.set()

    def _put(self, event: Event) -> None:
        self._inbox.append(event)
        self._wake.set()

    async def _loop(self) -> None:
        while not self._ended():
            self._wake.clear()
            follow(self._engine)
            self._receive()
            # The engine must know of every bound pod before it gives away room.
            if not self._ready and not self._inbox and self.synced:
                self._known.set()
                self._ready = self._measuring is None or self._measuring.rounds > 0
                if self._ready:
                    log.info("ready", nodes=self._engine.cluster.node_count, pods=len(self._pods.store))
            if self._stopping:
                self._perform(self._engine.advance(now=time.monotonic(), max_cycles=0))
            elif self._may_decide():
                self._decide()
            await self._rest()

    def _ended(self) -> bool:
        """Told to stop, and all that was under way is done and told."""
        return self._stopping and not self._inbox and not self._performer.is_writing

    def _holds_lease(self) -> bool:
        return self.may_bind()

    def _may_decide(self) -> bool:
        return self._ready and self._performer.has_room and self.may_bind()

    def _receive(self) -> None:
        """Hand over what is in the inbox, for a slice of time at most."""
        now = time.monotonic()
        until = now + _SLICE
        while self._inbox:
            event = self._inbox.popleft()
            self._on_event(event, now)
            self._engine.receive(event, now=now)
            if time.monotonic() > until:
                break

    def _decide(self) -> None:
        now = time.monotonic()
        until = now + _SLICE
        while self._may_decide() and self._due(now):
            self._perform(self._engine.advance(now=now, max_cycles=_CYCLES_AT_ONCE))
            now = time.monotonic()
            if now > until:
                break

    def _perform(self, requests: list[Instruction]) -> None:
        for request in requests:
            self._performer.perform(request)

    def _due(self, now: float) -> bool:
        deadline = self._engine.deadline
        return deadline is not None and deadline <= now

    async def _rest(self) -> None:
        """Give way to the others; sleep until there is something to do."""
        if self._inbox:
            await asyncio.sleep(0)
            return
        deadline = self._engine.deadline if self._may_decide() else None
        wait = None if deadline is None else max(0.0, deadline - time.monotonic())
        if self._stopping or (self._ready and not self._performer.has_room):
            wait = _POLL
        if wait == 0.0:
            await asyncio.sleep(0)
            return
        try:
            async with asyncio.timeout(wait):
                await self._wake.wait()
        except TimeoutError:
            pass
