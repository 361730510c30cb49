"""`longshore pin`: pin a pod to a node with a label."""

import asyncio
import os
import shlex
from typing import TYPE_CHECKING

import click

from longshore.cli import options

if TYPE_CHECKING:
    from longshore.ask.pin_plan import PinOptions, PinPlan
    from longshore.ask.pins import PinList

# Shared with `longshore unpin`.
SCHEDULER_OPTION = click.option(
    "--name",
    metavar="SCHEDULER",
    help="Name of the scheduler.  "
    "[default: the pod's schedulerName unless that is default-scheduler, else $SCHED_NAME, else rfcustom]",
)


@click.command("pin", epilog="Example: longshore pin web-0 worker-1 -n shop")
@click.argument("pod", required=False)
@click.argument("node", required=False)
@click.option(
    "--record",
    "stateful_set",
    metavar="STATEFULSET",
    help="Pin every pod of this StatefulSet to the node that it runs on now.",
)
@click.option("--list", "listing", is_flag=True, help="List pinned pods, without changing anything.")
@options.namespace("pods")
@options.all_namespaces
@SCHEDULER_OPTION
@click.option(
    "--force", is_flag=True, help="Bind the pod there even if the node is cordoned, not ready or full."
)
@click.option("--also", is_flag=True, help="Keep the pod pinned to other nodes as well.")
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
    """Pin a pod to a node, so that it is scheduled there again.

    POD is a name, or namespace/name. NODE gets a label that names the scheduler, the namespace and the pod;
    other nodes lose that label. The pod is not changed: it goes to NODE when it is scheduled next. You need
    permission to list and patch nodes and to get pods; also to list pods for --list and --record, and to get
    the StatefulSet for --record.
    """
    options.reject(
        (
            listing and (pod or stateful_set or force or also),
            "--list cannot be combined with POD and NODE, --record, --force or --also",
        ),
        (
            stateful_set and (pod or also),
            "--record cannot be combined with POD and NODE or with --also: "
            "it pins each pod to the node that it is on",
        ),
        (all_namespaces and not listing, "-A requires --list"),
        (all_namespaces and namespace, "-n and -A cannot be combined"),
        (
            not listing and not stateful_set and not node,
            "give POD and NODE, or --record STATEFULSET, or --list",
        ),
    )

    from longshore.cli.pin_text import draw, plan_lines
    from longshore.cli.printing import print_json, warn

    if listing:
        found = asyncio.run(_look(kubeconfig, context, namespace, name, all_namespaces=all_namespaces))
        if output == "json":
            print_json(found)
            return
        warn(found.warnings)
        draw(found.pins)
        return
    namespace, pod = options.split(pod or "", namespace)
    chosen = pin_options(name, kubeconfig, context, force=force, also=also)
    done = asyncio.run(_pin(kubeconfig, context, namespace, pod, node or "", stateful_set, chosen))
    if output == "json":
        print_json({"pins": done.pins, "leftOut": done.left_out, "warnings": done.warnings})
        return
    warn(done.warnings)
    click.echo("\n".join(plan_lines(done)))


def pin_options(
    scheduler: str | None,
    kubeconfig: str | None,
    context: str | None,
    *,
    force: bool = False,
    also: bool = False,
) -> "PinOptions":
    """Return what the flags of `longshore pin` or `unpin` ask for."""
    from longshore.ask.pin_plan import PinOptions
    from longshore.pin.labels import DEFAULT_SCHEDULER

    return PinOptions(
        scheduler=scheduler,
        fallback=os.environ.get("SCHED_NAME") or DEFAULT_SCHEDULER,
        force=force,
        also=also,
        kubectl=_kubectl(kubeconfig, context),
    )


def _kubectl(kubeconfig: str | None, context: str | None) -> str:
    """Return the kubectl command that talks to the same cluster as this command."""
    words = ["kubectl"]
    if kubeconfig is not None:
        words += ["--kubeconfig", kubeconfig]
    if context is not None:
        words += ["--context", context]
    return shlex.join(words)


async def _look(
    kubeconfig: str | None,
    context: str | None,
    namespace: str | None,
    name: str | None,
    *,
    all_namespaces: bool,
) -> "PinList":
    from longshore.ask.pins import list_pins
    from longshore.cli.connection import connected

    async with connected(kubeconfig, context, "" if all_namespaces else namespace or None) as (client, where):
        return await list_pins(client, namespace=where, scheduler=name)


async def _pin(
    kubeconfig: str | None,
    context: str | None,
    namespace: str | None,
    pod: str,
    node: str,
    stateful_set: str | None,
    chosen: "PinOptions",
) -> "PinPlan":
    from longshore.ask.pin_writes import pin, record
    from longshore.cli.connection import connected

    async with connected(kubeconfig, context, namespace) as (client, where):
        if stateful_set is not None:
            return await record(client, namespace=where, name=stateful_set, options=chosen)
        return await pin(client, namespace=where, pod=pod, node=node, options=chosen)
