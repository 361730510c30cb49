"""`longshore annotate`: write measurements of the nodes into the annotations that agents read."""

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from longshore.cli import options
from longshore.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from longshore.config import MeasurementSettings
    from longshore.kube.config import Connection
    from longshore.measure.annotation_writer import Pass

_INTERVAL = 60.0
# The kubeconfig of kube-safe-scheduler's annotator, in the current folder.
_OLDER_KUBECONFIG = "kubectl.conf"
# Variables that kube-safe-scheduler's annotator reads, which have no effect here.
_WITHOUT_EFFECT = {
    "USE_FORECAST": "forecasts are not made; query Prometheus for them with --measurements",
    "USE_REQ": "usage is written as it was measured",
}


@click.command("annotate", epilog="Example: longshore annotate --prometheus http://prometheus:9090 --once")
@click.option(
    "--prometheus",
    metavar="URL",
    help="URL of Prometheus.  [default: http://$PROM_IP:$PROM_PORT, else http://127.0.0.1:9090]",
)
@options.measurements
@click.option(
    "--only",
    type=click.Choice(["usage", "allocation", "both"]),
    help="What to write.  [default: usage]",
)
@click.option("--allocation", is_flag=True, help="Write what pods request as well, like --only both.")
@click.option(
    "--gpu-resource", default="nvidia.com/gpu", show_default=True, help="The resource that is written as gpu."
)
@click.option(
    "-l", "--selector", default="", help="Label selector of the nodes to annotate, as in kubectl -l."
)
@click.option("--once", is_flag=True, help="Run one pass and exit.")
@click.option("--dry-run", is_flag=True, help="Show what one pass would write, without changing anything.")
@options.duration("--interval", help="Time between passes.  [default: $ANNOTATE_FREQ in seconds, else 1m]")
@options.duration(
    "--max-age", help="Remove load values older than this.  [default: as in the --measurements file, else 5m]"
)
@options.kubeconfig
@options.context
@options.output
def command(
    *,
    prometheus: str | None,
    measurements: str | None,
    only: str | None,
    allocation: bool,
    gpu_resource: str,
    selector: str,
    once: bool,
    dry_run: bool,
    interval: float | None,
    max_age: float | None,
    kubeconfig: str | None,
    context: str | None,
    output: str,
) -> None:
    """Write measurements of the nodes into their annotations.

    The load is written as mean-free-cpu, std-free-cpu, mean-free-memory and std-free-memory, in free
    millicores and bytes, with its time in longshore.dev/measured-at. What pods request is written as
    requested-cpu, free-cpu and so on, for cpu, memory, pods, gpu and ephemeral-storage, with its time in
    longshore.dev/allocated-at. Load values that are too old are removed. You need permission to list and
    patch nodes, and to list pods for --allocation.
    """
    options.reject(
        (allocation and only not in (None, "both"), f"--allocation and --only {only} cannot be combined"),
        (
            prometheus is not None and measurements is not None,
            "--prometheus and --measurements cannot be combined",
        ),
    )
    wanted = only or ("both" if allocation else "usage")

    from msgspec.structs import replace

    from longshore.cli import logs
    from longshore.cli.annotate_text import show_json, show_text

    logs.configure(verbose=False)
    for name, instead in _WITHOUT_EFFECT.items():
        if os.environ.get(name, "").lower() == "true":
            click.echo(f"warning: {name} has no effect: {instead}", err=True)
    settings = _settings(prometheus, measurements)
    settings = replace(settings, max_age=max_age or settings.max_age)
    one_pass = once or dry_run
    every = interval or _frequency() or (settings.interval if measurements else _INTERVAL)
    if wanted != "allocation" and not one_pass and every >= settings.max_age:
        raise UserError(
            f"values would expire before they are renewed: a pass runs every {every:g} s and values expire "
            f"after {settings.max_age:g} s; give a shorter --interval or a longer --max-age"
        )

    def show(done: "Pass") -> None:
        if output == "json":
            show_json(done, whole=one_pass)
        elif one_pass:
            show_text(done)

    asyncio.run(
        _annotate(
            _connection(kubeconfig, context),
            settings,
            usage=wanted != "allocation",
            allocation=wanted != "usage",
            gpu_resource=gpu_resource,
            selector=selector,
            dry_run=dry_run,
            interval=None if one_pass else every,
            show=show,
        )
    )


