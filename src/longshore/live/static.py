"""The static scheduler on a real cluster: one pass over it, or a watch that never ends.

It needs the few rights that the original asks for, and the right to watch. With `list` alone, the daemon
makes one pass after the other.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

import structlog

from longshore.api import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    VolumeAttachment,
)
from longshore.api.meta import ApiObject
from longshore.engine import Engine, Outcome, RecordEvent
from longshore.errors import UserError
from longshore.kube.backlog import MOST_AT_ONCE
from longshore.kube.backoff import sleep_unless
from longshore.kube.client import Client
from longshore.kube.cluster import KubeCluster
from longshore.kube.config import Connection
from longshore.kube.errors import ApiError, ConnectionFailed
from longshore.kube.operations import Operations, Write
from longshore.kube.polling import PolledCluster
from longshore.kube.pool import Pool
from longshore.kube.recorder import EventRecorder
from longshore.kube.writer import Writer
from longshore.live.follower import Follower
from longshore.live.rights import Rights, rights_of

log = structlog.get_logger()

_BINDS_AT_ONCE = 48
# Stopping takes at most this many seconds. Writes, and then events, get a part of them.
_STOP_SECONDS = 4.0
_FINISH_SECONDS = 1.5
# A user who runs one pass wants all of it, including the last event.
_PASS_FINISH_SECONDS = 60.0
_SHORTEST_DELAY = 0.1

_VOLUMES: tuple[type[ApiObject], ...] = (
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    CSINode,
    CSIDriver,
    CSIStorageCapacity,
    VolumeAttachment,
)
_KINDS: tuple[type[ApiObject], ...] = (Namespace, *_VOLUMES)

_C = TypeVar("_C", bound=KubeCluster)


@dataclass(frozen=True, kw_only=True)
class StaticScheduler:
    """`engine` makes an engine, given whether volumes can be read; `on_write` is called with every write."""

    connect: Callable[[], Connection]
    engine: Callable[[bool], Engine]
    on_write: Callable[[Write, Outcome], None]

    async def once(self) -> None:
        """Make one pass. Raises UserError if the API server cannot be reached."""
        async with self._parts() as parts:
            await parts.passes()()

    async def follow(self, stop: asyncio.Event, *, delay: float) -> None:
        """Follow the cluster until `stop` is set.

        `delay`: seconds between two passes, if watching is not allowed.
        """
        work = asyncio.create_task(self._work(stop, delay))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait([work, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        await asyncio.wait([work], timeout=_STOP_SECONDS)
        if work.cancel():
            log.warning("stopped before all writes were done: the API server does not answer")
            await asyncio.wait([work])
            return
        work.result()

    async def _work(self, stop: asyncio.Event, delay: float) -> None:
        async with self._parts() as parts:
            if parts.rights.watch:
                await parts.follow(stop)
                return
            log.warning("pods and nodes cannot be watched: they are listed in each pass", seconds=delay)
            make_pass = parts.passes()
            while not stop.is_set():
                try:
                    await make_pass()
                except UserError as error:
                    # One line is enough: the server may be healthy again at the next pass.
                    log.error("the pass failed", reason=str(error))  # noqa: TRY400
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
        self._pool = pool
        self._make_engine = engine
        self._on_write = on_write

    async def follow(self, stop: asyncio.Event) -> None:
        await self._follower(KubeCluster, finish_within=_FINISH_SECONDS)[0].run(until=stop)

    def passes(self) -> Callable[[], Awaitable[None]]:
        """Return what makes one pass over the cluster each time it is called."""
        follower, cluster = self._follower(PolledCluster, finish_within=_PASS_FINISH_SECONDS)
        follower.watch()

        async def make_pass() -> None:
            await cluster.poll()
            await follower.settle()

        return make_pass

    def _follower(self, cluster_type: type[_C], *, finish_within: float) -> tuple[Follower, _C]:
        engine = self._make_engine(set(_VOLUMES) <= set(self.rights.readable))
        writer = Writer(self._pool, concurrency=_BINDS_AT_ONCE)
        recorder = EventRecorder if self.rights.events else _NoEvents
        cluster = cluster_type(
            self._client,
            Operations(writer, on_write=self._on_write),
            recorder(
                Writer(self._pool, concurrency=MOST_AT_ONCE),
                controller=engine.scheduler_name,
                others_busy=lambda: writer.under_way > 0,
            ),
            reads=engine.reads,
            unable=self.rights.unable,
        )
        kinds: list[type[ApiObject]] = [Pod, Node, *self.rights.readable]
        return Follower(engine, cluster, kinds=kinds, finish_within=finish_within), cluster


class _NoEvents(EventRecorder):
    """Logs why a pod waits, if events cannot be written."""

    def record(self, event: RecordEvent) -> None:
        if event.type == "Warning":
            log.info(f"Pod {event.namespace}/{event.name} waits: {event.note}")


async def _looked_at(client: Client) -> Rights:
    """Return the rights of this process, and log each that is missing once."""
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
        (set(_VOLUMES) <= set(rights.readable), "no right to read volumes: they are not considered"),
        (Namespace in rights.readable, "no right to read namespaces: their labels are unknown"),
    ):
        if not allowed:
            log.warning(lack)
    return rights
