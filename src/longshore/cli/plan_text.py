"""What `longshore plan` prints: where pods go, which pods have no node and why, and how full nodes get."""

from collections.abc import Iterable, Iterator, Sequence

import click
from rich.console import Console
from rich.table import Table

from longshore.api.duration import format_duration
from longshore.ask.node_loads import NodeLoad
from longshore.ask.preview import NotPlaced, Preview
from longshore.ask.stored_plan import Entry, StoredPlan
from longshore.cli.bars import Bars
from longshore.cli.printing import table, warn, wide_console

_SOME_NODES = 20
_SOME_PODS = 5


def draw_stored(plan: StoredPlan, *, everything: bool) -> None:
    console = wide_console()
    warn(plan.warnings)
    click.echo(f"plan {plan.name} of set {plan.namespace}/{plan.pod_set}{_made_by(plan)}")
    worth = _worth(plan.objective, plan.bound, plan.gap)
    if worth:
        click.echo(worth)
    there = sum(entry.standing == "there" for entry in plan.entries)
    click.echo(f"pods on their planned node: {there} of {len(plan.entries)}")
    if plan.entries:
        click.echo()
        rows = ((entry.pod, entry.node, _standing(entry)) for entry in plan.entries)
        console.print(_filled(("pod", "planned node", "there"), rows))
    outside = [f"{each.pod} ({each.runs_on or 'pending'})" for each in plan.without_entry]
    if outside:
        click.echo(f"\nnot in the plan: {', '.join(outside)}")
    _paragraph("no node for", _grouped(NotPlaced(each.pod, each.reason) for each in plan.unplaced))
    if plan.conditions:
        click.echo()
        conditions = ((each.type, each.status, each.reason, each.message) for each in plan.conditions)
        console.print(_filled(("condition", "status", "reason", "message"), conditions))
    _draw_nodes(console, plan.nodes, {entry.node for entry in plan.entries}, everything=everything)


def draw_preview(made: Preview, *, everything: bool) -> None:
    console = wide_console()
    warn(made.warnings)
    click.echo(f"preview of set {made.namespace}/{made.pod_set}; nothing is written")
    if made.held_by:
        click.echo(made.held_by)
    whole = ", all or nothing" if made.wanted.all_or_nothing else ""
    budget = format_duration(made.wanted.budget)
    click.echo(f"planned to {made.wanted.objective}{whole}, in {made.seconds:.3f} s of {budget}")
    if made.assignments or made.left_out:
        click.echo(_worth(made.objective, made.bound, made.gap))
    else:
        click.echo("no pod of the set is waiting for a plan")
    if made.assignments:
        click.echo()
        rows = ((each.pod, each.node, "already stored" if each.stored else "") for each in made.assignments)
        console.print(_filled(("pod", "would go to", ""), rows))
    _paragraph("no node for", _grouped(made.left_out))
    _paragraph("not planned", _grouped(made.not_planned))
    _draw_nodes(console, made.nodes, {each.node for each in made.assignments}, everything=everything)


def _made_by(plan: StoredPlan) -> str:
    by = f", by planner {plan.planner}" if plan.planner else ""
    return by + (f" in {plan.seconds:.3f} s" if plan.seconds is not None else "")


def _worth(objective: float | None, bound: float | None, gap: float | None) -> str:
    parts = [("objective", objective, "{:.4g}"), ("bound", bound, "{:.4g}"), ("gap", gap, "{:.1%}")]
    return ", ".join(f"{name} {form.format(value)}" for name, value, form in parts if value is not None)


def _standing(entry: Entry) -> str:
    match entry.standing:
        case "there":
            return "yes"
        case "elsewhere":
            return f"no: on {entry.runs_on}"
        case "pending":
            return "pending"
        case "ended":
            return "ended"
        case "missing":
            return "no such pod"


def _grouped(pods: Iterable[NotPlaced]) -> Iterator[str]:
    """Yield a line for each reason, with the pods that have it."""
    by_reason: dict[str, list[str]] = {}
    for each in pods:
        by_reason.setdefault(each.reason, []).append(each.pod)
    for reason, names in by_reason.items():
        more = f" and {len(names) - _SOME_PODS} more" if len(names) > _SOME_PODS else ""
        yield f"{', '.join(names[:_SOME_PODS])}{more}: {reason}"


def _paragraph(heading: str, lines: Iterable[str]) -> None:
    for number, line in enumerate(lines):
        click.echo(f"  {line}" if number else f"\n{heading}:\n  {line}")


def _draw_nodes(console: Console, nodes: Sequence[NodeLoad], planned: set[str], *, everything: bool) -> None:
    """Print the load of each node now and after the plan, nodes in the plan first."""
    if not nodes:
        return
    ranked = sorted(nodes, key=lambda node: (node.name not in planned, node.name))
    shown = ranked if everything else ranked[:_SOME_NODES]
    bars = Bars(console.encoding)
    loads = table(("node", "pods", "cpu", "memory"))
    for node in shown:
        loads.add_row(
            node.name,
            bars.counts(node.now.pods, node.planned.pods),
            bars.becoming(node.now.cpu, node.planned.cpu, node.allocatable.cpu),
            bars.becoming(node.now.memory, node.planned.memory, node.allocatable.memory),
        )
    click.echo()
    console.print(loads)
    if len(shown) < len(nodes):
        click.echo(f"and {len(nodes) - len(shown)} more: --all shows them")


def _filled(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    filled = table(headings)
    for row in rows:
        filled.add_row(*row)
    return filled
