"""The installed agents, and the choice of those to serve. Agents that are not chosen are not imported.

An agent is named by an entry point of the group `longshore.agents` or by the path of a Python file. Its
plugins are the classes in that module that have a `verb`. A broken agent is reported and left out.
"""

import sys
import traceback
from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

import msgspec
import structlog

from longshore.config.registry import Registered, plugins_in, register
from longshore.errors import UserError
from longshore.framework.agents import is_agent
from longshore.framework.extension_points import points_of

GROUP = "longshore.agents"
ALL = "all"
# The first part of the URL of a verb, by the extension point that answers.
KINDS = {"filter": "predicates", "score": "priorities"}

log = structlog.get_logger()


class ServedAgent(msgspec.Struct, frozen=True):
    """An agent, under the name or path that chose it, with its plugins."""

    name: str
    plugins: tuple[Registered, ...]


def known_agents() -> dict[str, EntryPoint]:
    """Return the installed agents by name."""
    return {point.name: point for point in sorted(entry_points(group=GROUP), key=lambda each: each.name)}


def choose(names: Iterable[str], *, on_broken: Callable[[str, str], None] | None = None) -> list[ServedAgent]:
    """Return the agents with these names and files; `all` means every installed agent.

    `on_broken` is called with the name of a broken agent and its problem, which is logged by default. Raises
    UserError if an agent does not exist, if two have the same verb, or if all are broken.
    """
    known = known_agents()
    chosen = [name for each in names for name in (known if each == ALL else [each])]
    agents: list[ServedAgent] = []
    broken = ""
    for name in dict.fromkeys(chosen):
        if not name.endswith(".py") and name not in known:
            there = ", ".join(known)
            raise UserError(
                f"agent {name!r} does not exist: choose from {there}, or give the path of a .py file"
            )
        try:
            plugins = plugins_in(name) if name.endswith(".py") else _plugins_of(known[name])
            agents.append(ServedAgent(name, tuple(_with_verb(plugins, name))))
        except UserError as error:
            broken = str(error)
            (on_broken or _log_broken)(name, broken)
    if not agents:
        raise UserError(f"no agent can be served: {broken}" if broken else "no agent was chosen")
    _require_one_for_each_verb(agents)
    return agents


def verbs(plugin: Registered) -> dict[str, str]:
    """Return the plugin's verb, for `predicates` if it filters and for `priorities` if it scores."""
    return {kind: plugin.thing.verb for point, kind in KINDS.items() if point in plugin.points}


def _log_broken(name: str, problem: str) -> None:
    log.error("an agent is broken and is left out", agent=name, reason=problem)


def _plugins_of(point: EntryPoint) -> list[Registered]:
    try:
        module = point.load()
    except SyntaxError as error:
        raise UserError(f"{error.filename}:{error.lineno}: {error.msg}") from error
    except (Exception, SystemExit) as error:
        raise UserError(f"{_place(error)}: {_one_line(error)}") from error
    return [
        register(thing, source=point.value) for thing in vars(module).values() if _is_agent(thing, module)
    ]


def _is_agent(thing: Any, module: ModuleType) -> bool:
    return isinstance(thing, type) and thing.__module__ == module.__name__ and is_agent(thing)


def _with_verb(plugins: Iterable[Registered], name: str) -> list[Registered]:
    found = [plugin for plugin in plugins if is_agent(plugin.thing)]
    for plugin in found:
        verb = plugin.thing.verb
        if not isinstance(verb, str) or not verb or not verb.isprintable() or set(verb) & set("/?#% "):
            raise UserError(f"{plugin.place}: the verb {verb!r} of {plugin.name} cannot be part of a URL")
        if not points_of(plugin.thing) & set(KINDS):
            raise UserError(f"{plugin.place}: {plugin.name} has neither a filter nor a score")
    if not found:
        raise UserError(f'{name} has no agent: an agent is a plugin class with a verb, as in verb = "calm"')
    return found


def _require_one_for_each_verb(agents: Iterable[ServedAgent]) -> None:
    taken: dict[tuple[str, str], Registered] = {}
    names: dict[str, Registered] = {}
    for plugin in (plugin for agent in agents for plugin in agent.plugins):
        other = names.setdefault(plugin.name, plugin)
        if other is not plugin:
            raise UserError(f"{plugin.place}: plugin {plugin.name} is already defined in {other.place}")
        for kind, verb in verbs(plugin).items():
            other = taken.setdefault((kind, verb), plugin)
            if other is not plugin:
                raise UserError(f"{plugin.place}: {kind}/{verb} is already defined in {other.place}")


def _place(error: BaseException) -> str:
    """Return the file and line that raised the error, ignoring the import system."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f.filename]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else sys.executable


def _one_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
