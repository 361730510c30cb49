"""`longshore planner`: plan pod sets for other schedulers, over gRPC."""

import asyncio
import contextlib
from typing import TYPE_CHECKING

import click

from longshore.cli import options

if TYPE_CHECKING:
    from longshore.live.planner_host import PlannerHost
    from longshore.serve.planner.service import PlannerServer
    from longshore.serve.tls_files import TLSFiles


@click.command("planner", epilog="Example: longshore planner --listen :7777 --kubeconfig ~/.kube/config")
@click.option(
    "--listen",
    default=":7777",
    show_default=True,
    help="Address to serve plans on; port 0 takes a free port and logs it.",
)
@options.kubeconfig
@options.context
@options.metrics_port(7082)
@options.tls(
    serve="Serve plans over TLS with this certificate.",
    client_ca="Accept only clients with a certificate signed by this CA.",
)
@click.option("--debug/--no-debug", default=True, help="Log every plan.  [default: yes]")
@click.option("--call-timeout", hidden=True, help="Pallet's flag; ignored, because callers set deadlines.")
@click.option(
    "--update-worker-period", hidden=True, help="Pallet's flag; ignored, because the scheduler keeps plans."
)
@click.option("--parallelism", "--paralleism", type=int, hidden=True, help="Pallet's flag; ignored.")
def command(
    *,
    listen: str,
    kubeconfig: str | None,
    context: str | None,
    metrics_port: int,
    tls: "TLSFiles | None",
    debug: bool,
    call_timeout: str | None,  # noqa: ARG001 - ignored, as its help says
    update_worker_period: str | None,  # noqa: ARG001
    parallelism: int | None,  # noqa: ARG001
) -> None:
    """Plan pod sets for other schedulers, over gRPC.

    It serves planner.SchedulePlanner, health and reflection. Schedulers find it by a Service with the label
    planner.ciena.io/default=enabled and port 7309; see deploy/planner.yaml.
    """
    import uvloop

    from longshore.cli import logs
    from longshore.cli.signals import stop_event
    from longshore.engine import Engine
    from longshore.kube.client import Client
    from longshore.kube.config import load
    from longshore.live.planner_host import PlannerHost
    from longshore.live.run import greet
    from longshore.serve import Health, serving
    from longshore.serve.planner.metrics import Requests, registry_of
    from longshore.serve.planner.service import PlannerServer

    logs.configure(verbose=debug)

    async def run() -> None:
        requests = Requests()
        async with Client(load(kubeconfig, context=context)) as client:
            await greet(client, rights="deploy/planner.yaml")
            host = PlannerHost(Engine(scheduler_name="planner"), client, on_plan=requests.planned)
            health = Health(live=host.live_checks, ready=host.ready_checks)
            with serving(registry_of(requests, lambda: host.mirrors), health, port=metrics_port):
                async with PlannerServer(host.build, listen=listen, tls=tls, requests=requests) as server:
                    await _plan(host, server, stop_event())

    uvloop.run(run())


async def _plan(host: "PlannerHost", server: "PlannerServer", stop: asyncio.Event) -> None:
    """Follow the cluster until a signal stops it, and make plans once the cluster is listed completely."""
    following = asyncio.create_task(host.run())
    stopped = asyncio.create_task(stop.wait())
    ready = asyncio.create_task(host.ready())
    await asyncio.wait([following, stopped, ready], return_when=asyncio.FIRST_COMPLETED)
    if ready.done():
        await server.ready()
        await asyncio.wait([following, stopped], return_when=asyncio.FIRST_COMPLETED)
    host.stop()
    for task in (following, ready, stopped):
        if task.done():
            task.result()
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await following
