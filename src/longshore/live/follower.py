"""The loop that keeps an engine in step with a real cluster: mirror, receive, advance, perform.

Watches put changes into one inbox; the loop hands them to the engine, lets it decide for a few milliseconds,
starts the operations that it asks for, and goes back to the inbox. It never waits for an operation, so
neither a slow API server nor a long queue of pods keeps the watches from being drained.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator

import structlog

from longshore.api.meta import ApiObject
from longshore.config import MeasurementSettings
from longshore.engine import Engine
from longshore.engine.events import Event
from longshore.engine.link import Link
from longshore.framework.seam import FOLLOWED_KINDS
from longshore.kube.cluster import KubeCluster, Mirror
from longshore.live import clock
from longshore.measure.providers import Measuring, Provider

log = structlog.get_logger()

# Decisions are made in slices of this many seconds between looks at the inbox.
_SLICE = 0.005
_CYCLES_AT_ONCE = 8
_STOP_SECONDS = 10.0
# How often to look whether requests have ended: reports have no outcome.
_POLL = 0.02
# An engine that does not decide hears the time at least this often, and at most that often.
_TICK = 1.0
_SOON = 0.005


class Follower:
    """One engine on one cluster.

    `kinds` are watched besides those that the controllers need, which run even if the engine does not decide.
    With `measurements` it waits for the first of them before it decides; they come from `provider`, or else
    from the nodes' annotations. `on_event` is called with each event that the engine has taken in. Events are
    taken in, and decisions are made, for `slice_seconds` at a time. When it is told to stop, controllers get
    `finish_within` seconds to finish, and then requests and events as many.
    """

    def __init__(
        self,
        engine: Engine,
        cluster: KubeCluster,
        *,
        kinds: Collection[type[ApiObject]] = FOLLOWED_KINDS,
        decides: bool = True,
        measurements: MeasurementSettings | None = None,
        provider: Provider | None = None,
        on_event: Callable[[Event, float], None] = lambda _event, _now: None,
        slice_seconds: float = _SLICE,
        finish_within: float = _STOP_SECONDS,
    ) -> None:
        self._engine = engine
        self._cluster = cluster
        self._kinds = tuple(dict.fromkeys((*kinds, *engine.watches)))
        self._decides = decides
        self._on_event = on_event
        self._slice = slice_seconds
        self._finish_within = finish_within
        self._inbox: deque[Event] = deque()
        self._wake = asyncio.Event()
        self._link = Link(cluster, self._put)
        self._synced = False
        self._listed = asyncio.Event()
        self._ready = asyncio.Event()
        self._stopping = False
        self._measuring = (
            None if measurements is None else Measuring(measurements, provider, engine.cluster, self._put)
        )
        cluster.on_room = self._wake.set

    @property
    def ready(self) -> bool:
        """Whether the engine knows everything that decisions depend on."""
        return self._ready.is_set()

    @property
    def hindrance(self) -> str:
        """Why it is not ready yet; empty once it is."""
        if self.ready:
            return ""
        if not self._synced:
            return f"{' and '.join(self._cluster.unlisted)} are still being listed"
        # An engine that decides waits for its controllers by itself.
        if not self._decides and any(each.unready for each in self._engine.controllers):
            return "what agents have learned is still being read"
        # One round is enough: if the provider fails, the policies of the agents say what to do.
        if self._measuring is not None and not self._measuring.rounds:
            return "the first measurements have not arrived"
        return "" if self._listed.is_set() else "the objects that were listed are still being counted"

    @property
    def leads(self) -> bool:
        """Whether it may decide and write."""
        return self._cluster.may_write

    @property
    def mirrors(self) -> Iterator[Mirror]:
        return self._cluster.mirrors

    @property
    def events_waiting(self) -> int:
        return len(self._inbox)

    @property
    def requests_in_flight(self) -> int:
        return self._cluster.requests_in_flight

    async def until_ready(self) -> None:
        await self._ready.wait()

    def nudge(self) -> None:
        """Wake the loop, because there may be something to do."""
        self._wake.set()

    async def run(self, *, until: asyncio.Event) -> None:
        """Follow the cluster until told to stop; then let what is under way end, and close the cluster."""
        self.watch()
        loop = asyncio.create_task(self._follow(self._ended))
        tasks = [
            loop,
            asyncio.create_task(until.wait()),
            asyncio.create_task(self._cluster.broken()),
        ]
        if self._measuring is not None:
            tasks.append(asyncio.create_task(self._measure(self._measuring)))
        try:
            # None of these ends unless it failed: then the process ends with its error.
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            if self._listed.is_set() and self.leads:
                self._stopping = True
                for instruction in self._engine.finish(now=time.monotonic()):
                    self._link.perform(instruction)
                self._wake.set()
                await asyncio.wait([loop], timeout=self._finish_within)
        finally:
            self._link.unwatch()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._cluster.drain(within=self._finish_within)
            self._cluster.close()
            if self._decides:
                log.info("stopped", bound=self._cluster.bound)

    def watch(self) -> None:
        """Begin to watch."""
        self._link.watch(self._kinds, self._on_synced)

    async def settle(self) -> None:
        """Decide until nothing is due and every request is answered; then wait for reports and events."""
        await self._follow(self._settled)
        await self._cluster.drain(within=self._finish_within)

    def _put(self, event: Event) -> None:
        self._inbox.append(event)
        self._wake.set()

    def _on_synced(self) -> None:
        self._synced = True
        self._wake.set()

    async def _measure(self, measuring: Measuring) -> None:
        await self._listed.wait()
        await measuring.run()

    async def _follow(self, ended: Callable[[], bool]) -> None:
        while True:
            self._wake.clear()
            clock.follow(self._engine)
            self._receive(until=time.monotonic() + self._slice)
            self._look_whether_ready()
            if self._stopping or (not self._decides and self._listed.is_set()):
                self._advance(time.monotonic(), max_cycles=0)
            else:
                self._decide()
            if ended():
                return
            await self._rest()

    def _ended(self) -> bool:
        """Whether everything in progress at the stop has ended, and the engine has the outcomes."""
        return self._stopping and not self._inbox and not self._cluster.requests_in_flight

    def _settled(self) -> bool:
        return not (self._inbox or self._link.answers_due or self._is_due(time.monotonic()))

    def _receive(self, *, until: float) -> None:
        """Hand over what is in the inbox, at least one event."""
        now = time.monotonic()
        while self._inbox:
            event = self._inbox.popleft()
            self._engine.receive(event, now=now)
            self._on_event(event, now)
            if time.monotonic() > until:
                break

    def _look_whether_ready(self) -> None:
        if self.ready:
            return
        # The engine must know of every bound pod before it gives away room.
        if self._synced and not self._inbox:
            self._listed.set()
        if not self.hindrance:
            self._ready.set()
            cluster = self._engine.cluster
            log.info("ready", nodes=cluster.node_count, pods=cluster.pod_count)

    def _may_decide(self) -> bool:
        return self._decides and self.ready and self._cluster.has_room and self.leads

    def _decide(self) -> None:
        now = time.monotonic()
        until = now + self._slice
        while self._may_decide() and self._is_due(now):
            self._advance(now, max_cycles=_CYCLES_AT_ONCE)
            now = time.monotonic()
            if now > until:
                break

    def _advance(self, now: float, *, max_cycles: int) -> None:
        for instruction in self._engine.advance(now=now, max_cycles=max_cycles):
            self._link.perform(instruction)

    def _is_due(self, now: float) -> bool:
        deadline = self._engine.deadline
        return deadline is not None and deadline <= now

    async def _rest(self) -> None:
        """Yield to other tasks; sleep until there is something to do."""
        wait = self._wait()
        if wait == 0.0:
            await asyncio.sleep(0)
            return
        try:
            async with asyncio.timeout(wait):
                await self._wake.wait()
        except TimeoutError:
            pass

    def _wait(self) -> float | None:
        """Return the seconds until something is due if nothing comes in; None if nothing is due."""
        if self._inbox:
            return 0.0
        if self._stopping or (self.ready and not self._cluster.has_room):
            return _POLL
        now = time.monotonic()
        if not self._decides:
            due = [at for each in self._engine.controllers if (at := each.deadline) is not None]
            return min(_TICK, max(_SOON, min(due, default=now + _TICK) - now))
        deadline = self._engine.deadline if self._may_decide() else None
        return None if deadline is None else max(0.0, deadline - now)
