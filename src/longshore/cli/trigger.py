"""`longshore trigger`: let the pods of a set go, or hold them."""

import asyncio
from typing import TYPE_CHECKING

import click

from longshore.cli import options

if TYPE_CHECKING:
    from longshore.ask.triggers import Progress, Trigger, Triggered
    from longshore.cli.trigger_text import Report

_TIMEOUT = 300.0


@click.command("trigger", epilog="Example: longshore trigger batch -n shop --watch")
@click.argument("name", required=False)
@click.option("-n", "--namespace", help="Namespace of the trigger.  [default: the context's]")
@click.option(
    "--state",
    type=click.Choice(["Schedule", "Planning"]),
    help="Schedule releases the set, Planning holds it.  [default: Schedule]",
)
@click.option("--watch", is_flag=True, help="Wait until no pod of the set is held.")
@options.duration("--timeout", help="With --watch: wait no longer than this.  [default: 5m]")
@click.option("--list", "listing", is_flag=True, help="Show the triggers; nothing is changed.")
@click.option("-A", "--all-namespaces", is_flag=True, help="With --list: of all namespaces.")
@options.kubeconfig
@options.context
@options.output
def command(
    *,
    name: str | None,
    namespace: str | None,
    state: str | None,
    watch: bool,
    timeout: float | None,
    listing: bool,
    all_namespaces: bool,
    kubeconfig: str | None,
    context: str | None,
    output: str,
) -> None:
    """Release the pods of a set, or hold them.

    NAME is that of a ScheduleTrigger, or of a pod set that has one trigger; it may be namespace/name. The
    whole set is planned when its trigger is set to Schedule, and its pods are bound by the plan. Set back to
    Planning, the trigger holds those that have no node yet. This takes your own rights to list and patch
    triggers; --watch lists pods too.
    """
    problem = _misfit(
        name=name,
        namespace=namespace,
        state=state,
        watch=watch,
        timeout=timeout,
        listing=listing,
        all_namespaces=all_namespaces,
    )
    if problem:
        raise click.UsageError(problem, click.get_current_context())

    import msgspec

    from longshore.cli.printing import print_json
    from longshore.cli.trigger_text import Report, draw

    if name is None:
        found = asyncio.run(_look(kubeconfig, context, namespace, all_namespaces=all_namespaces))
        if output == "json":
            print_json({"triggers": found})
        else:
            draw(found, namespaces=all_namespaces)
        return
    where, name = options.split(name, namespace)
    seconds = (timeout or _TIMEOUT) if watch else None
    with Report(quiet=output == "json") as report:
        done, pods = asyncio.run(
            _trigger(kubeconfig, context, where, name, state or "Schedule", seconds, report)
        )
    if output == "json":
        print_json({**msgspec.to_builtins(done), "changed": done.changed, "pods": pods})


def _misfit(
    *,
    name: str | None,
    namespace: str | None,
    state: str | None,
    watch: bool,
    timeout: float | None,
    listing: bool,
    all_namespaces: bool,
) -> str:
    """Which arguments do not go together; empty if they do."""
    if listing and (name or state or watch):
        return "--list goes without NAME, --state and --watch"
    if not listing and not name:
        return "give NAME, or --list"
    if all_namespaces and not listing:
        return "-A goes with --list only"
    if all_namespaces and namespace:
        return "-n and -A exclude each other"
    if watch and state == "Planning":
        return "--watch goes with --state Schedule only: what is held does not go"
    if timeout is not None and not watch:
        return "--timeout goes with --watch only"
    return ""


async def _look(
    kubeconfig: str | None, context: str | None, namespace: str | None, *, all_namespaces: bool
) -> "tuple[Trigger, ...]":
    from longshore.ask.triggers import list_triggers
    from longshore.cli.connection import connected

    async with connected(kubeconfig, context, "" if all_namespaces else namespace or None) as (client, where):
        return await list_triggers(client, namespace=where)


async def _trigger(
    kubeconfig: str | None,
    context: str | None,
    namespace: str | None,
    name: str,
    state: str,
    seconds: float | None,
    report: "Report",
) -> "tuple[Triggered, Progress | None]":
    """`seconds` to watch the set for, if at all."""
    from longshore.ask.triggers import set_state, watch
    from longshore.cli.connection import connected

    async with connected(kubeconfig, context, namespace) as (client, where):
        done = await set_state(client, namespace=where, name=name, state=state)
        report.triggered(done)
        if seconds is None:
            return done, None
        return done, await watch(client, done, timeout=seconds, tell=report.progress)
