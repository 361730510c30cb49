"""`longshore unpin`: take a pod's pins away."""

import asyncio
import os
from typing import TYPE_CHECKING

import click

from longshore.cli import options

if TYPE_CHECKING:
    from longshore.ask.pin_plan import How
    from longshore.ask.pin_writes import Unpinned


@click.command("unpin", epilog="Example: longshore unpin web-0 -n shop")
@click.argument("pod")
@click.option("-n", "--namespace", help="Namespace of the pod.  [default: the context's]")
@click.option(
    "--name",
    metavar="SCHEDULER",
    help="The scheduler's name.  "
    "[default: the pod's own if that is not default-scheduler, else $SCHED_NAME, else rfcustom]",
)
@options.kubeconfig
@options.context
@options.output
def command(
    *,
    pod: str,
    namespace: str | None,
    name: str | None,
    kubeconfig: str | None,
    context: str | None,
    output: str,
) -> None:
    """Take the pins of a pod away from all nodes.

    POD is its name, or namespace/name. The pod stays where it runs. Labels of the older form, without the
    namespace, are taken away as well, and this is told: they were for pods of other namespaces too.
    """
    from longshore.ask.pin_plan import How
    from longshore.cli.pin import kubectl
    from longshore.cli.pin_text import unpinned_lines
    from longshore.cli.printing import print_json, warn
    from longshore.pin.labels import DEFAULT_SCHEDULER

    namespace, pod = options.split(pod, namespace)
    how = How(
        scheduler=name,
        fallback=os.environ.get("SCHED_NAME") or DEFAULT_SCHEDULER,
        kubectl=kubectl(kubeconfig, context),
    )
    done = asyncio.run(_unpin(kubeconfig, context, namespace, pod, how))
    if output == "json":
        print_json(done)
        return
    warn(done.warnings)
    click.echo("\n".join(unpinned_lines(done)))


async def _unpin(
    kubeconfig: str | None, context: str | None, namespace: str | None, pod: str, how: "How"
) -> "Unpinned":
    from longshore.ask.pin_writes import unpin
    from longshore.cli.connection import connected

    async with connected(kubeconfig, context, namespace) as (client, where):
        return await unpin(client, namespace=where, pod=pod, how=how)
