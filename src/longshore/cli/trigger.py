"""`longshore trigger`: release or hold the pods of a set."""

import asyncio
from typing import TYPE_CHECKING

import click

from longshore.cli import options

if TYPE_CHECKING:
    from longshore.ask.triggers import Trigger, Triggered, TriggerProgress
    from longshore.cli.trigger_text import TriggerReport

_TIMEOUT = 300.0


@click.command("trigger", epilog="Example: longshore trigger batch -n shop --watch")
@click.argument("name", required=False)
@options.namespace("trigger")
@click.option(
    "--state",
    type=click.Choice(["Schedule", "Planning"]),
    help="Schedule releases the set, Planning holds it.  [default: Schedule]",
)
@click.option("--watch", is_flag=True, help="Print progress until no pod of the set is held.")
@options.duration("--timeout", help="With --watch: give up after this time.  [default: 5m]")
@click.option("--list", "listing", is_flag=True, help="List the triggers, without changing anything.")
@options.all_namespaces
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
    """Release or hold the pods of a set.

    NAME is the name of a ScheduleTrigger, or of a pod set that has one trigger; it may be namespace/name.
    When a trigger is set to Schedule, the whole set is planned and its pods are bound by the plan. When it is
    set back to Planning, pods without a node are held. You need permission to list and patch triggers, and to
    list pods for --watch.
    """
    options.reject(
        (listing and (name or state or watch), "--list cannot be combined with NAME, --state or --watch"),
        (not listing and not name, "give NAME, or --list"),
        (all_namespaces and not listing, "-A requires --list"),
        (all_namespaces and namespace, "-n and -A cannot be combined"),
        (watch and state == "Planning", "--watch requires --state Schedule: Planning holds the pods"),
        (timeout is not None and not watch, "--timeout requires --watch"),
    )

    import msgspec

    from longshore.cli.printing import print_json
    from longshore.cli.trigger_text import TriggerReport, draw

    if name is None:
        found = asyncio.run(_look(kubeconfig, context, namespace, all_namespaces=all_namespaces))
        if output == "json":
            print_json({"triggers": found})
        else:
            draw(found, namespaces=all_namespaces)
        return
    where, name = options.split(name, namespace)
    seconds = (timeout or _TIMEOUT) if watch else None
    with TriggerReport(quiet=output == "json") as report:
        done, pods = asyncio.run(
            _trigger(kubeconfig, context, where, name, state or "Schedule", seconds, report)
        )
    if output == "json":
        print_json({**msgspec.to_builtins(done), "changed": done.changed, "pods": pods})


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
    report: "TriggerReport",
) -> "tuple[Triggered, TriggerProgress | None]":
    """Set the state of the trigger, and then watch the set for at most `seconds` unless that is None."""
    from longshore.ask.triggers import set_state, watch
    from longshore.cli.connection import connected

    async with connected(kubeconfig, context, namespace) as (client, where):
        done = await set_state(client, namespace=where, name=name, state=state)
        report.triggered(done)
        if seconds is None:
            return done, None
        return done, await watch(client, done, timeout=seconds, on_progress=report.progress)
