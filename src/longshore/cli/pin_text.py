"""`longshore pin` and `longshore unpin` for people: what was done, and a table of what is pinned."""

from collections.abc import Iterator, Sequence

import click

from longshore.ask.pin_plan import Pinned, Plan
from longshore.ask.pin_writes import Unpinned
from longshore.ask.pins import Entry
from longshore.cli.printing import table, wide_console

_ANY_NAMESPACE = "(any)"
_AGREES = {True: "yes", False: "no", None: ""}


def plan_lines(plan: Plan) -> Iterator[str]:
    for pin in plan.pins:
        yield _headline(pin)
        if pin.taken_from:
            yield f"  no longer to {', '.join(pin.taken_from)}"
        if pin.also_on:
            yield f"  and still to {', '.join(pin.also_on)}"
        if not pin.exists:
            yield "  there is no such pod yet"
    for left_out in plan.left_out:
        yield f"left out: {left_out.pod}: {left_out.reason}"


def _headline(pin: Pinned) -> str:
    state = "is" if pin.changed else "was already"
    force = ", by force" if pin.force else ""
    return f"{pin.namespace}/{pin.pod} {state} pinned to {pin.node} for scheduler {pin.scheduler}{force}"


def unpinned_lines(done: Unpinned) -> Iterator[str]:
    name = f"{done.namespace}/{done.pod}"
    if done.nodes:
        yield f"{name} is no longer pinned to {', '.join(done.nodes)} for scheduler {done.scheduler}"
    if done.older_nodes:
        yield (
            f"the older label {done.older_label} is taken off {', '.join(done.older_nodes)}: "
            f"it was for every {done.pod}, in whatever namespace"
        )


def draw(entries: Sequence[Entry]) -> None:
    """A line for each label and pod, as wide as it has to be: names are there to be searched for."""
    if not entries:
        click.echo("nothing is pinned here")
        return
    shown = table(("scheduler", "namespace", "pod", "pinned to", "runs on", "agrees", "notes"))
    for entry in entries:
        nodes = ", ".join(f"{node.name} (force)" if node.force else node.name for node in entry.nodes)
        shown.add_row(
            entry.scheduler,
            entry.namespace or _ANY_NAMESPACE,
            entry.pod,
            nodes,
            entry.runs_on,
            _AGREES[entry.agrees],
            "; ".join(entry.notes),
        )
    wide_console().print(shown)
