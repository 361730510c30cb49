"""Puts the parts of the live scheduler together: connection, lease, engine and follower.

A replica without the lease keeps watching, so that it can take over at once. A replica that loses the lease
ends: another one has it then, and a restarted process begins with a clean view of the cluster.
"""

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from functools import partial

import structlog

from longshore.api.meta import ApiObject
from longshore.config import Configuration, LeaderElection, MeasurementSettings
from longshore.engine import Engine
from longshore.errors import UserError
from longshore.framework.seam import FOLLOWED_KINDS
from longshore.kube.backlog import MOST_AT_ONCE
from longshore.kube.client import Client
from longshore.kube.cluster import KubeCluster
from longshore.kube.config import Connection
from longshore.kube.errors import ApiError, ConnectionFailed
from longshore.kube.lease import LeaderElector
from longshore.kube.operations import Operations
from longshore.kube.planner_calls import PlannerCalls
from longshore.kube.pool import Pool
from longshore.kube.recorder import EventRecorder
from longshore.kube.webhook_calls import WebhookCalls
from longshore.kube.writer import Writer
from longshore.live.follower import Follower
from longshore.live.vitals import Vitals
from longshore.measure.providers import make_provider

log = structlog.get_logger()

_BINDS_AT_ONCE = 48


async def schedule(
    connect: Callable[[], Connection],
    engine: Engine,
    configuration: Configuration,
    *,
    stop: asyncio.Event,
    attend: Callable[[Vitals], AbstractContextManager[object]] = nullcontext,
    planners: PlannerCalls | None = None,
    measurements: MeasurementSettings | None = None,
    kinds: Collection[type[ApiObject]] = FOLLOWED_KINDS,
    rights: str = "deploy/scheduler.yaml",
) -> None:
    """Schedule until `stop` is set. `connect` is called once for each event loop that talks to the server.

    `attend` is entered once the scheduler's state can be observed, and left at its end. `kinds` are watched
    besides those that the controllers need; `rights` is the manifest that grants the rights for that.
    `measurements` says where the load of nodes comes from, for plugins that decide by it.
    """
    webhooks = WebhookCalls(configuration.webhooks)
    connection = connect()
    async with (
        Client(connection) as client,
        Pool(connection, size=_BINDS_AT_ONCE + MOST_AT_ONCE) as pool,
        webhooks,
    ):
        await greet(client, rights=rights)
        writer = Writer(pool, concurrency=_BINDS_AT_ONCE)
        operations = Operations(writer, webhooks=webhooks, planners=planners)
        recorder = EventRecorder(
            Writer(pool, concurrency=MOST_AT_ONCE),
            controller=engine.scheduler_name,
            others_busy=lambda: writer.under_way > 0,
        )
        follower = Follower(
            engine,
            KubeCluster(client, operations, recorder, reads=engine.reads),
            kinds=kinds,
            measurements=measurements,
            provider=None if measurements is None else make_provider(measurements, client),
        )
        election = configuration.leader_election
        lease_name = election.resource_name if election.leader_elect else ""
        vitals = Vitals(follower, lease_name=lease_name, stop=stop)
        leading = (
            _leading(connect, election, operations, stop, on_lease=follower.nudge)
            if election.leader_elect
            else nullcontext()
        )
        async with leading, vitals.beating():
            with attend(vitals):
                await follower.run(until=stop)


async def greet(client: Client, *, rights: str) -> None:
    """Make a first request, so that a wrong address, certificate or right shows in one line.

    `rights` is the manifest that grants the rights. Raises UserError.
    """
    try:
        await client.request("GET", "/api/v1/pods", params={"limit": "1"}, timeout=15.0)
    except ApiError as error:
        if error.status in (401, 403):
            raise UserError(f"the API server refuses us: {error.message}; see {rights}") from error
        log.warning("the API server is not healthy", reason=str(error))
    except ConnectionFailed as error:
        raise UserError(f"cannot talk to the API server: {error}") from error


def _call(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    """Call the function on the loop, from another thread."""
    loop.call_soon_threadsafe(function)


@asynccontextmanager
async def _leading(
    connect: Callable[[], Connection],
    election: LeaderElection,
    operations: Operations,
    stop: asyncio.Event,
    *,
    on_lease: Callable[[], None],
) -> AsyncIterator[None]:
    """Allow decisions and writes only while this replica holds the lease; release it after the last write."""
    loop = asyncio.get_running_loop()
    lost = False

    def lose() -> None:
        nonlocal lost
        lost = True
        stop.set()

    elector = LeaderElector(
        lambda: Client(connect()),
        namespace=election.resource_namespace,
        name=election.resource_name,
        lease_duration=election.lease_duration,
        renew_deadline=election.renew_deadline,
        retry_period=election.retry_period,
        identity=f"{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(4)}",
        on_started_leading=partial(_call, loop, on_lease),
        on_stopped_leading=partial(_call, loop, lose),
    )
    operations.may_write = elector.holds_lease
    elector.start()
    try:
        yield
    finally:
        await asyncio.to_thread(elector.stop)
    if lost:
        raise UserError("the lease was lost: another replica leads now")
