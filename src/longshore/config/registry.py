"""Finds plugins in files and packages, checks them and registers them under their names.

Plugins come from files (`FILE.py`), from modules (`module:attribute`) and from the entry points of installed
packages in the group `longshore.plugins`. The plugins of a file are its functions with `@filter_plugin` or
`@score_plugin`, and the classes that it defines with a method of an extension point, unless their names begin
with an underscore. A class gets the keyword arguments that its constructor takes: `args`, the arguments in
the configuration, and `handle`, a `Handle`.

An error in a plugin is reported in one line, which begins with its file and line number.
"""

import importlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from longshore.config.plugin_arguments import InvalidArguments
from longshore.config.plugins import KUBE_SCHEDULER_PLUGINS, PluginPoints
from longshore.errors import UserError
from longshore.framework.extension_points import points_of
from longshore.framework.functions import FunctionPlugin
from longshore.framework.handle import Handle
from longshore.framework.points import Plugin

GROUP = "longshore.plugins"
_OURSELVES = "longshore"

_IN_MODULE = re.compile(r"([^\W\d][\w.]*):([^\W\d][\w.]*)")
_PLUGIN = (
    "a plugin is a class with a name and a method of an extension point, or a function with "
    "@filter_plugin or @score_plugin"
)
_NO_ARGUMENTS: Mapping[str, object] = MappingProxyType({})
_GIVEN = ("args", "handle")
_BY_KEYWORD = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_ANY_NUMBER = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class PluginNotMade(UserError):
    """A plugin rejects its arguments, or cannot be made. Each problem begins with the path of an argument."""

    def __init__(self, text: str, *, plugin: str, arguments: object, problems: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.problems = problems
        self.plugin = plugin
        self.arguments = arguments


@dataclass(frozen=True, slots=True)
class Registered:
    """A plugin under its name. It is a factory, which makes the plugin.

    `source` is where the user said that it comes from, and `place` the file and line where it is defined.
    """

    name: str
    points: PluginPoints
    weight: int
    source: str
    place: str
    # The class, or the plugin itself if it was made of a function.
    thing: Any

    @property
    def own(self) -> bool:
        """Whether the plugin is part of Longshore, and needs no time limit."""
        defined = self.thing.function if isinstance(self.thing, FunctionPlugin) else self.thing
        return str(defined.__module__).startswith("longshore.")

    def __call__(self, args: Any, handle: Handle) -> Plugin:
        if isinstance(self.thing, FunctionPlugin):
            return self.thing
        given = {"args": _NO_ARGUMENTS if args is None else args, "handle": handle}
        try:
            plugin: Plugin = self.thing(**{name: given[name] for name in _taken(self.thing)})
        except Exception as error:
            text = f"{self.name} cannot be made: {error}"
            if not isinstance(error, UserError):
                text = f"{self.place}: {self.name} cannot be made: {_one_line(error)}"
            problems = error.problems if isinstance(error, InvalidArguments) else ()
            raise PluginNotMade(text, plugin=self.name, arguments=args, problems=problems) from error
        return plugin


def load_plugins(sources: Iterable[str] = ()) -> dict[str, Registered]:
    """Return the plugins of these sources and of installed packages by name. Raise UserError."""
    files: dict[Path, ModuleType] = {}
    registered: dict[str, Registered] = {}
    for source in sources:
        for thing in _from_file(source, files) if source.endswith(".py") else [_from_module(source)]:
            _register(thing, source, registered)
    for point in entry_points(group=GROUP):
        if _package(point) != _OURSELVES:
            _register_entry_point(point, registered)
    return registered


def own_plugins(text: str) -> dict[str, Registered]:
    """Return Longshore's optional plugins that the text names, by name. No others are imported."""
    registered: dict[str, Registered] = {}
    for point in entry_points(group=GROUP):
        if _package(point) == _OURSELVES and point.name in text:
            _register_entry_point(point, registered)
    return registered


def plugins_in(file: str) -> list[Registered]:
    """Return the plugins of a Python file. Raise UserError."""
    return [register(thing, source=file) for thing in _from_file(file, {})]


def _register_entry_point(point: EntryPoint, registered: dict[str, Registered]) -> None:
    source = f"{point.value} of {_package(point)}"
    _register(_imported(point.load, source), source, registered)


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "?"


def register(thing: Any, *, source: str = "") -> Registered:
    """Return a plugin class or a decorated function as a registered plugin. Raise UserError."""
    place = _place(thing) or source
    if not isinstance(thing, type | FunctionPlugin) or not points_of(thing):
        raise UserError(f"{place}: {getattr(thing, '__name__', repr(thing))} is not a plugin: {_PLUGIN}")
    name = getattr(thing, "name", None)
    if not isinstance(name, str) or not name:
        own = getattr(thing, "__name__", "")
        raise UserError(
            f'{place}: {own} has no name: give it one, as in name = "{own}"; '
            "a class that is not a plugin must have a name that begins with an underscore"
        )
    default = KUBE_SCHEDULER_PLUGINS.get(name)
    if default is not None and not default.absent:
        raise UserError(f"{place}: {name} is the name of a default plugin: choose another name")
    weight = getattr(thing, "weight", 1)
    if not isinstance(weight, int) or weight < 1:
        raise UserError(f"{place}: the weight of {name} must be an integer of at least 1, not {weight!r}")
    if isinstance(thing, type):
        _check_constructor(thing, place)
    return Registered(name, points_of(thing), weight, source or place, place, thing)


def known_points(plugins: Mapping[str, Registered]) -> dict[str, PluginPoints]:
    """Return the extension points of each plugin, which the reader of a configuration needs."""
    return {name: plugin.points for name, plugin in plugins.items()}


def _register(thing: Any, source: str, registered: dict[str, Registered]) -> None:
    plugin = register(thing, source=source)
    other = registered.setdefault(plugin.name, plugin)
    if other.thing is not plugin.thing:
        raise UserError(f"{plugin.place}: {other.place} has a plugin {plugin.name} too: rename one of them")


def _from_file(source: str, files: dict[Path, ModuleType]) -> list[Any]:
    path = Path(source)
    key = path.resolve()
    if key not in files:
        if not path.is_file():
            raise UserError(f"cannot read the plugins in {source}: no such file")
        files[key] = _imported(lambda: _load(key), source, key)
    things = [thing for thing in vars(files[key]).values() if _is_plugin_of(files[key], thing)]
    if not things:
        raise UserError(f"{source}: the file has no plugin: {_PLUGIN}")
    return things


def _load(path: Path) -> ModuleType:
    # The module has the path as its name, so that files of the same name in different folders do not clash.
    name = str(path)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _is_plugin_of(module: ModuleType, thing: Any) -> bool:
    if isinstance(thing, FunctionPlugin):
        return thing.function.__module__ == module.__name__
    return (
        isinstance(thing, type)
        and thing.__module__ == module.__name__
        and not thing.__name__.startswith("_")
        and bool(points_of(thing))
    )


def _from_module(source: str) -> Any:
    match = _IN_MODULE.fullmatch(source)
    if match is None:
        raise UserError(f"{source!r} is not a plugin: specify the path of a .py file, or module:attribute")
    thing = _imported(lambda: importlib.import_module(match[1]), source)
    for attribute in match[2].split("."):
        if not hasattr(thing, attribute):
            raise UserError(f"{source}: {match[1]} has no {match[2]}")
        thing = getattr(thing, attribute)
    return thing


def _imported(load: Callable[[], Any], source: str, path: Path | None = None) -> Any:
    try:
        return load()
    except SyntaxError as error:
        file = source if error.filename == str(path) else error.filename
        raise UserError(f"{file}:{error.lineno}: {error.msg}") from error
    except (Exception, SystemExit) as error:
        lines = [
            frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)
        ]
        place = f"{source}:{lines[-1]}" if lines else source
        raise UserError(f"{place}: {_one_line(error)}") from error


def _parameters(thing: type) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(thing).parameters.values())
    except ValueError:
        # The constructor is that of a built-in type, which is written in C.
        return []


def _taken(thing: type) -> list[str]:
    """Return the names of those arguments that the constructor takes."""
    return [p.name for p in _parameters(thing) if p.name in _GIVEN and p.kind in _BY_KEYWORD]


def _check_constructor(thing: type, place: str) -> None:
    taken = _taken(thing)
    for parameter in _parameters(thing):
        needed = parameter.default is parameter.empty and parameter.kind not in _ANY_NUMBER
        if needed and parameter.name not in taken:
            raise UserError(
                f"{place}: {thing.__name__} cannot be made: its constructor requires {parameter.name!r}, "
                "but can only get the keyword arguments args and handle"
            )


def _place(thing: Any) -> str:
    """Return the file and line where it is defined, or nothing if it has none."""
    defined = thing.function if isinstance(thing, FunctionPlugin) else thing
    try:
        file, line = inspect.getsourcefile(defined), inspect.getsourcelines(defined)[1]
    except (OSError, TypeError):
        return ""
    return f"{_short(Path(file or '?'))}:{line}"


def _short(path: Path) -> Path:
    """Return the path as the user would write it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _one_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
