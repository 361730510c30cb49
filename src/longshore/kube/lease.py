"""Leader election with a Lease, in its own thread and event loop.

    elector = LeaderElector(lambda: Client(load()), namespace="kube-system", name="longshore", identity=...,
                            on_started_leading=..., on_stopped_leading=...)
    elector.start()

Renewal continues while the scheduler's own loop is busy, and `holds_lease` tells before each bind whether we
may still act. After a lost lease there is no new election: the process ends, and its replacement starts
again.
"""

import asyncio
import contextlib
import math
import threading
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import msgspec
import structlog

from longshore.api.timestamps import format_timestamp
from longshore.errors import UserError
from longshore.kube.election import Election, LeaseRecord, Over, Read, Timing, Wait, Write
from longshore.kube.errors import ApiError, ConnectionFailed

log = structlog.get_logger()


class LeaseClient(Protocol):
    """The method of a client that the election needs."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        timeout: float | None = None,
    ) -> bytes: ...


class LeaseSpec(msgspec.Struct, rename="camel", omit_defaults=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(msgspec.Struct, rename="camel"):
    """The Lease object with all of its metadata, so that a write does not remove what others have set."""

    metadata: dict[str, Any]
    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)
    api_version: str = "coordination.k8s.io/v1"
    kind: str = "Lease"

    @property
    def record(self) -> LeaseRecord:
        return LeaseRecord(
            version=self.metadata["resourceVersion"],
            holder=self.spec.holder_identity or "",
            duration=float(self.spec.lease_duration_seconds or 0),
            transitions=self.spec.lease_transitions or 0,
        )


def boot_time() -> float:
    """Return monotonic seconds that include sleep of the machine, when others may take over the lease."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class LeaderElector:
    """A candidate for one lease. The identity must be unique to this process.

    The callbacks are called from the elector's thread and must be fast. `on_stopped_leading` is called once,
    if the election ends for another reason than `stop`: because the lease was lost, or the elector failed.
    """

    def __init__(
        self,
        connect: Callable[[], AbstractAsyncContextManager[LeaseClient]],
        *,
        namespace: str,
        name: str,
        identity: str,
        lease_duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        on_started_leading: Callable[[], None],
        on_stopped_leading: Callable[[], None],
    ) -> None:
        if not identity:
            raise UserError("the identity of a leader election candidate is empty: give each process its own")
        self._timing = Timing(
            lease_duration=lease_duration, renew_deadline=renew_deadline, retry_period=retry_period
        )
        self._connect = connect
        self._namespace = namespace
        self._name = name
        self._folder = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._on_started_leading = on_started_leading
        self._on_stopped_leading = on_stopped_leading
        self._election = Election(identity, self._timing)
        self._lease: Lease | None = None
        self._log = log.bind(lease=f"{namespace}/{name}", identity=identity)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()
        self._stop_called = False
        # Written by the elector's thread and read by any thread: assigning a number is atomic.
        self._held_until = -math.inf
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, args=(self._loop,), name="lease", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop holding the lease and release it. Waits for the release for a limited time."""
        self._stop_called = True
        if self._loop is None or self._thread is None:
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed: the election has already ended
            self._loop.call_soon_threadsafe(self._stopping.set)
        if self._thread is not threading.current_thread():
            # Enough for a request in progress and the release, plus one more for a busy machine.
            self._thread.join(3 * self._timing.request_limit)

    def holds_lease(self) -> bool:
        """Whether less time than the renew deadline has passed since the last renewal was sent.

        Others wait for the whole lease duration, which is longer. A write that is sent while this is true has
        the difference to arrive.
        """
        return boot_time() < self._held_until and not self._stop_called

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(self._elect())
        except Exception:
            self._log.exception("leader election failed")
        finally:
            self._held_until = -math.inf
            if not self._stop_called:
                self._on_stopped_leading()

    async def _elect(self) -> None:
        leading = False
        release_by = math.inf
        async with self._connect() as client:
            while boot_time() < release_by:
                now = boot_time()
                if self._stopping.is_set() and release_by == math.inf:
                    self._election.release(now=now)
                    release_by = now + self._timing.request_limit
                match self._election.next(now):
                    case Over():
                        break
                    case Wait(until):
                        await self._pause(min(until, release_by) - now)
                    case Read() | Write() as step:
                        await self._take(client, step)
                self._held_until = self._election.held_until
                if self._election.leads and not leading:
                    leading = True
                    self._log.info("leading")
                    if not self._stop_called:
                        self._on_started_leading()
        self._log.info("stopped" if self._stop_called else "lease lost")

    async def _pause(self, seconds: float) -> None:
        if self._stopping.is_set():
            await asyncio.sleep(seconds)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    async def _take(self, client: LeaseClient, step: Read | Write) -> None:
        election = self._election
        sent = boot_time()
        limit = self._timing.request_limit
        if election.holds(sent):
            limit = min(limit, election.held_until - sent)
        try:
            # The client limits only the request itself, not fetching the credentials before it.
            async with asyncio.timeout(limit):
                answer = await self._send(client, step, limit)
            lease = msgspec.json.decode(answer, type=Lease)
        except ApiError as error:
            if error.status == 404 and isinstance(step, Read):
                election.observed(None, now=boot_time())
                return
            self._log_failure(step, error)
            election.failed(sent=sent, now=boot_time())
        except (ConnectionFailed, TimeoutError, UserError, msgspec.DecodeError) as error:
            self._log_failure(step, error)
            election.failed(sent=sent, now=boot_time())
        else:
            self._lease = lease
            if isinstance(step, Read):
                election.observed(lease.record, now=boot_time())
            else:
                election.written(lease.record, sent=sent, now=boot_time())

    def _log_failure(self, step: Read | Write, error: Exception) -> None:
        doing = "reading" if isinstance(step, Read) else "writing"
        reason = str(error) or type(error).__name__
        self._log.warning(f"{doing} the lease failed", reason=reason, leading=self._election.leads)

    async def _send(self, client: LeaseClient, step: Read | Write, limit: float) -> bytes:
        path = f"{self._folder}/{self._name}"
        if isinstance(step, Read):
            return await client.request("GET", path, timeout=limit)
        now = format_timestamp(time.time(), "microseconds")
        spec = LeaseSpec(
            holder_identity=step.holder,
            lease_duration_seconds=step.duration,
            acquire_time=now,
            renew_time=now,
            lease_transitions=step.transitions,
        )
        if step.version is None or self._lease is None:
            lease = Lease(metadata={"name": self._name, "namespace": self._namespace}, spec=spec)
            return await client.request("POST", self._folder, body=msgspec.json.encode(lease), timeout=limit)
        if not step.acquires:
            spec.acquire_time = self._lease.spec.acquire_time
        lease = Lease(metadata=self._lease.metadata | {"resourceVersion": step.version}, spec=spec)
        return await client.request("PUT", path, body=msgspec.json.encode(lease), timeout=limit)
