"""`longshore agent`: list the agents, or write the skeleton of a new one."""

import builtins
import importlib.util
import json
import keyword
import re
import symtable
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longshore.cli import options
from longshore.cli.printing import text_table

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
# The name becomes part of the names of a ConfigMap and of environment variables.
_LONGEST = 40
# The name of each file of the skeleton, by its template.
_FILES = {
    "agent.py.txt": "{module}.py",
    "test_agent.py.txt": "test_{module}.py",
    "extender.yaml.txt": "extender.{name}.yaml",
    "agent.md.txt": "{name}.md",
}


@click.group("agent", epilog="Example: longshore agent new calm")
def command() -> None:
    """Show agents, or write the skeleton of a new one.

    An agent is a plugin that `longshore extender` can serve to a stock kube-scheduler.
    """


@command.command("new", epilog="Example: longshore agent new calm && python -m pytest calm")
@click.argument("name")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder to write the files to.  [default: ./NAME]",
)
def new(*, name: str, folder: Path | None) -> None:
    """Write the skeleton of an agent.

    It consists of a plugin with a filter and a score, a test that passes as written, a manifest that runs the
    agent next to kube-scheduler, and a page that describes it. Existing files are not overwritten.
    """
    from longshore.errors import UserError

    module, plugin = name.replace("-", "_"), "".join(map(str.capitalize, name.split("-")))
    if problem := _problem(name, module, plugin):
        raise click.BadParameter(problem, param_hint="NAME")
    folder = Path(name) if folder is None else folder
    words = {
        "__NAME__": name,
        "__MODULE__": module,
        "__CLASS__": plugin,
        "__VARIABLE__": module.upper(),
        "__FOLDER__": str(folder) if folder.is_absolute() else f"./{folder}",
    }
    pattern = re.compile("|".join(words))
    files = {
        folder / file.format(name=name, module=module): pattern.sub(
            lambda match: words[match[0]], _skeleton(template)
        )
        for template, file in _FILES.items()
    }
    if there := [str(file) for file in files if file.exists()]:
        raise UserError(f"{there[0]} already exists: choose another name or another --folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            with file.open("x", encoding="utf-8") as opened:
                opened.write(text)
    except OSError as error:
        raise UserError(f"cannot write {error.filename or folder}: {error.strerror}") from error
    for file in files:
        click.echo(f"wrote {file}")
    click.echo(f"next: python -m pytest {folder}")


@command.command("list", epilog="Example: longshore agent list")
@options.output
def show(*, output: str) -> None:
    """Show the agents of all installed packages, with their verbs.

    An extender entry of kube-scheduler uses predicates/VERB to filter and priorities/VERB to score. An agent
    that cannot be imported is listed with the reason.
    """
    found = list(_agents())
    if output == "json":
        click.echo(json.dumps(found, indent=2))
        return

    rows = [("agent", "verb", "answers", "plugin")]
    for agent in found:
        for place, each in enumerate(agent["plugins"]):
            name = "" if place else agent["agent"]
            rows.append((name, each["verb"], ", ".join(each["answers"]), each["plugin"]))
    click.echo("\n".join(text_table(rows)))
    for agent in found:
        if problem := agent.get("problem"):
            click.echo(f"warning: agent {agent['agent']} cannot be used: {problem}", err=True)


def _problem(name: str, module: str, plugin: str) -> str:
    """Return why an agent cannot have this name, or an empty string if it can."""
    from importlib.metadata import entry_points

    from longshore.config.plugins import KUBE_SCHEDULER_PLUGINS
    from longshore.config.registry import GROUP
    from longshore.serve.extender.agent_choice import ALL, known_agents

    if len(name) > _LONGEST or not _NAME.fullmatch(name):
        return (
            f"{name!r} is not a valid name for an agent: use at most {_LONGEST} lowercase letters, digits "
            "and dashes, starting with a letter"
        )
    if name == ALL or name in known_agents():
        return f"{name!r} is already installed: choose another name"
    taken = {point.name for point in entry_points(group=GROUP)}
    if plugin in taken | KUBE_SCHEDULER_PLUGINS.keys():
        return f"the plugin would be named {plugin}, which is the name of another plugin: choose another name"
    if plugin in {*dir(builtins), *_names_in_use()}:
        return f"the plugin would be named {plugin}, which its code already uses: choose another name"
    spec = None if keyword.iskeyword(module) else importlib.util.find_spec(module)
    if keyword.iskeyword(module) or (spec is not None and spec.origin is not None):
        return f"{module} is a Python keyword or module: choose another name"
    return ""


def _names_in_use() -> set[str]:
    """The names that the code of the skeleton and its test import or define."""
    code = [template for template in _FILES if template.endswith(".py.txt")]
    modules = [symtable.symtable(_skeleton(template), template, "exec") for template in code]
    return {name for module in modules for name in module.get_identifiers()}


def _skeleton(template: str) -> str:
    return (resources.files("longshore.agents") / "skeleton" / template).read_text(encoding="utf-8")


def _agents() -> "Iterator[dict[str, Any]]":
    """Yield each agent with its plugins, or with the reason why it cannot be used."""
    from longshore.errors import UserError
    from longshore.serve.extender.agent_choice import choose, known_agents, verbs

    for name in known_agents():
        problems: list[str] = []
        try:
            [agent] = choose([name], on_broken=lambda _, problem: problems.append(problem))  # noqa: B023
            plugins = [
                {"plugin": each.name, "verb": each.thing.verb, "answers": [*verbs(each)]}
                for each in agent.plugins
            ]
            yield {"agent": name, "plugins": plugins}
        except UserError as error:
            yield {"agent": name, "plugins": [], "problem": problems[0] if problems else str(error)}
