"""What a scheduler starts with: a configuration, and the plugins that it or the command line names.

    setup = set_up("scheduler.yaml", plugins=["my_plugin.py"])
    Engine(setup.configuration, plugins=setup.plugins)

Longshore's own, plugins of installed packages and those that the file itself says where to find are there
for the file to enable. One that the command line gives is meant to be used: unless the file enables or
disables it somewhere, it is enabled at all its points in every profile.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from longshore.config import (
    Configuration,
    EnabledPlugin,
    InvalidConfiguration,
    Loaded,
    ProfileConfiguration,
    default_configuration,
    load,
    plugin_sources,
)
from longshore.config.registry import (
    PluginNotMade,
    Registered,
    known_points,
    load_plugins,
    own_plugins,
)
from longshore.errors import UserError


@dataclass(frozen=True, slots=True)
class Setup:
    configuration: Configuration
    plugins: Mapping[str, Registered]
    # What the author of the file should know about it.
    warnings: tuple[str, ...] = ()
    # The file, and where it has the arguments of plugins, by the path of the profile and the name.
    file: str | None = None
    arguments: Mapping[tuple[str, str], str] = field(default_factory=dict)

    @contextmanager
    def telling_where(self) -> Iterator[None]:
        """A plugin that cannot be made in this block is a problem of the file: InvalidConfiguration."""
        try:
            yield
        except PluginNotMade as error:
            if self.file is None:
                raise
            place = self._place_of(error)
            problems = [f"{place}.{each}" for each in error.problems] or [f"{place}: {error}"]
            raise InvalidConfiguration(self.file, problems, self.warnings) from error

    def _place_of(self, error: PluginNotMade) -> str:
        """Of the first profile that has the plugin with these arguments: profiles are made in order."""
        for index, profile in enumerate(self.configuration.profiles):
            path = f"profiles[{index}]"
            if error.plugin in _enabled(profile) and profile.args.get(error.plugin) == error.arguments:
                return self.arguments.get((path, error.plugin), path)
        return "profiles"


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
        enabled = set().union(*map(_enabled, loaded.configuration.profiles))
        registered |= {name: own[name] for name in enabled & own.keys()}
    given = [
        plugin
        for plugin in registered.values()
        if plugin.source in plugins and plugin.name not in loaded.plugins
    ]
    configuration = enable(loaded.configuration, given)
    return Setup(configuration, registered, loaded.warnings, file, loaded.arguments)


def _enabled(profile: ProfileConfiguration) -> set[str]:
    return {each.name for point in profile.points.values() for each in point}


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
