"""What `longshore risk` prints: a line for each resource of a node, the worst nodes first."""

import click
from rich.text import Text

from longshore.ask.risks import NodeRisk, ResourceRisk, Risks
from longshore.cli.bars import Bars
from longshore.cli.printing import table, wide_console

_SOME_NODES = 20
_NUMBERS = ("deviation", "p95", "measured", "risk", "safe-overload", "safe-balance")
_COLUMNS = ("node", "", "used", *_NUMBERS, "")


def draw(risks: Risks, *, everything: bool) -> None:
    click.echo(headline(risks))
    if not risks.nodes:
        click.echo("there are no nodes")
        return
    shown = risks.nodes if everything else risks.nodes[:_SOME_NODES]
    console = wide_console()
    bars = Bars(console.encoding)
    rows = [
        _cells(node, resource, found, bars, first=number == 0)
        for node in shown
        for number, (resource, found) in enumerate(node.resources.items())
    ]
    # Leave out columns that are empty for all nodes, as percentiles often are.
    filled = [place for place in range(len(_COLUMNS)) if any(row[place] for row in rows)]
    drawn = table((_COLUMNS[place] for place in filled), right=_NUMBERS)
    for row in rows:
        drawn.add_row(*(row[place] for place in filled))
    click.echo()
    console.print(drawn)
    if len(shown) < len(risks.nodes):
        click.echo(f"and {len(risks.nodes) - len(shown)} more: --all shows them")
    click.echo()
    click.echo(_summary(risks))


def headline(risks: Risks) -> str:
    """Return a line that says which risk is shown."""
    parts = []
    if risks.demand["cpu"]:
        parts.append(f"{risks.demand['cpu']:,} millicores")
    if risks.demand["memory"]:
        parts.append(f"{_bytes(risks.demand['memory'])} of memory")
    pod = f", with one more pod of {' and '.join(parts)}" if parts else ""
    return f"risk that more than {risks.utilization}% is used{pod}; up to {risks.percentile}% is accepted"


def percent(risk: float) -> str:
    """Format a risk so that a very small one does not look like none, nor a very large one like certainty."""
    if 0 < risk < 0.001:
        return "<0.1%"
    if 0.999 < risk < 1:
        return ">99.9%"
    return f"{risk:.1%}" if 0 < risk < 1 else f"{risk:.0%}"


def _cells(
    node: NodeRisk, resource: str, found: ResourceRisk, bars: Bars, *, first: bool
) -> tuple[str | Text, ...]:
    name = node.name if first else ""
    scores = [str(score) if first else "" for score in node.scores.values()]
    if found.mu is None or found.risk is None:
        note = "rejected" if not found.accepted else ""
        return name, resource, "no fresh measurements", "", "", "", "", *scores, note
    style = "green" if found.accepted and found.risk < 0.01 else "yellow" if found.accepted else "red"
    # Requests replace a mean that is not measured; a forecast may be lower than the mean.
    then = found.mu * found.capacity
    now = then if found.mean is None else min(max(found.mean, 0.0), then)
    return (
        name,
        resource,
        bars.becoming(round(now), round(then), found.capacity),
        "-" if found.deviation is None else f"{found.sigma or 0.0:.1%}",
        "" if found.p95 is None else f"{found.p95 / found.capacity:.0%}",
        "requests" if found.mean is None else "" if found.age is None else f"{found.age:.0f} s ago",
        Text(percent(found.risk), style),
        *scores,
        Text("" if found.accepted else "rejected", "red"),
    )


def _summary(risks: Risks) -> str:
    rejected = sum(not node.accepted for node in risks.nodes)
    unknown = sum(node.risk is None for node in risks.nodes)
    count = len(risks.nodes)
    parts = [f"{count} {'node' if count == 1 else 'nodes'}", f"{rejected} rejected"]
    if unknown:
        parts.append(f"{unknown} without fresh measurements")
    return ", ".join(parts)


def _bytes(amount: int) -> str:
    return f"{amount / 2**30:.4g}Gi" if amount >= 2**30 else f"{amount / 2**20:.4g}Mi"
