"""Reads the text of a YAML file as plain values: mappings, lists, texts, numbers, booleans and nothing.

It is stricter than PyYAML where that hides mistakes. A key that is given twice is a problem, and only what
kube-scheduler reads as a number is a number, so that `1:30` and dates remain texts.
"""

import math
import re
from pathlib import Path

import yaml

from longshore.config.problems import InvalidConfiguration, Report, child, quoted
from longshore.errors import UserError

_TAG = "tag:yaml.org,2002:"
_TRUE = {"true", "yes", "on"}
_INTEGER = re.compile(r"([-+]?)(?:0x([0-9a-fA-F]+)|0o?([0-7]+)|0b([01]+)|(0|[1-9][0-9_]*))")
_BASES = (16, 8, 2, 10)
_NEEDS = "apiVersion, kind and the configuration"


class _Loader(yaml.SafeLoader):
    """Makes the tree of nodes. It is the parser in Python, whose places and errors are better than in C."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - PyYAML's way to configure a class


for _name, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF", "yYnNtTfFoO"),
    ("int", _INTEGER.pattern, "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(f"{_TAG}{_name}", re.compile(rf"^(?:{_pattern})$"), list(_first))


class _Unreadable(Exception):
    """The place and the problem in one line."""


def text(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot read the configuration {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidConfiguration(str(path), [f"not YAML: byte {error.start} is not UTF-8"]) from error


def read(text: str, source: str, report: Report, *, needs: str = _NEEDS) -> object:
    """Return the only document of the file. Raise InvalidConfiguration if the text is not YAML.

    Keys that are given twice are reported. `needs` is what an error about an empty file says is missing.
    """
    try:
        return _Conversion(report).value(_only_document(text, needs), "")
    except _Unreadable as error:
        problem = str(error)
    except yaml.MarkedYAMLError as error:
        reason = " ".join((error.problem or error.context or "unreadable").split())
        problem = f"{_place(error.problem_mark or error.context_mark)}: not YAML: {reason}"
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        problem = f"line {line}, column {column}: not YAML: a character that may not be in a text file"
    except RecursionError:
        problem = "not a configuration: nested too deeply"
    except (ValueError, OverflowError):
        # PyYAML lets these through for escapes such as "\UFFFFFFFF".
        problem = "not YAML: an escape sequence that stands for no character"
    raise InvalidConfiguration(source, [problem])


def _only_document(text: str, needs: str) -> yaml.Node:
    documents: list[yaml.Node] = [
        node
        for node in yaml.compose_all(text, Loader=_Loader)
        if not isinstance(node, yaml.ScalarNode) or node.value
    ]
    if not documents:
        raise _Unreadable(f"the file is empty; it must have {needs}")
    if len(documents) > 1:
        raise _Unreadable(f"{_place(documents[1].start_mark)}: a second document; keep one in the file")
    return documents[0]


def _place(mark: yaml.Mark | None) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}" if mark else "somewhere"


class _Conversion:
    def __init__(self, report: Report) -> None:
        self._report = report
        self._open: set[int] = set()

    def value(self, node: yaml.Node, path: str) -> object:
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        if id(node) in self._open:
            raise _Unreadable(f"{_place(node.start_mark)}: refers to itself")
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
                return self._mapping(node, path)
            if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
                return [self.value(item, f"{path}[{index}]") for index, item in enumerate(node.value)]
        finally:
            self._open.discard(id(node))
        raise _unknown_tag(node)

    def _mapping(self, node: yaml.MappingNode, path: str) -> dict[str, object]:
        merged: dict[str, object] = {}
        own: dict[str, object] = {}
        lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise _Unreadable(f"{_place(key_node.start_mark)}: a key must be a text")
            if key_node.tag == f"{_TAG}merge":
                merged = self._merged(value_node, path) | merged
                continue
            key, line = key_node.value, key_node.start_mark.line + 1
            place = child(path, key)
            if key in own:
                twice = f"given twice, in lines {lines[key]} and {line}; keep one of them"
                self._report.problem(place, twice)
            own[key] = self.value(value_node, place)
            lines[key] = line
        return merged | own

    def _merged(self, node: yaml.Node, path: str) -> dict[str, object]:
        """Return the mappings that `<<` merges. The first of several takes precedence."""
        content = self.value(node, path)
        together: dict[str, object] = {}
        for part in content if isinstance(content, list) else [content]:
            if not isinstance(part, dict):
                raise _Unreadable(f"{_place(node.start_mark)}: << needs a mapping, or a list of mappings")
            together = part | together
        return together


def _scalar(node: yaml.ScalarNode) -> object:
    text: str = node.value
    try:
        match node.tag.removeprefix(_TAG):
            case "str":
                return text
            case "null":
                return None
            case "bool":
                return text.lower() in _TRUE
            case "int":
                return _integer(text)
            case "float":
                number = float(text)
                return number if math.isfinite(number) else text
    except ValueError:
        raise _Unreadable(f"{_place(node.start_mark)}: {quoted(text)} is not a number") from None
    raise _unknown_tag(node)


def _integer(text: str) -> int:
    match = _INTEGER.fullmatch(text)
    if match is None:
        raise ValueError(text)
    sign, *forms = match.groups()
    ((digits, base),) = ((form, base) for form, base in zip(forms, _BASES, strict=True) if form)
    return int(f"{sign}{digits}", base)


def _unknown_tag(node: yaml.Node) -> _Unreadable:
    tag = node.tag.replace(_TAG, "!!")
    return _Unreadable(f"{_place(node.start_mark)}: the tag {quoted(tag)} is not supported; remove it")
