"""`longshore unpin`: remove the pins of a pod."""

import asyncio
from typing import TYPE_CHECKING

import click

from longshore.cli import options
from longshore.cli.pin import SCHEDULER_OPTION, pin_options

if TYPE_CHECKING:
    from longshore.ask.pin_plan import PinOptions
    from longshore.ask.pin_writes import Unpinned


@click.command("unpin", epilog="Example: longshore unpin web-0 -n shop")
@click.argument("pod")
@options.namespace("pod")
@SCHEDULER_OPTION
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
    """Remove the pins of a pod from all nodes.

    POD is a name, or namespace/name. The pod stays on its node. Labels in the older form, without the
    namespace, are removed as well. They applied to pods of the same name in other namespaces too, so the
    output lists them. You need permission to list and patch nodes, and to get the pod.
    """
    from longshore.cli.pin_text import unpinned_lines
    from longshore.cli.printing import print_json, warn

    namespace, pod = options.split(pod, namespace)
    chosen = pin_options(name, kubeconfig, context)
    done = asyncio.run(_unpin(kubeconfig, context, namespace, pod, chosen))
    if output == "json":
        print_json(done)
        return
    warn(done.warnings)
    click.echo("\n".join(unpinned_lines(done)))


async def _unpin(
    kubeconfig: str | None, context: str | None, namespace: str | None, pod: str, chosen: "PinOptions"
) -> "Unpinned":
    from longshore.ask.pin_writes import unpin
    from longshore.cli.connection import connected

    async with connected(kubeconfig, context, namespace) as (client, where):
        return await unpin(client, namespace=where, pod=pod, options=chosen)
