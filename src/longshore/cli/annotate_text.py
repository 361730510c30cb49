"""What `longshore annotate` prints: what a pass wrote, and its progress."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

import click
import msgspec

from longshore.measure.annotation_writer import Annotated, Pass

_NODES_SHOWN = 20
# Fewer nodes are written too quickly for a progress bar.
_WORTH_A_BAR = 50


def show_text(done: Pass) -> None:
    for node in done.nodes[:_NODES_SHOWN]:
        click.echo(_line(node))
    more = len(done.nodes) - _NODES_SHOWN
    if more > 0:
        click.echo(f"and {more} more: -o json shows them")
    click.echo(_summary(done))


def show_json(done: Pass, *, whole: bool) -> None:
    """Print the pass, indented if it is the `whole` output, else as one line of several."""
    content = msgspec.json.encode(done)
    click.echo(msgspec.json.format(content, indent=2) if whole else content)


@contextmanager
def progress(stream: TextIO) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that takes the numbers of written and of all nodes, and draws a bar on a terminal."""
    if not stream.isatty():
        yield lambda _done, _all: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(file=stream)
    columns = (TextColumn("annotating nodes"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None, visible=False)

        def update(written: int, total: int) -> None:
            bar.update(task, completed=written, total=total, visible=_WORTH_A_BAR <= total != written)

        yield update


def _line(node: Annotated) -> str:
    if node.error:
        return f"{node.name}: not annotated: {node.error}"
    parts = [f"{key} {text}" for key, text in node.set.items()]
    if node.removed:
        parts.append(f"removed {' '.join(node.removed)}")
    return f"{node.name}: {', '.join(parts)}"


def _summary(done: Pass) -> str:
    written = len(done.nodes) - len(done.failed)
    parts = [
        f"{written} {'would be ' if done.dry_run else ''}annotated",
        f"{done.unchanged} unchanged",
    ]
    if done.unmeasured:
        parts.append(f"{done.unmeasured} without measurements")
    if done.failed:
        parts.append(f"{len(done.failed)} failed")
    count = len(done.nodes) + done.unchanged
    return f"{count} {'node' if count == 1 else 'nodes'}: {', '.join(parts)}"