def _settings(prometheus: str | None, file: str | None) -> "MeasurementSettings":
    """The settings in the file, or a Prometheus that names nodes by their address, as node_exporter does."""
    from longshore.config import load_measurements
    from longshore.config.fields import read_mapping
    from longshore.config.measurements import read_measurements
    from longshore.config.problems import Report

    if file is not None:
        settings = load_measurements(file)
        if settings.provider == "annotations":
            raise UserError(
                f"{file}: provider annotations cannot be used, because annotate writes them: use prometheus, "
                "metrics-server or load-watcher"
            )
        return settings
    host, port = os.environ.get("PROM_IP") or "127.0.0.1", os.environ.get("PROM_PORT") or "9090"
    address = prometheus or f"http://{f'[{host}]' if ':' in host else host}:{port}"
    report = Report()
    content = {"provider": "prometheus", "address": address, "nodeFrom": "internalIP"}
    if port := _exporter_port():
        content["nodePattern"] = f"^(.*):{port}$"
    settings = read_mapping(content, "", report, read_measurements)
    if report.problems:
        source = "--prometheus" if prometheus else "PROM_IP and PROM_PORT"
        raise UserError(f"{source}: {'; '.join(report.problems)}")
    return settings


def _exporter_port() -> str:
    """The port of node_exporter, if only its series count. Ignore a value that is not a number."""
    port = os.environ.get("NODE_EXP_PORT", "")
    if port and not (port.isascii() and port.isdigit()):
        click.echo(f"warning: NODE_EXP_PORT={port} is not a port: ignored", err=True)
        return ""
    return port


def _frequency() -> float | None:
    """The seconds in ANNOTATE_FREQ. Ignore a value that is not a number above 0."""
    text = os.environ.get("ANNOTATE_FREQ", "")
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        click.echo(f"warning: ANNOTATE_FREQ={text} is not a number of seconds above 0: ignored", err=True)
        return None
    return seconds


def _connection(kubeconfig: str | None, context: str | None) -> "Connection":
    """The connection of any command, unless CLUSTER_CONF chooses another."""
    from longshore.kube.config import in_cluster, load

    where = os.environ.get("CLUSTER_CONF", "")
    if kubeconfig is None and context is None and where == "in-cluster":
        return in_cluster()
    if kubeconfig is None and where == "out-of-cluster" and Path(_OLDER_KUBECONFIG).exists():
        return load(_OLDER_KUBECONFIG, context=context)
    return load(kubeconfig, context=context)


async def _annotate(
    connection: "Connection",
    settings: "MeasurementSettings",
    *,
    usage: bool,
    allocation: bool,
    gpu_resource: str,
    selector: str,
    dry_run: bool,
    interval: float | None,
    show: "Callable[[Pass], None]",
) -> None:
    """Run one pass if `interval` is None, else a pass at every interval until a signal stops it."""
    from longshore.cli.annotate_text import progress
    from longshore.cli.signals import stop_event
    from longshore.kube.client import Client
    from longshore.measure.annotation_writer import Annotator
    from longshore.measure.providers import make_provider

    async with Client(connection) as client:
        provider = make_provider(settings, client) if usage else None
        with progress(sys.stderr) as on_progress:
            annotator = Annotator(
                client=client,
                provider=provider,
                allocation=allocation,
                max_age=settings.max_age,
                selector=selector,
                gpu_resource=gpu_resource,
                dry_run=dry_run,
                on_progress=on_progress,
            )
            try:
                if interval is None:
                    done = await annotator.once()
                else:
                    await annotator.run(stop_event(), interval=interval, on_pass=show)
            finally:
                if provider is not None:
                    await provider.close()
    if interval is None:
        show(done)
        if problem := _problem(done):
            raise UserError(problem)


def _problem(done: "Pass") -> str:
    """Why a single pass failed, or an empty string."""
    if done.problem:
        return f"no measurements: {done.problem}"
    if done.failed:
        first = done.failed[0]
        whole = len(done.nodes) + done.unchanged
        return f"{len(done.failed)} of {whole} nodes not annotated: {first.name}: {first.error}"
    return ""
