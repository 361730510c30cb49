"""Reads the arguments of a plugin that declares them as a struct.

    class PackingArgs(msgspec.Struct, frozen=True, rename="camel"):
        target_utilization: Annotated[int, msgspec.Meta(ge=1, le=100)] = 40

    args = read_plugin_arguments(PackingArgs, args, plugin="Packing")

As in the rest of the configuration file, all problems are reported at once, each with its path. A field that
is null counts as left out. The arguments may have an `apiVersion` and a `kind`.
"""

import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from longshore.config.problems import Report, child, either, found, suggestion
from longshore.errors import UserError

Args = TypeVar("Args", bound=msgspec.Struct)

# Yields the path of a field, as users write it, and what is wrong with its value.
Check = Callable[[Args], Iterable[tuple[str, str]]]

_ANY_PLUGIN = ("apiVersion", "kind")


class InvalidArguments(UserError):
    """The arguments of a plugin are invalid. Each problem begins with the path of the field."""

    def __init__(self, plugin: str, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__(f"arguments of {plugin}: {'; '.join(self.problems)}")


def read_plugin_arguments(
    kind: type[Args], given: Any, *, plugin: str, check: Check[Args] | None = None
) -> Args:
    """Return the arguments that a configuration gives to the plugin. Raise InvalidArguments.

    `given` may also be None, or arguments that have been read already. `check` looks for problems that the
    types of the fields do not exclude.
    """
    if isinstance(given, kind):
        return given
    if not isinstance(given, Mapping | None):
        raise InvalidArguments(plugin, [f"must be a mapping, found {found(given)}"])
    report = Report()
    content = {name: value for name, value in (given or {}).items() if name not in _ANY_PLUGIN}
    content = _fields(kind, content, "", report)
    if not report.problems:
        arguments = msgspec.convert(content, kind)
        for field, problem in check(arguments) if check is not None else ():
            report.problem(field, problem)
    if report.problems:
        raise InvalidArguments(plugin, report.problems)
    return arguments


def _fields(
    kind: type[msgspec.Struct], content: Mapping[str, Any], path: str, report: Report
) -> dict[str, Any]:
    types = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    for name in content:
        if name not in types:
            report.problem(child(path, name), f"unknown field{suggestion(name, types)}")
    return {
        name: _value(types[name], value, child(path, name), report)
        for name, value in content.items()
        if name in types and value is not None
    }


def _value(wanted: Any, value: Any, path: str, report: Report) -> Any:
    """Return the value as it can be converted, and report what is wrong with it."""
    if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct) and isinstance(value, Mapping):
        return _fields(wanted, value, path, report)
    origin, inner = typing.get_origin(wanted), typing.get_args(wanted)
    if origin is tuple and isinstance(value, list | tuple):
        return [_value(inner[0], item, f"{path}[{index}]", report) for index, item in enumerate(value)]
    if origin is dict and isinstance(value, Mapping):
        return {key: _value(inner[1], item, child(path, str(key)), report) for key, item in value.items()}
    try:
        msgspec.convert(value, wanted)
    except msgspec.ValidationError:
        report.problem(path, f"must be {_words(inspect.type_info(wanted))}, found {found(value)}")
    return value


def _words(wanted: inspect.Type) -> str:
    match wanted:
        case inspect.UnionType(types=types):
            return either(_words(each) for each in types if not isinstance(each, inspect.NoneType))
        case inspect.LiteralType(values=values):
            return either(map(str, values))
        case inspect.IntType():
            return f"a whole number{_range(wanted)}"
        case inspect.FloatType():
            return f"a number{_range(wanted)}"
        case inspect.BoolType():
            return "true or false"
        case inspect.StrType():
            return "a text"
        case inspect.VarTupleType():
            return "a list"
    return "a mapping"


def _range(number: inspect.IntType | inspect.FloatType) -> str:
    if number.ge is not None and number.le is not None:
        return f" from {number.ge:g} to {number.le:g}"
    bounds = {"of at least": number.ge, "of at most": number.le, "above": number.gt, "below": number.lt}
    return "".join(f" {word} {bound:g}" for word, bound in bounds.items() if bound is not None)
