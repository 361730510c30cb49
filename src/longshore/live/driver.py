"""Runs the engine against a real cluster.

Reflectors put changes into one inbox; the loop hands them to the engine, lets it decide for a few
milliseconds, starts the writes it asks for, and goes back to the inbox. Nothing here waits for a write, so
neither a slow API server nor a long queue of pods keeps the watches from being drained.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable

import structlog

from longshore.api import Change, Node, Pod
from longshore.engine import Engine
from longshore.engine.events import Done, Event
from longshore.kube.client import Client
from longshore.kube.recorder import EventRecorder
from longshore.kube.reflector import Reflector
from longshore.kube.resources import NODES, PODS
from longshore.kube.writer import Writer
from longshore.live.effects import Performer

log = structlog.get_logger()

# Decisions are made in slices of this many seconds between looks at the inbox.
_SLICE = 0.005
_CYCLES_AT_ONCE = 8
_STOP_SECONDS = 15.0
# Pods that have ended hold no room: to the scheduler they are deleted.
_NOT_ENDED = "status.phase!=Succeeded,status.phase!=Failed"


class Driver:
    """One scheduler on one cluster."""

    def __init__(
        self,
        engine: Engine,
        client: Client,
        writer: Writer,
        recorder: EventRecorder,
        *,
        on_event: Callable[[Event, float], None] = lambda _event, _now: None,
    ) -> None:
        # Asked before decisions and again before each bind: whether we hold the lease.
        self.may_bind: Callable[[], bool] = lambda: True
        self._engine = engine
        self._inbox: deque[Event] = deque()
        self._wake = asyncio.Event()
        self._on_event = on_event
        self._ready = False
        self._performer = Performer(writer, recorder, on_done=self._put, may_bind=self._holds_lease)
        self._nodes: Reflector[Node] = Reflector(client, NODES, self._put, on_synced=self._wake.set)
        self._pods: Reflector[Pod] = Reflector(
            client, PODS, self._put, on_synced=self._wake.set, field_selector=_NOT_ENDED
        )

    @property
    def synced(self) -> bool:
        return self._nodes.synced.is_set() and self._pods.synced.is_set()

    async def run(self, *, until: asyncio.Event) -> None:
        """Schedule until told to stop; then let the writes under way end."""
        reflectors = [asyncio.create_task(self._nodes.run()), asyncio.create_task(self._pods.run())]
        stopped = asyncio.create_task(until.wait())
        loop = asyncio.create_task(self._loop())
        try:
            # None of these ends by itself, unless it broke: then the process ends with its error.
            done, _ = await asyncio.wait([stopped, loop, *reflectors], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in (loop, stopped, *reflectors):
                task.cancel()
            await asyncio.gather(loop, stopped, *reflectors, return_exceptions=True)
            await self._performer.finish(within=_STOP_SECONDS)
            log.info("stopped", bound=self._performer.bound)

    def nudge(self) -> None:
        """Look again whether there is something to do."""
        self._wake.set()

    def _put(self, event: Change[Pod] | Change[Node] | Done) -> None:
        self._inbox.append(event)
        self._wake.set()

    async def _loop(self) -> None:
        while True:
            self._wake.clear()
            self._receive()
            # The engine must know of every bound pod before it gives away room.
            if self.synced and not self._inbox and not self._ready:
                self._ready = True
                log.info("ready", nodes=len(self._nodes.store), pods=len(self._pods.store))
            if self._may_decide():
                self._decide()
            await self._rest()

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
            for request in self._engine.advance(now=now, max_cycles=_CYCLES_AT_ONCE):
                self._performer.perform(request)
            now = time.monotonic()
            if now > until:
                break

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
        if wait == 0.0:
            await asyncio.sleep(0)
            return
        try:
            async with asyncio.timeout(wait):
                await self._wake.wait()
        except TimeoutError:
            pass
