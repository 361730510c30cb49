"""What `longshore trigger` prints: what was changed, the progress of the set, and a table of triggers."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

import click
from rich.console import Console
from rich.status import Status

from longshore.api.duration import format_duration
from longshore.ask.triggers import Trigger, Triggered, TriggerProgress
from longshore.cli.printing import table, warn, wide_console


class TriggerReport:
    """Prints progress as it happens. On a terminal the counts change in place, elsewhere each is a line."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._status: Status | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def triggered(self, done: Triggered) -> None:
        if self._quiet:
            return
        warn(done.warnings, about=f"{done.namespace}/{done.name}")
        click.echo(done_line(done))

    def progress(self, progress: TriggerProgress) -> None:
        if self._quiet:
            return
        line = progress_line(progress)
        if not progress.held and self._status is not None:
            self._status.stop()
            self._status = None
        if not progress.held or not sys.stdout.isatty():
            click.echo(line)
        elif self._status is None:
            self._status = Console(file=sys.stdout, highlight=False).status(line)
            self._status.start()
        else:
            self._status.update(line)


def done_line(done: Triggered) -> str:
    of_set = f" of set {done.pod_set}" if done.pod_set else ""
    state = f"is now {done.state}; it was {done.before}" if done.changed else f"was already {done.state}"
    return f"trigger {done.namespace}/{done.name}{of_set} {state}"


def progress_line(progress: TriggerProgress) -> str:
    if not progress.held and not progress.bound:
        return "the set has no pods"
    return f"{progress.held} held, {progress.bound} bound"


def draw(triggers: Sequence[Trigger], *, namespaces: bool) -> None:
    """Print a line for each trigger. Lines are not cut, so that names can be searched for."""
    if not triggers:
        click.echo("no triggers found")
        return
    headings = ("trigger", "set", "state", "held", "bound", "fires at", "notes")
    shown = table(("namespace", *headings) if namespaces else headings, right=("held", "bound"))
    now = datetime.now(UTC)
    for each in triggers:
        cells = (
            each.name,
            each.pod_set,
            each.state,
            "" if each.held is None else str(each.held),
            "" if each.bound is None else str(each.bound),
            fires_at(each.fire_at, now),
            "; ".join(each.notes),
        )
        shown.add_row(*((each.namespace, *cells) if namespaces else cells))
    wide_console().print(shown)


def fires_at(text: str | None, now: datetime) -> str:
    """Return the time and how long it is until then."""
    if not text:
        return ""
    try:
        seconds = (datetime.fromisoformat(text) - now).total_seconds()
    except (ValueError, TypeError):
        # Not in the format that the scheduler writes.
        return text
    return f"{text} (in {format_duration(float(round(seconds)))})" if seconds >= 1 else text
