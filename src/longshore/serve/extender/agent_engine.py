"""An engine that evaluates agents without scheduling: each plugin has a profile of its own.

So the plugins run, and their answers are cached, as in a scheduler. A plugin that cannot be created does not
affect the others.
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
from longshore.serve.extender.agent_choice import ServedAgent, verbs

# The points that an extender runs; the others of a plugin are for schedulers.
_ANSWERING = ("preFilter", "filter", "preScore", "score")
_QUEUE = {"queueSort": (EnabledPlugin("PrioritySort"),)}

Arguments = Mapping[str, Mapping[str, object]]


class AgentEngine(msgspec.Struct, frozen=True):
    """The engine and, by verb, the profile that answers. With `fine_scores`, scores go up to 100."""

    engine: Engine
    predicates: Mapping[str, str]
    priorities: Mapping[str, str]
    fine_scores: bool = False


class _BrokenPlugin:
    """Replaces a plugin that cannot be created. It has no points."""

    def __init__(self, name: str) -> None:
        self.name = name


def make_agent_engine(
    agents: Sequence[ServedAgent],
    *,
    environ: Mapping[str, str],
    arguments: Arguments | None = None,
    fine_scores: bool = False,
    on_broken: Callable[[str, str], None],
) -> AgentEngine:
    """Return an engine with the plugins of these agents.

    `arguments`, by plugin name, override those from the environment and must be valid. `fine_scores` is
    passed as the argument that a plugin names in its `fine_scores_argument`. `on_broken` is called with the
    name of a plugin that cannot be created and its problem. Raises UserError if `arguments` are invalid, or
    if no plugin can be created.
    """
    arguments = arguments or {}
    plugins = {plugin.name: plugin for agent in agents for plugin in agent.plugins}
    if unknown := [name for name in arguments if name not in plugins]:
        raise UserError(
            f"arguments for {', '.join(unknown)}: the chosen agents have the plugins {', '.join(plugins)}"
        )
    broken: dict[str, str] = {}

    def make(plugin: Registered, _configured: Any, handle: Handle) -> Plugin:
        try:
            given = {**_environment(plugin, environ), **arguments.get(plugin.name, {})}
            # This overrides the arguments: an agent rounds its scores to tenths in its own way.
            if (argument := fine_scores_argument(plugin.thing)) is not None:
                given[argument] = fine_scores
            return plugin(given, handle)
        except UserError as error:
            if plugin.name in arguments:
                raise
            broken[plugin.name] = str(error)
            on_broken(plugin.name, str(error))
            return _BrokenPlugin(plugin.name)

    engine = Engine(
        Configuration(profiles=tuple(map(_profile, plugins.values()))),
        plugins={name: partial(make, plugin) for name, plugin in plugins.items()},
        epoch=time.time() - time.monotonic(),
        stopwatch=time.monotonic,
    )
    left = [plugin for name, plugin in plugins.items() if name not in broken]
    if not left:
        raise UserError(f"no agent can be served: {next(iter(broken.values()))}")
    found: dict[str, dict[str, str]] = {"predicates": {}, "priorities": {}}
    for plugin in left:
        for kind, verb in verbs(plugin).items():
            found[kind][verb] = profile_name(plugin)
    return AgentEngine(engine, **found, fine_scores=fine_scores)


def profile_name(plugin: Registered) -> str:
    """Return the profile's scheduler name, which no pod can have, so that no pod is queued."""
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
    except Exception as error:  # a broken plugin must not affect the others
        raise UserError(f"{plugin.place}: {plugin.name} cannot read the environment: {error!r}") from error
