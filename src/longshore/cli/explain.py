"""`longshore explain`: why a pod is on this node, and why not on others."""

import asyncio
from typing import TYPE_CHECKING, NamedTuple

import click

from longshore.cli import options

if TYPE_CHECKING:
    from longshore.ask.snapshot import Snapshot
    from longshore.engine.answers.records import Decision


@click.command("explain", epilog="Example: longshore explain web -n shop --config scheduler.yaml")
@click.argument("pod")
@options.namespace("pod")
@options.kubeconfig
@options.context
@click.option(
    "--config", type=click.Path(), help="Configuration file of the scheduler, instead of the defaults."
)
@options.plugins
@click.option("--scheduler", metavar="URL", help="Ask the scheduler at this URL what it decided, and why.")
@click.option("--save", type=click.Path(), help="Save the cluster to this file, for --record.")
@click.option(
    "--record",
    type=click.Path(),
    help="Explain from a saved file, or from the output of kubectl get -o json.",
)
@click.option("--all", "everything", is_flag=True, help="Show all nodes, not only the best.")
@options.output
def command(
    *,
    pod: str,
    namespace: str | None,
    kubeconfig: str | None,
    context: str | None,
    config: str | None,
    plugins: tuple[str, ...],
    scheduler: str | None,
    save: str | None,
    record: str | None,
    everything: bool,
    output: str,
) -> None:
    """Explain why a pod is on its node, or why it has no node.

    POD is a name, or namespace/name. Every plugin is run for every node of the cluster as it is now, as far
    as you may read it; nothing is changed. The best nodes are shown with each plugin's weighted score, and
    the rejected nodes with the plugin that rejects them.
    """
    from longshore.ask.outlook import outlook
    from longshore.ask.snapshot_file import read
    from longshore.ask.snapshot_file import save as save_snapshot
    from longshore.cli.printing import print_json, warn
    from longshore.cli.setups import set_up
    from longshore.errors import UserError

    if record is not None and scheduler is not None:
        raise UserError("--record and --scheduler cannot be combined: a saved file has no scheduler to ask")
    setup = set_up(config, plugins=plugins)
    namespace, name = options.split(pod, namespace)
    if record is not None:
        found = _Found(namespace or "default", (), read(record))
    else:
        found = asyncio.run(_look(kubeconfig, context, namespace, name, scheduler))
    view = None
    if found.snapshot is not None:
        subject = found.snapshot.pod(found.namespace, name)
        if subject is None:
            raise UserError(
                f"{record} has no pod {name} in namespace {found.namespace}; -n chooses another namespace"
            )
        if save is not None:
            save_snapshot(found.snapshot, save)
        with setup.telling_where():
            view = outlook(setup, found.snapshot, subject)
    warnings = (*found.warnings, *(view.warnings if view else ()))
    if output == "json":
        print_json({"decisions": found.decisions, "now": view, "warnings": warnings})
        return

    from longshore.cli.explain_text import decision_lines, headline, outlook_lines

    warn(warnings)
    lines = list(headline(view.pod) if view else [f"pod {found.namespace}/{name}"])
    if scheduler is not None:
        lines += ["", *decision_lines(found.decisions)]
    if view is not None:
        lines += ["", *outlook_lines(view, everything=everything)]
    click.echo("\n".join(lines))


class _Found(NamedTuple):
    namespace: str
    decisions: "tuple[Decision, ...]"
    # None if the caller may not read the cluster.
    snapshot: "Snapshot | None"
    warnings: tuple[str, ...] = ()


async def _look(
    kubeconfig: str | None, context: str | None, namespace: str | None, name: str, scheduler: str | None
) -> _Found:
    from longshore.ask.recorded_decisions import ask
    from longshore.ask.snapshot import take
    from longshore.errors import UserError
    from longshore.kube.client import Client
    from longshore.kube.config import load

    connection = load(kubeconfig, context=context)
    namespace = namespace or connection.namespace
    decisions: tuple[Decision, ...] = ()
    if scheduler is not None:
        decisions = await ask(scheduler, connection, namespace=namespace, name=name)
    try:
        async with Client(connection) as client:
            return _Found(namespace, decisions, await take(client, namespace=namespace, name=name))
    except UserError as error:
        if not decisions:
            raise
        return _Found(namespace, decisions, None, (str(error),))
