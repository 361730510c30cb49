"""Puts the parts of the live scheduler together: connection, lease, engine and driver.

A replica without the lease keeps its stores full, so that it can take over at once. One that loses the lease
ends: another has it then, and a restarted process begins with a clean view of the cluster.
"""

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from functools import partial
from typing import Any

import structlog

from longshore.config import Configuration, LeaderElection, MeasurementSettings
from longshore.engine import Engine
from longshore.errors import UserError
from longshore.kube.backlog import MOST_AT_ONCE
from longshore.kube.client import Client
from longshore.kube.config import Connection
from longshore.kube.errors import ApiError, ConnectionFailed
from longshore.kube.kinds import OTHERS
from longshore.kube.lease import LeaderElector
from longshore.kube.pool import Pool
from longshore.kube.recorder import EventRecorder
from longshore.kube.resources import NODES, Resource
from longshore.kube.writer import Writer
from longshore.live.follower import Driver
from longshore.kube.planner_calls import PlannerCalls
from longshore.live.vitals import Vitals
from longshore.kube.webhook_calls import WebhookCalls

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
    kinds: Sequence[Resource[Any]] = (NODES, *OTHERS),
    rights: str = "deploy/scheduler.yaml",
) -> None:
    """Schedule until `stop` is set. `connect` is called once for each event loop that talks to the server.

    `attend` is entered when there is something to be known about the scheduler, and left at its end. `kinds`
    are followed besides pods and what the controllers ask for; `rights` is the manifest with what we may do.
    `measurements` are of the nodes' load, for plugins that decide by it.
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
        driver = Driver(
            engine,
            client,
            writer,
            EventRecorder(
                Writer(pool, concurrency=MOST_AT_ONCE),
                controller=engine.scheduler_name,
                others_busy=lambda: writer.under_way > 0,
            ),
            webhooks,
            planners=planners,
            measurements=measurements,
            others=kinds,
        )
        election = configuration.leader_election
        vitals = Vitals(driver, lease_name=election.resource_name if election.leader_elect else "", stop=stop)
        leading = _leading(connect, election, driver, stop) if election.leader_elect else nullcontext()
        async with leading, vitals.beating():
            with attend(vitals):
                await driver.run(until=stop)


async def greet(client: Client, *, rights: str) -> None:
    """The first request: what is wrong with address, certificates or rights shows here, in one line.

    `rights` is the manifest with what we may do. Raises UserError.
    """
    try:
        await client.request("GET", "/api/v1/pods", params={"limit": "1"}, timeout=15.0)
    except ApiError as error:
        if error.status in (401, 403):
            raise UserError(f"the API server refuses us: {error.message}; see {rights}") from error
        log.warning("the API server is not well", reason=str(error))
    except ConnectionFailed as error:
        raise UserError(f"cannot talk to the API server: {error}") from error


def _call(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    """Call from another thread."""
    loop.call_soon_threadsafe(function)


@asynccontextmanager
async def _leading(
    connect: Callable[[], Connection], election: LeaderElection, driver: Driver, stop: asyncio.Event
) -> AsyncIterator[None]:
    """Let the driver decide and bind only while we hold the lease; give it back after the last write."""
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
        on_started_leading=partial(_call, loop, driver.nudge),
        on_stopped_leading=partial(_call, loop, lose),
    )
    driver.may_bind = elector.holds_lease
    elector.start()
    try:
        yield
    finally:
        await asyncio.to_thread(elector.stop)
    if lost:
        raise UserError("the lease was lost: another replica leads now")
