"""The problems of a file: each is a line that begins with a path in the file."""

import difflib
import json
from collections.abc import Iterable

from longshore.errors import UserError

_LONGEST = 60


class InvalidConfiguration(UserError):
    """The file is invalid. The message is one line: the first problem, and how many more there are."""

    def __init__(self, source: str, problems: Iterable[str], warnings: Iterable[str] = ()) -> None:
        self.source = source
        self.problems = tuple(problems)
        self.warnings = tuple(warnings)
        more = len(self.problems) - 1
        tail = f" (and {more} more: see `longshore config check {source}`)" if more else ""
        super().__init__(f"{source}: {self.problems[0]}{tail}")


class Report:
    """Collects the problems and warnings that a reader finds."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.warnings: list[str] = []
        # The names of the plugins that the file enables or disables anywhere.
        self.plugins: set[str] = set()
        # The path of a plugin's arguments, by the path of the profile and the plugin's name.
        self.arguments: dict[tuple[str, str], str] = {}

    def problem(self, path: str, text: str) -> None:
        self.problems.append(f"{path}: {text}")

    def warning(self, path: str, text: str) -> None:
        self.warnings.append(f"{path}: {text}")


def child(path: str, name: str) -> str:
    """Return the path of a field, such as `profiles[0].schedulerName`, or `labels["a b"]` for other names."""
    if not name.replace("-", "_").isidentifier():
        return f"{path}[{quoted(name)}]"
    return f"{path}.{name}" if path else name


def quoted(text: str) -> str:
    """Return the text in quotation marks and on one line, whatever it contains."""
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return json.dumps(shown, ensure_ascii=not shown.isprintable())


def found(value: object) -> str:
    """Describe a value of the wrong type in words."""
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
    """Join the texts, as in `a, b or c`."""
    *others, last = allowed
    return f"{', '.join(others)} or {last}" if others else last


def suggestion(name: str, allowed: Iterable[str]) -> str:
    """Return `; did you mean "x"?` if an allowed name is similar, or else nothing."""
    by_folded = {known.casefold(): known for known in allowed}
    near = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.7)
    return f"; did you mean {quoted(by_folded[near[0]])}?" if near else ""
