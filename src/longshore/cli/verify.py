"""`longshore verify`: do pods run where their plans say."""

import asyncio
from typing import TYPE_CHECKING

import click

from longshore.cli import options

if TYPE_CHECKING:
    from longshore.ask.verification import Verdict

# Programs look for these sentences.
_SUCCESS = "Planner assignment verification success"
_FAILED = "Planner assignment verification failed. Mismatches {}"
_NO_PLANS = "No scheduleplan instances found"


@click.command("verify", epilog="Example: longshore verify -n shop --strict")
@click.option("-n", "--namespace", help="Namespace of the plans.  [default: the context's]")
@click.option("-A", "--all-namespaces", is_flag=True, help="The plans of all namespaces.")
@click.option(
    "--strict",
    is_flag=True,
    help="Fail also for pods of sets that no plan has, for planned pods without a node, and without plans.",
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
    """Check that pods run where their plans say.

    Every entry of every SchedulePlan is compared with the node of its pod. A pod that has no node yet is
    none of the mismatches. The exit code is 0 if there are none, and 1 otherwise. This takes your own rights
    to list plans and pods.
    """
    if namespace is not None and all_namespaces:
        raise click.UsageError("-n and -A exclude each other", click.get_current_context())

    import msgspec

    from longshore.cli.printing import print_json

    verdict = asyncio.run(_verify(kubeconfig, context, namespace, all_namespaces, strict))
    if output == "json":
        print_json({"success": verdict.holds, **msgspec.to_builtins(verdict)})
    elif verdict.mismatches:
        keys = ("namespace", "pod", "node") if all_namespaces else ("pod", "node")
        items = [{key: getattr(each, key) for key in keys} for each in verdict.mismatches]
        click.echo(_FAILED.format(msgspec.json.format(msgspec.json.encode(items), indent=0).decode()))
        for each in verdict.mismatches:
            planned = f" is planned on {each.node}" if each.node else ""
            click.echo(f"{each.namespace}/{each.pod}{planned}: {each.reason}", err=True)
    else:
        click.echo(_SUCCESS if verdict.plans else _NO_PLANS)
    if not verdict.holds:
        click.get_current_context().exit(1)


async def _verify(
    kubeconfig: str | None, context: str | None, namespace: str | None, everywhere: bool, strict: bool
) -> "Verdict":
    from longshore.ask.verification import verify
    from longshore.cli.connection import connected

    async with connected(kubeconfig, context, "" if everywhere else namespace or None) as (client, where):
        return await verify(client, namespace=where, strict=strict)
