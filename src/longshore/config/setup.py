"""What a scheduler needs to start: a configuration, and the plugins that it or the command line names.

    setup = set_up("scheduler.yaml", plugins=["my_plugin.py"])
    Engine(setup.configuration, plugins=setup.plugins)

The file can enable Longshore's optional plugins, those of installed packages and those whose source it names.
A plugin from the command line is enabled at all of its extension points in every profile, unless the file
enables or disables it somewhere.
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
    # What the author of the file should know about it, one line each.
    warnings: tuple[str, ...] = ()
    # The file, and the path of a plugin's arguments in it, by the path of the profile and the plugin's name.
    file: str | None = None
    arguments: Mapping[tuple[str, str], str] = field(default_factory=dict)

    @contextmanager
    def telling_where(self) -> Iterator[None]:
        """Raise InvalidConfiguration, with the path in the file, if a plugin cannot be made in this block."""
        try:
            yield
        except PluginNotMade as error:
            if self.file is None:
                raise
            place = self._place_of(error)
            problems = [f"{place}.{each}" for each in error.problems] or [f"{place}: {error}"]
            raise InvalidConfiguration(self.file, problems, self.warnings) from error

    def _place_of(self, error: PluginNotMade) -> str:
        """Return the path of the arguments in the first profile with them: profiles are made in order."""
        for index, profile in enumerate(self.configuration.profiles):
            path = f"profiles[{index}]"
            if error.plugin in _enabled(profile) and profile.args.get(error.plugin) == error.arguments:
                return self.arguments.get((path, error.plugin), path)
        return "profiles"


def set_up(
    file: str | None = None, *, plugins: Sequence[str] = (), scheduler_name: str = "longshore"
) -> Setup:
    """Read the file, or else take the default profile under the scheduler name. Raise UserError."""
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
    """Enable the plugins at all of their extension points in every profile, after the plugins there."""
    sorts = [plugin for plugin in plugins if "queueSort" in plugin.points]
    if len(sorts) > 1:
        names = " and ".join(plugin.name for plugin in sorts)
        raise UserError(f"{sorts[1].place}: {names} both sort the queue, but only one plugin can")
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
                # Plugins after DefaultBinder would never be called.
                points[point] = (enabled, *points[point])
            else:
                points[point] = (*points[point], enabled)
    return msgspec.structs.replace(profile, points=points)


def _beside(file: str, source: str) -> str:
    """Return the source as seen from here: paths in a configuration file are relative to the file."""
    return str(Path(file).parent / source) if source.endswith(".py") else source
