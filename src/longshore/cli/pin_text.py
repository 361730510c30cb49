"""What `longshore pin` and `longshore unpin` print: what was changed, and a table of pinned pods."""

from collections.abc import Iterator, Sequence

import click

from longshore.ask.pin_plan import Pinned, PinPlan
from longshore.ask.pin_writes import Unpinned
from longshore.ask.pins import ListedPin
from longshore.cli.printing import table, wide_console

_ANY_NAMESPACE = "(any)"
_AGREES = {True: "yes", False: "no", None: ""}


def plan_lines(plan: PinPlan) -> Iterator[str]:
    for pin in plan.pins:
        yield _headline(pin)
        if pin.taken_from:
            yield f"  no longer pinned to {', '.join(pin.taken_from)}"
        if pin.also_on:
            yield f"  still pinned to {', '.join(pin.also_on)}"
        if not pin.exists:
            yield "  the pod does not exist yet"
    for left_out in plan.left_out:
        yield f"not pinned: {left_out.pod}: {left_out.reason}"


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
            f"the older label {done.older_label} is removed from {', '.join(done.older_nodes)}: "
            f"it applied to {done.pod} in every namespace"
        )


def draw(pins: Sequence[ListedPin]) -> None:
    """Print a line for each label and pod. Lines are not cut, so that names can be searched for."""
    if not pins:
        click.echo("no pods are pinned")
        return
    shown = table(("scheduler", "namespace", "pod", "pinned to", "runs on", "agrees", "notes"))
    for pin in pins:
        nodes = ", ".join(f"{node.name} (force)" if node.force else node.name for node in pin.nodes)
        shown.add_row(
            pin.scheduler,
            pin.namespace or _ANY_NAMESPACE,
            pin.pod,
            nodes,
            pin.runs_on,
            _AGREES[pin.agrees],
            "; ".join(pin.notes),
        )
    wide_console().print(shown)
