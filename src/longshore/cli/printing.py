"""JSON, warnings and tables, as commands print them."""

import sys
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_WIDER_THAN_ANY_TABLE = 100_000


def print_json(value: object) -> None:
    """Print a struct, or a container of structs, as JSON with two spaces of indentation."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def warn(warnings: Iterable[str], *, about: str = "") -> None:
    """Print a line on stderr for each warning; `about` is the object or file that they concern."""
    for warning in warnings:
        click.echo(f"warning: {about}: {warning}" if about else f"warning: {warning}", err=True)


def wide_console() -> "Console":
    """A console that cuts and wraps no line, so that every name can be searched for."""
    from rich.console import Console

    return Console(file=sys.stdout, highlight=False, markup=False, width=_WIDER_THAN_ANY_TABLE)


def table(headings: Iterable[str], *, right: Collection[str] = ()) -> "Table":
    """An empty table without lines; the columns named in `right` are aligned to the right."""
    from rich.table import Table

    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in headings:
        made.add_column(heading, no_wrap=True, justify="right" if heading in right else "left")
    return made


def text_table(rows: Iterable[Iterable[str]]) -> Iterable[str]:
    """The rows as lines of plain text, with each column as wide as its longest cell."""
    columns = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*columns, strict=True)]
    for row in columns:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
