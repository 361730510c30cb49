"""What a scheduler starts with: a configuration, and the plugins that it or the command line names.

    setup = set_up("scheduler.yaml", plugins=["my_plugin.py"])
    Engine(setup.configuration, plugins=setup.plugins)

Longshore's own, plugins of installed packages and those that the file itself says where to find are there
for the file to enable. One that the command line gives is meant to be used: unless the file enables or
disables it somewhere, it is enabled at all its points in every profile.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from longshore.errors import UserError
from longshore.framework.configuration import (
    Configuration,
    EnabledPlugin,
    Loaded,
    ProfileConfiguration,
    default_configuration,
    load,
    plugin_sources,
)
from longshore.framework.registry import Registered, known_points, load_plugins, own_plugins


@dataclass(frozen=True, slots=True)
class Setup:
    configuration: Configuration
    plugins: Mapping[str, Registered]
    # What the author of the file should know about it.
    warnings: tuple[str, ...] = ()


def set_up(
    file: str | None = None, *, plugins: Sequence[str] = (), scheduler_name: str = "longshore"
) -> Setup:
    """Of a file, or of the default profile under the scheduler name."""
    if file is None:
        registered = load_plugins(plugins)
        loaded = Loaded(default_configuration(scheduler_name))
    else:
        registered = load_plugins([*plugins, *(_beside(file, source) for source in plugin_sources(file))])
        own = own_plugins(Path(file).read_text(encoding="utf-8", errors="replace"))
        loaded = load(file, known=known_points({**own, **registered}))
        registered |= {name: own[name] for name in _enabled(loaded.configuration) & own.keys()}
    given = [
        plugin
        for plugin in registered.values()
        if plugin.source in plugins and plugin.name not in loaded.plugins
    ]
    return Setup(enable(loaded.configuration, given), registered, loaded.warnings)


def _enabled(configuration: Configuration) -> set[str]:
    return {
        each.name for profile in configuration.profiles for point in profile.points.values() for each in point
    }


def enable(configuration: Configuration, plugins: Sequence[Registered]) -> Configuration:
    """The configuration with the plugins at all their points in every profile, after those that are there."""
    sorts = [plugin for plugin in plugins if "queueSort" in plugin.points]
    if len(sorts) > 1:
        names = " and ".join(plugin.name for plugin in sorts)
        raise UserError(f"{sorts[1].place}: {names} both sort the queue: only one plugin can")
    profiles = tuple(_with(profile, plugins) for profile in configuration.profiles)
    return msgspec.structs.replace(configuration, profiles=profiles)


def _with(profile: ProfileConfiguration, plugins: Sequence[Registered]) -> ProfileConfiguration:
    points = dict(profile.points)
    for plugin in plugins:
        for point in plugin.points:
            enabled = EnabledPlugin(plugin.name, plugin.weight if point == "score" else 0)
            if point == "queueSort":
                points[point] = (enabled,)
            elif point == "bind":
                # DefaultBinder leaves nothing to those after it.
                points[point] = (enabled, *points[point])
            else:
                points[point] = (*points[point], enabled)
    return msgspec.structs.replace(profile, points=points)


def _beside(file: str, source: str) -> str:
    """The path of a plugin in a file of the configuration is relative to that file."""
    return str(Path(file).parent / source) if source.endswith(".py") else source
