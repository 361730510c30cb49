"""The static scheduler on a real cluster: one pass over it, or a watch that never ends.

It takes the few rights that the original asks for, and watching them. With list alone, the daemon makes a
pass again and again.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import structlog

from longshore.api.meta import ApiObject
from longshore.engine import Engine
from longshore.engine.events import Done, Outcome
from longshore.errors import UserError
from longshore.kube import resources
from longshore.kube.backlog import MOST_AT_ONCE
from longshore.kube.backoff import sleep_unless
from longshore.kube.client import Client
from longshore.kube.codec import Undecodable
from longshore.kube.config import Connection
from longshore.kube.errors import ApiError, ConnectionFailed
from longshore.kube.kinds import NOT_ENDED
from longshore.kube.listing import list_all
from longshore.kube.pool import Pool
from longshore.kube.recorder import EventRecorder, Happening
from longshore.kube.resources import NODES, PODS, Resource
from longshore.kube.writer import Writer
from longshore.live.follower import Driver
from longshore.kube.cluster import Performer
from longshore.kube.polling import Passes
from longshore.live.rights import Rights, rights_of
from longshore.kube.webhook_calls import WebhookCalls
from longshore.kube.operations import Write

log = structlog.get_logger()

_BINDS_AT_ONCE = 48
# Told to stop, it has ended after this, whatever is under way; writes, and then events, get a part of it.
_STOP_SECONDS = 4.0
_FINISH_SECONDS = 1.5
# Whoever asks for one pass wants all of it, down to the last event.
_PASS_FINISH_SECONDS = 60.0
_SHORTEST_DELAY = 0.1

_VOLUMES: tuple[Resource[Any], ...] = (
    resources.PERSISTENT_VOLUMES,
    resources.PERSISTENT_VOLUME_CLAIMS,
    resources.STORAGE_CLASSES,
    resources.CSI_NODES,
    resources.CSI_DRIVERS,
    resources.CSI_STORAGE_CAPACITIES,
    resources.VOLUME_ATTACHMENTS,
)
_KINDS = (resources.NAMESPACES, *_VOLUMES)


@dataclass(frozen=True, kw_only=True)
class StaticScheduler:
    """`engine` makes one, given whether volumes can be read; `on_write` hears of every write."""

    connect: Callable[[], Connection]
    engine: Callable[[bool], Engine]
    on_write: Callable[[Write, Outcome], None]

    async def once(self) -> None:
        """Raises UserError if the API server cannot be talked to; whatever becomes of a pod is told of it."""
        async with self._parts() as parts:
            await parts.make_pass(parts.passes())

    async def for_ever(self, stop: asyncio.Event, *, delay: float) -> None:
        """Until told to stop. `delay`: seconds between passes, if watching is not allowed."""
        work = asyncio.create_task(self._work(stop, delay))
        told = asyncio.create_task(stop.wait())
        await asyncio.wait([work, told], return_when=asyncio.FIRST_COMPLETED)
        told.cancel()
        await asyncio.wait([work], timeout=_STOP_SECONDS)
        if work.cancel():
            log.warning("stopped before all was done: the API server does not answer")
            await asyncio.wait([work])
            return
        work.result()

    async def _work(self, stop: asyncio.Event, delay: float) -> None:
        async with self._parts() as parts:
            if parts.rights.watch:
                await parts.follow(stop)
                return
            log.warning("pods and nodes cannot be watched: they are listed again and again", seconds=delay)
            passes = parts.passes()
            while not stop.is_set():
                try:
                    await parts.make_pass(passes)
                except UserError as error:
                    # Told in one line; the next pass may find the server well again.
                    log.error("the pass came to nothing", reason=str(error))  # noqa: TRY400
                await sleep_unless(stop, max(delay, _SHORTEST_DELAY))

    @asynccontextmanager
    async def _parts(self) -> AsyncIterator["_Parts"]:
        connection = self.connect()
        async with (
            Client(connection) as client,
            Pool(connection, size=_BINDS_AT_ONCE + MOST_AT_ONCE) as pool,
        ):
            rights = await _looked_at(client)
            yield _Parts(client, pool, rights, self.engine, self.on_write)


class _Parts:
    def __init__(
        self,
        client: Client,
        pool: Pool,
        rights: Rights,
        engine: Callable[[bool], Engine],
        on_write: Callable[[Write, Outcome], None],
    ) -> None:
        self.rights = rights
        self._client = client
        self._writer = Writer(pool, concurrency=_BINDS_AT_ONCE)
        self._events = Writer(pool, concurrency=MOST_AT_ONCE)
        self._make_engine = engine
        self._on_write = on_write

    async def follow(self, stop: asyncio.Event) -> None:
        engine = self._engine()
        driver = Driver(
            engine,
            self._client,
            self._writer,
            self._recorder(engine),
            on_write=self._on_write,
            others=(NODES, *self.rights.readable),
            unable=self.rights.unable,
            finish_within=_FINISH_SECONDS,
        )
        await driver.run(until=stop)

    def passes(self) -> Passes:
        engine = self._engine()

        def performer(on_done: Callable[[Done], None], on_room: Callable[[], None]) -> Performer:
            return Performer(
                self._writer,
                self._recorder(engine),
                WebhookCalls(()),
                on_done=on_done,
                on_room=on_room,
                on_write=self._on_write,
                unable=self.rights.unable,
            )

        return Passes(engine, performer)

    async def make_pass(self, passes: Passes) -> None:
        await passes.make(await self._listed(), finish_within=_PASS_FINISH_SECONDS)

    def _engine(self) -> Engine:
        return self._make_engine(set(_VOLUMES) <= set(self.rights.readable))

    def _recorder(self, engine: Engine) -> EventRecorder:
        recorder = EventRecorder if self.rights.events else _NoEvents
        return recorder(
            self._events,
            controller=engine.scheduler_name,
            others_busy=lambda: self._writer.under_way > 0,
        )

    async def _listed(self) -> list[ApiObject]:
        kinds: list[Resource[Any]] = [NODES, PODS, *self.rights.readable]
        selectors = {PODS: {"fieldSelector": NOT_ENDED}}
        try:
            listings = await asyncio.gather(
                *(list_all(self._client, kind, selectors=selectors.get(kind)) for kind in kinds)
            )
        except (ApiError, ConnectionFailed, Undecodable) as error:
            raise UserError(f"cannot look at the cluster: {error}") from error
        return [thing for listing in listings for thing in listing.items.values()]


class _NoEvents(EventRecorder):
    """Where no events can be written, the log at least tells why a pod waits."""

    def record(self, happening: Happening) -> None:
        if happening.type == "Warning":
            log.info(f"Pod {happening.namespace}/{happening.name} waits: {happening.note}")


async def _looked_at(client: Client) -> Rights:
    """Our rights; the missing ones are told, each once."""
    try:
        rights = await rights_of(client, _KINDS)
    except ApiError as error:
        raise UserError(f"the API server refuses us: {error.message}") from error
    except ConnectionFailed as error:
        raise UserError(f"cannot talk to the API server: {error}") from error
    if not rights.bind:
        log.error("no right to bind pods in all namespaces (create pods/binding): see deploy/static.yaml")
    for allowed, lack in (
        (rights.events, "no right to create events.events.k8s.io: with -vv the log says why a pod waits"),
        (rights.status, "no right to patch pods/status: conditions do not say why a pod waits"),
        (set(_VOLUMES) <= set(rights.readable), "no right to read volumes: they are not looked at"),
        (resources.NAMESPACES in rights.readable, "no right to read namespaces: their labels are unknown"),
    ):
        if not allowed:
            log.warning(lack)
    return rights
