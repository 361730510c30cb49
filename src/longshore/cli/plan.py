"""`longshore plan`: show the plan of a pod set, or preview one."""

import asyncio
from typing import TYPE_CHECKING

import click

from longshore.cli import options

if TYPE_CHECKING:
    from longshore.ask.snapshot import Snapshot
    from longshore.ask.stored_plan import StoredPlan


@click.command("plan", epilog="Example: longshore plan batch -n shop --preview --objective Pack")
@click.argument("podset", metavar="SET")
@options.namespace("set")
@click.option("--preview", is_flag=True, help="Plan the pods that wait for a node, without writing anything.")
@click.option(
    "--objective",
    type=click.Choice(["Balance", "Pack"]),
    help="With --preview: what to optimize.  [default: the trigger's, else Balance]",
)
@options.duration(
    "--budget", help="With --preview: how long to search.  [default: the trigger's, else 300ms]"
)
@click.option(
    "--config",
    type=click.Path(),
    help="With --preview: configuration file of the scheduler, instead of the defaults.",
)
@options.plugins
@click.option("--all", "everything", is_flag=True, help="Show all nodes, not only the first.")
@options.kubeconfig
@options.context
@options.output
def command(
    *,
    podset: str,
    namespace: str | None,
    preview: bool,
    objective: str | None,
    budget: float | None,
    config: str | None,
    plugins: tuple[str, ...],
    everything: bool,
    kubeconfig: str | None,
    context: str | None,
    output: str,
) -> None:
    """Show the plan of a pod set, or preview one.

    SET is the value of the label planner.ciena.io/pod-set; it may be namespace/name. The set's SchedulePlan
    is compared with the nodes that the pods are on. With --preview, a plan for the pods that are held or
    pending is made as the scheduler would make it now, and only shown. You need permission to list pods,
    triggers and plans and, for a preview, nodes and the other objects that scheduling depends on.
    """
    where, name = options.split(podset, namespace)
    options.reject(
        (
            not preview and (objective or budget is not None or config is not None or plugins),
            "--objective, --budget, --config and --plugin require --preview",
        )
    )

    from longshore.cli.plan_text import draw_preview, draw_stored
    from longshore.cli.printing import print_json

    if not preview:
        stored = asyncio.run(_stored(kubeconfig, context, where, name))
        if output == "json":
            print_json(stored)
        else:
            draw_stored(stored, everything=everything)
        return

    from longshore.ask.preview import planner_setup
    from longshore.ask.preview import preview as make

    setup = planner_setup(config, plugins=plugins)
    where, snapshot = asyncio.run(_snapshot(kubeconfig, context, where, name))
    made = make(
        setup,
        snapshot,
        namespace=where,
        podset=name,
        objective=None if objective is None else "Pack" if objective == "Pack" else "Balance",
        budget=budget,
    )
    if output == "json":
        print_json(made)
    else:
        draw_preview(made, everything=everything)


async def _stored(
    kubeconfig: str | None, context: str | None, namespace: str | None, name: str
) -> "StoredPlan":
    from longshore.ask.stored_plan import stored_plan
    from longshore.cli.connection import connected

    async with connected(kubeconfig, context, namespace) as (client, where):
        return await stored_plan(client, namespace=where, podset=name)


async def _snapshot(
    kubeconfig: str | None, context: str | None, namespace: str | None, name: str
) -> "tuple[str, Snapshot]":
    """Return the namespace of the set, and the cluster."""
    from longshore.ask.preview import take
    from longshore.cli.connection import connected

    async with connected(kubeconfig, context, namespace) as (client, where):
        return where, await take(client, namespace=where, podset=name)
