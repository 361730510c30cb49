"""`longshore planner`: plan pod sets for schedulers elsewhere, by gRPC."""

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from longshore.cli import options

if TYPE_CHECKING:
    from longshore.live.planner_host import PlannerHost
    from longshore.serve.planner.service import PlannerServer


@click.command("planner", epilog="Example: longshore planner --listen :7777 --kubeconfig ~/.kube/config")
@click.option(
    "--listen",
    default=":7777",
    show_default=True,
    help="Where to serve; port 0 takes a free one.",
)
@options.kubeconfig
@options.context
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    default=7082,
    show_default=True,
    help="Serve /metrics, /healthz, /livez and /readyz here; 0 takes a free port and logs it.",
)
@click.option("--tls-cert-file", help="Serve plans by TLS with this certificate.")
@click.option("--tls-private-key-file", help="The key of the certificate.")
@click.option("--client-ca-file", help="Hear only callers with a certificate of this authority.")
@click.option("--debug/--no-debug", default=True, help="Log every plan.  [default: yes]")
@click.option("--call-timeout", hidden=True, help="Pallet's; callers have their own deadlines.")
@click.option("--update-worker-period", hidden=True, help="Pallet's; the scheduler keeps the plans.")
@click.option("--parallelism", "--paralleism", type=int, hidden=True, help="Pallet's; one thread plans.")
def command(
    *,
    listen: str,
    kubeconfig: str | None,
    context: str | None,
    metrics_port: int,
    tls_cert_file: str | None,
    tls_private_key_file: str | None,
    client_ca_file: str | None,
    debug: bool,
    call_timeout: str | None,  # noqa: ARG001 - as their help says
    update_worker_period: str | None,  # noqa: ARG001
    parallelism: int | None,  # noqa: ARG001
) -> None:
    """Plan pod sets for schedulers elsewhere, by gRPC.

    Serves planner.SchedulePlanner, health and reflection. A scheduler finds it by the label
    planner.ciena.io/default=enabled of its Service, port 7309; see deploy/planner.yaml.
    """
    import uvloop

    from longshore.cli import logs
    from longshore.cli.signals import stop_event
    from longshore.engine import Engine
    from longshore.errors import UserError
    from longshore.kube.client import Client
    from longshore.kube.config import load
    from longshore.live.planner_host import PlannerHost
    from longshore.live.run import greet
    from longshore.serve import Health, serving
    from longshore.serve.planner.metrics import Requests, registry_of
    from longshore.serve.planner.service import PlannerServer
    from longshore.serve.planner.tls import ServerTLS

    options.require_both(tls_cert_file=tls_cert_file, tls_private_key_file=tls_private_key_file)
    if client_ca_file is not None and tls_cert_file is None:
        raise UserError("--client-ca-file needs --tls-cert-file: callers show certificates by TLS only")
    logs.configure(verbose=debug)
    tls = None
    if tls_cert_file is not None and tls_private_key_file is not None:
        ca = None if client_ca_file is None else Path(client_ca_file)
        tls = ServerTLS(Path(tls_cert_file), Path(tls_private_key_file), ca)

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
    """Follow the cluster, and make plans as soon as all of it is known."""
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
