"""`longshore config`: check a configuration file without starting a scheduler."""

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from longshore.cli import options

if TYPE_CHECKING:
    from rich.console import Console

    from longshore.config import Configuration, ProfileConfiguration


@click.group()
def command() -> None:
    """Check configuration files.

    Example: longshore config check scheduler.yaml
    """


@command.command()
@click.argument("file", type=click.Path())
@options.plugins
@options.output
@click.pass_context
def check(context: click.Context, *, file: str, plugins: tuple[str, ...], output: str) -> None:
    """Check a KubeSchedulerConfiguration and show its plugins.

    It prints the plugins of each profile in the order in which they run, with the weights of those that
    score. The plugins are created as in a scheduler, so that invalid arguments are found. Each problem is one
    line with its path in the file, and the exit code is then 1.

    Example: longshore config check scheduler.yaml -o json
    """
    from longshore.cli.printing import warn
    from longshore.cli.setups import set_up
    from longshore.config import InvalidConfiguration
    from longshore.engine import Engine

    try:
        setup = set_up(file, plugins=plugins)
        with setup.telling_where():
            Engine(setup.configuration, plugins=setup.plugins)
    except InvalidConfiguration as error:
        if output == "json":
            _print_json(valid=False, problems=error.problems, warnings=error.warnings)
        else:
            warn(error.warnings, about=file)
            for problem in error.problems:
                click.echo(f"error: {file}: {problem}", err=True)
        context.exit(1)
    if output == "json":
        profiles = [_as_json(profile) for profile in setup.configuration.profiles]
        _print_json(valid=True, problems=(), warnings=setup.warnings, profiles=profiles)
        return

    from rich.console import Console

    warn(setup.warnings, about=file)
    click.echo(f"{file}: valid")
    _draw(setup.configuration, Console(file=sys.stdout, highlight=False))


def _print_json(**content: Any) -> None:
    click.echo(json.dumps(content, indent=2))


def _as_json(profile: "ProfileConfiguration") -> dict[str, Any]:
    import msgspec

    content: dict[str, Any] = msgspec.to_builtins(profile)
    return content


def _draw(configuration: "Configuration", console: "Console") -> None:
    """Print a table for each profile. Plugins that score are shown as NAME=WEIGHT."""
    from rich.table import Table
    from rich.text import Text

    for profile in configuration.profiles:
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        table.add_column("point", no_wrap=True)
        table.add_column("plugins")
        for point, enabled in profile.points.items():
            if enabled:
                names = (
                    f"{plugin.name}={plugin.weight}" if plugin.weight else plugin.name for plugin in enabled
                )
                table.add_row(point, Text(", ".join(names)))
        console.print("", Text(f"profile {profile.scheduler_name}", style="bold"), table, sep="\n")
