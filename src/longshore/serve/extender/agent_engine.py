"""An engine that answers for agents and decides nothing: each plugin has a profile of its own.

So every answer is made and kept as in a scheduler. One plugin that cannot be made leaves the others alone.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from longshore.config import (
    Configuration,
    EnabledPlugin,
    ProfileConfiguration,
)
from longshore.config.registry import Registered
from longshore.engine import Engine
from longshore.errors import UserError
from longshore.framework import Handle, Plugin
from longshore.framework.agents import environment_arguments, fine_scores_argument
from longshore.framework.extension_points import POINTS
from longshore.serve.extender.agent_choice import Agent, verbs

# What takes part in an answer; whatever else a plugin has is for schedulers.
_ANSWERING = ("preFilter", "filter", "preScore", "score")
_QUEUE = {"queueSort": (EnabledPlugin("PrioritySort"),)}

Arguments = Mapping[str, Mapping[str, object]]


class Served(msgspec.Struct, frozen=True):
    """The engine, and by verb the profile that answers; `fine_scores` if they are to be told out of 100."""

    engine: Engine
    predicates: Mapping[str, str]
    priorities: Mapping[str, str]
    fine_scores: bool = False


class _Unmade:
    """In the place of a plugin that could not be made: it has no points."""

    def __init__(self, name: str) -> None:
        self.name = name


def serve(
    agents: Sequence[Agent],
    *,
    environ: Mapping[str, str],
    arguments: Arguments | None = None,
    fine_scores: bool = False,
    tell: Callable[[str, str], None],
) -> Served:
    """`arguments` by plugin name go before what the environment says; those must be right.

    `fine_scores` is set in the argument that a plugin names as its `fine_scores_argument`. `tell` hears of a
    plugin that cannot be made all the same, by its name. Raises UserError if arguments are wrong, and if no
    plugin is left.
    """
    arguments = arguments or {}
    plugins = {plugin.name: plugin for agent in agents for plugin in agent.plugins}
    if unknown := [name for name in arguments if name not in plugins]:
        raise UserError(f"arguments of {', '.join(unknown)}: chosen are the plugins {', '.join(plugins)}")
    broken: dict[str, str] = {}

    def make(plugin: Registered, _configured: Any, handle: Handle) -> Plugin:
        try:
            given = {**_environment(plugin, environ), **arguments.get(plugin.name, {})}
            # Whatever was configured: fine scores would be rounded to tenths otherwise than the agent does.
            if (argument := fine_scores_argument(plugin.thing)) is not None:
                given[argument] = fine_scores
            return plugin(given, handle)
        except UserError as error:
            if plugin.name in arguments:
                raise
            broken[plugin.name] = str(error)
            tell(plugin.name, str(error))
            return _Unmade(plugin.name)

    engine = Engine(
        Configuration(profiles=tuple(map(_profile, plugins.values()))),
        plugins={name: partial(make, plugin) for name, plugin in plugins.items()},
        epoch=time.time() - time.monotonic(),
        stopwatch=time.monotonic,
    )
    left = [plugin for name, plugin in plugins.items() if name not in broken]
    if not left:
        raise UserError(f"no agent is left to serve: {next(iter(broken.values()))}")
    found: dict[str, dict[str, str]] = {"predicates": {}, "priorities": {}}
    for plugin in left:
        for kind, verb in verbs(plugin).items():
            found[kind][verb] = profile_name(plugin)
    return Served(engine, **found, fine_scores=fine_scores)


def profile_name(plugin: Registered) -> str:
    """No pod has a scheduler of this name, so none is ever queued."""
    return f"the agent {plugin.name}"


def _profile(plugin: Registered) -> ProfileConfiguration:
    enabled = {p: (EnabledPlugin(plugin.name, int(p == "score")),) for p in _ANSWERING if p in plugin.points}
    return ProfileConfiguration(
        scheduler_name=profile_name(plugin),
        percentage_of_nodes_to_score=0,
        points={**dict.fromkeys(POINTS, ()), **_QUEUE, **enabled},
        args={},
    )


def _environment(plugin: Registered, environ: Mapping[str, str]) -> Mapping[str, object]:
    try:
        return environment_arguments(plugin.thing, environ)
    except UserError:
        raise
    except Exception as error:  # whatever a plugin does, the others go on
        raise UserError(f"{plugin.place}: {plugin.name} cannot read the environment: {error!r}") from error
