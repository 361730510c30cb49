"""Options that several commands have in common."""

from collections.abc import Callable
from typing import Any

import click

from longshore.errors import UserError


def duration(*names: str, help: str) -> Callable[[Any], Any]:  # noqa: A002 - the name click uses
    """An option that is given as Go writes durations; the command gets seconds, or None."""
    return click.option(*names, metavar="DURATION", callback=_seconds, help=help)


def _seconds(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    from longshore.api.duration import parse_duration

    seconds = None if value is None else parse_duration(value)
    if value is not None and (seconds is None or seconds <= 0):
        raise click.BadParameter(f"{value!r} is no duration above 0, such as 300ms, 2s or 1m30s", ctx, param)
    return seconds


kubeconfig = click.option(
    "--kubeconfig", type=click.Path(), help="File to connect with, instead of $KUBECONFIG and the like."
)
context = click.option("--context", help="Context of the kubeconfig, instead of the current one.")

measurements = click.option(
    "--measurements",
    type=click.Path(),
    metavar="FILE",
    help="Where measurements come from: the keys of longshore.measurements in a file.",
)

output = click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Text for people, or JSON for programs.",
)

plugins = click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="FILE.py",
    help="A file of plugins of your own, or module:attribute. May be repeated.",
)


def split(name: str, namespace: str | None) -> tuple[str | None, str]:
    """The namespace, if one is given, and the name: NAME -n NAMESPACE and NAMESPACE/NAME mean the same."""
    before, _, rest = name.rpartition("/")
    if before and namespace and before != namespace:
        raise click.UsageError(
            f"{name} and -n {namespace} name two namespaces: give one of them", click.get_current_context()
        )
    return before or namespace or None, rest


def require_both(**flags: str | None) -> None:
    """Raise UserError if only one of two flags is given."""
    if len({value is None for value in flags.values()}) > 1:
        names = " and ".join(f"--{name.replace('_', '-')}" for name in flags)
        raise UserError(f"{names} go together: give both, or none")
