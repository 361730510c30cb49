"""`longshore pin`: on which node a pod comes back."""

import asyncio
import os
import shlex
from typing import TYPE_CHECKING

import click

from longshore.cli import options

if TYPE_CHECKING:
    from longshore.ask.pin_plan import How, Plan
    from longshore.ask.pins import Overview


@click.command("pin", epilog="Example: longshore pin web-0 worker-1 -n shop")
@click.argument("pod", required=False)
@click.argument("node", required=False)
@click.option(
    "--record",
    "stateful_set",
    metavar="STATEFULSET",
    help="Pin every pod of this StatefulSet where it runs now.",
)
@click.option("--list", "listing", is_flag=True, help="Show what is pinned; nothing is changed.")
@click.option("-n", "--namespace", help="Namespace of the pods.  [default: the context's]")
@click.option("-A", "--all-namespaces", is_flag=True, help="With --list: of all namespaces.")
@click.option(
    "--name",
    metavar="SCHEDULER",
    help="The scheduler's name.  "
    "[default: the pod's own if that is not default-scheduler, else $SCHED_NAME, else rfcustom]",
)
@click.option("--force", is_flag=True, help="Have the pod bound there whatever speaks against it.")
@click.option("--also", is_flag=True, help="Leave the pod pinned to other nodes as well.")
@options.kubeconfig
@options.context
@options.output
def command(
    *,
    pod: str | None,
    node: str | None,
    stateful_set: str | None,
    listing: bool,
    namespace: str | None,
    all_namespaces: bool,
    name: str | None,
    force: bool,
    also: bool,
    kubeconfig: str | None,
    context: str | None,
    output: str,
) -> None:
    """Pin a pod to a node, so that it comes back there.

    POD is its name, or namespace/name. NODE gets a label that names the scheduler, the namespace and the pod;
    other nodes that have the label lose it. The pod is not touched: it goes there when it is scheduled next.
    This takes your own rights to list and patch nodes and to get pods; --list and --record list pods, and
    --record gets the StatefulSet.
    """
    problem = _misfit(
        pod=pod,
        node=node,
        stateful_set=stateful_set,
        listing=listing,
        namespace=namespace,
        all_namespaces=all_namespaces,
        force=force,
        also=also,
    )
    if problem:
        raise click.UsageError(problem, click.get_current_context())

    from longshore.ask.pin_plan import How
    from longshore.cli.pin_text import draw, plan_lines
    from longshore.cli.printing import print_json, warn
    from longshore.pin.labels import DEFAULT_SCHEDULER

    if listing:
        found = asyncio.run(_look(kubeconfig, context, namespace, name, all_namespaces=all_namespaces))
        if output == "json":
            print_json(found)
            return
        warn(found.warnings)
        draw(found.pins)
        return
    namespace, pod = options.split(pod or "", namespace)
    how = How(
        scheduler=name,
        fallback=os.environ.get("SCHED_NAME") or DEFAULT_SCHEDULER,
        force=force,
        also=also,
        kubectl=kubectl(kubeconfig, context),
    )
    done = asyncio.run(_pin(kubeconfig, context, namespace, pod, node or "", stateful_set, how))
    if output == "json":
        print_json({"pins": done.pins, "leftOut": done.left_out, "warnings": done.warnings})
        return
    warn(done.warnings)
    click.echo("\n".join(plan_lines(done)))


def kubectl(kubeconfig: str | None, context: str | None) -> str:
    """How kubectl is called to talk to the same cluster as this command does."""
    words = ["kubectl"]
    if kubeconfig is not None:
        words += ["--kubeconfig", kubeconfig]
    if context is not None:
        words += ["--context", context]
    return shlex.join(words)


def _misfit(
    *,
    pod: str | None,
    node: str | None,
    stateful_set: str | None,
    listing: bool,
    namespace: str | None,
    all_namespaces: bool,
    force: bool,
    also: bool,
) -> str:
    """Which arguments do not go together; empty if they do."""
    if listing and (pod or stateful_set or force or also):
        return "--list goes without POD and NODE, --record, --force and --also"
    if stateful_set and (pod or also):
        return (
            "--record goes without POD and NODE and without --also: each pod is pinned to the node it is on"
        )
    if all_namespaces and not listing:
        return "-A goes with --list only"
    if all_namespaces and namespace:
        return "-n and -A exclude each other"
    if not listing and not stateful_set and not node:
        return "give POD and NODE, or --record STATEFULSET, or --list"
    return ""


async def _look(
    kubeconfig: str | None,
    context: str | None,
    namespace: str | None,
    name: str | None,
    *,
    all_namespaces: bool,
) -> "Overview":
    from longshore.ask.pins import look
    from longshore.cli.connection import connected

    async with connected(kubeconfig, context, "" if all_namespaces else namespace or None) as (client, where):
        return await look(client, namespace=where, scheduler=name)


async def _pin(
    kubeconfig: str | None,
    context: str | None,
    namespace: str | None,
    pod: str,
    node: str,
    stateful_set: str | None,
    how: "How",
) -> "Plan":
    from longshore.ask.pin_writes import pin, record
    from longshore.cli.connection import connected

    async with connected(kubeconfig, context, namespace) as (client, where):
        if stateful_set is not None:
            return await record(client, namespace=where, name=stateful_set, how=how)
        return await pin(client, namespace=where, pod=pod, node=node, how=how)
