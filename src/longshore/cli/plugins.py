"""`longshore plugins`: show the plugins of each profile without starting a scheduler."""

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from longshore.cli import options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from longshore.config.registry import Registered
    from longshore.framework.profile import Profile

_OURS = "longshore"


@click.command("plugins", epilog="Example: longshore plugins --config scheduler.yaml --plugin my_plugin.py")
@click.option(
    "--config", type=click.Path(), help="Configuration file of the scheduler, instead of the defaults."
)
@options.plugins
@options.output
def command(*, config: str | None, plugins: tuple[str, ...], output: str) -> None:
    """Show which plugins run at each extension point.

    Plugins are listed in the order in which they run, with the weights of those that score and the source of
    those that are not part of Longshore.
    """
    from longshore.cli.printing import warn
    from longshore.cli.setups import set_up
    from longshore.engine import Engine

    setup = set_up(config, plugins=plugins)
    with setup.telling_where():
        profiles = tuple(Engine(setup.configuration, plugins=setup.plugins).profiles.values())
    called = {name for profile in profiles for enabled in profile.enabled.values() for name, _ in enabled}
    idle = [plugin for name, plugin in sorted(setup.plugins.items()) if name not in called]
    if output == "json":
        content = {
            "profiles": [_as_json(profile, setup.plugins) for profile in profiles],
            "notEnabled": [{"name": plugin.name, "source": plugin.source} for plugin in idle],
        }
        click.echo(json.dumps(content, indent=2))
        return

    from rich.console import Console

    warn(setup.warnings, about=config or "")
    console = Console(file=sys.stdout, highlight=False)
    for profile in profiles:
        _draw(profile, setup.plugins, console)
    for plugin in idle:
        click.echo(f"not enabled: {plugin.name} ({plugin.source})")


def _source(plugin: "Registered | None") -> str:
    return _OURS if plugin is None or plugin.own else plugin.source


def _as_json(profile: "Profile", own: "Mapping[str, Registered]") -> dict[str, Any]:
    points = {
        point: [
            {"name": name, "source": _source(own.get(name))} | ({"weight": weight} if weight else {})
            for name, weight in enabled
        ]
        for point, enabled in profile.enabled.items()
    }
    return {"schedulerName": profile.scheduler_name, "points": points}


def _draw(profile: "Profile", own: "Mapping[str, Registered]", console: "Console") -> None:
    """Print a line for each plugin at each point."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in ("point", "plugin", "weight"):
        table.add_column(heading, justify="right" if heading == "weight" else "left", no_wrap=True)
    table.add_column("from", overflow="fold")
    for point, enabled in profile.enabled.items():
        for place, (name, weight) in enumerate(enabled):
            source = _source(own.get(name))
            style = "dim" if source == _OURS else ""
            table.add_row("" if place else point, name, str(weight or ""), Text(source, style=style))
    console.print(Text(f"profile {profile.scheduler_name}", style="bold"), table, "", sep="\n")
