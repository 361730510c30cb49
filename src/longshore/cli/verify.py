"""`longshore verify`: check that pods run where their plans placed them."""

import asyncio
from typing import TYPE_CHECKING

import click

from longshore.cli import options

if TYPE_CHECKING:
    from longshore.ask.verification import Verification

# Pallet prints these sentences, and programs look for them.
_SUCCESS = "Planner assignment verification success"
_FAILED = "Planner assignment verification failed. Mismatches {}"
_NO_PLANS = "No scheduleplan instances found"


@click.command("verify", epilog="Example: longshore verify -n shop --strict")
@options.namespace("plans")
@click.option("-A", "--all-namespaces", is_flag=True, help="Check the plans of all namespaces.")
@click.option(
    "--strict",
    is_flag=True,
    help="Also fail if a pod of a set is in no plan, if a planned pod has no node, or if there are no plans.",
)
@options.kubeconfig
@options.context
@options.output
def command(
    *,
    namespace: str | None,
    all_namespaces: bool,
    strict: bool,
    kubeconfig: str | None,
    context: str | None,
    output: str,
) -> None:
    """Check that pods run where their plans placed them.

    Every entry of every SchedulePlan is compared with the node of its pod. A pod that has no node yet is not
    a mismatch. The exit code is 1 if there is a mismatch. You need permission to list plans and pods.
    """
    options.reject((namespace is not None and all_namespaces, "-n and -A cannot be combined"))

    import msgspec

    from longshore.cli.printing import print_json

    found = asyncio.run(_verify(kubeconfig, context, namespace, all_namespaces, strict))
    if output == "json":
        print_json({"success": found.holds, **msgspec.to_builtins(found)})
    elif found.mismatches:
        keys = ("namespace", "pod", "node") if all_namespaces else ("pod", "node")
        items = [{key: getattr(each, key) for key in keys} for each in found.mismatches]
        click.echo(_FAILED.format(msgspec.json.format(msgspec.json.encode(items), indent=0).decode()))
        for each in found.mismatches:
            planned = f" is planned on {each.node}" if each.node else ""
            click.echo(f"{each.namespace}/{each.pod}{planned}: {each.reason}", err=True)
    else:
        click.echo(_SUCCESS if found.plans else _NO_PLANS)
    if not found.holds:
        click.get_current_context().exit(1)


async def _verify(
    kubeconfig: str | None, context: str | None, namespace: str | None, everywhere: bool, strict: bool
) -> "Verification":
    from longshore.ask.verification import verify
    from longshore.cli.connection import connected

    async with connected(kubeconfig, context, "" if everywhere else namespace or None) as (client, where):
        return await verify(client, namespace=where, strict=strict)
