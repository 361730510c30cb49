"""What is wrong with a file: every problem of it, each one line that begins with its path in the file."""

import difflib
import json
from collections.abc import Iterable

from longshore.errors import UserError

_LONGEST = 60


class InvalidConfiguration(UserError):
    """The file cannot be used. As text, the first problem and how many more there are, in one line."""

    def __init__(self, source: str, problems: Iterable[str], warnings: Iterable[str] = ()) -> None:
        self.source = source
        self.problems = tuple(problems)
        self.warnings = tuple(warnings)
        more = len(self.problems) - 1
        tail = f" (and {more} more: see `longshore config check {source}`)" if more else ""
        super().__init__(f"{source}: {self.problems[0]}{tail}")


class Report:
    """Collects what a reader finds."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.warnings: list[str] = []
        # The plugins that the file enables or disables by name, somewhere.
        self.plugins: set[str] = set()
        # Where the arguments of plugins are, by the paths of profiles and the names of plugins.
        self.arguments: dict[tuple[str, str], str] = {}

    def problem(self, path: str, text: str) -> None:
        self.problems.append(f"{path}: {text}")

    def warning(self, path: str, text: str) -> None:
        self.warnings.append(f"{path}: {text}")


def child(path: str, name: str) -> str:
    """The path of a field: `profiles[0].schedulerName`, or `labels["a b"]` where a dot would not be clear."""
    if not name.replace("-", "_").isidentifier():
        return f"{path}[{quoted(name)}]"
    return f"{path}.{name}" if path else name


def quoted(text: str) -> str:
    """In quotation marks and on one line, whatever it holds."""
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return json.dumps(shown, ensure_ascii=not shown.isprintable())


def found(value: object) -> str:
    """A value of the wrong type in words."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case str():
            return f"the text {quoted(value)}"
        case int() if abs(value) >= 10**20:
            return "a number of more than 20 digits"
        case int() | float():
            return f"the number {value}"
        case list():
            return "a list"
        case _:
            return "a mapping"


def either(allowed: Iterable[str]) -> str:
    """`a, b or c`"""
    *others, last = allowed
    return f"{', '.join(others)} or {last}" if others else last


def suggestion(name: str, allowed: Iterable[str]) -> str:
    """`; did you mean "x"?` where a known name is near, else nothing."""
    by_folded = {known.casefold(): known for known in allowed}
    near = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.7)
    return f"; did you mean {quoted(by_folded[near[0]])}?" if near else ""
