"""Options that several commands have in common."""

import click

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
