"""Reads a mapping of the file field by field.

A reader is a function of `Fields` that reads each field that it knows. The other fields are reported as
unknown. A value of the wrong type is reported and read as the default, so that all problems are found in one
pass. As in kube-scheduler, a field that is null counts as left out.
"""

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from longshore.api.duration import parse_duration
from longshore.config.problems import Report, child, either, found, suggestion

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
FLOAT32_MAX = 3.4028235e38

T = TypeVar("T")
S = TypeVar("S", bound=str)


class Fields:
    def __init__(self, content: Mapping[str, object], path: str, report: Report) -> None:
        self._content = content
        self._known: set[str] = set()
        self.path = path
        self.report = report

    def problem(self, name: str, text: str, *, item: int | None = None) -> None:
        """Report a problem of a field, or of an item of it."""
        self.report.problem(child(self.path, name) + ("" if item is None else f"[{item}]"), text)

    def warning(self, name: str, text: str) -> None:
        self.report.warning(child(self.path, name), text)

    def given(self, name: str) -> bool:
        """Whether the field has a value. An empty list counts as left out, like null."""
        return self._content.get(name) not in (None, [])

    def count(self, name: str) -> int:
        """Return the number of items of a list, or 0 for any other value."""
        value = self._content.get(name)
        return len(value) if isinstance(value, list) else 0

    def _take(self, name: str) -> object:
        self._known.add(name)
        return self._content.get(name)

    def _wrong(self, name: str, wanted: str, value: object, *, item: int | None = None) -> None:
        self.problem(name, f"must be {wanted}, found {found(value)}", item=item)

    def text(self, name: str, default: str = "") -> str:
        """Return a text. An empty text counts as left out."""
        value = self._take(name)
        if isinstance(value, str):
            return value or default
        if value is not None:
            self._wrong(name, "a text", value)
        return default

    def needed_text(self, name: str, wanted: str) -> str:
        value = self._take(name)
        if value is None or value == "":
            self.problem(name, f"missing; it must be {wanted}")
        return self.text(name)

    def choice(self, name: str, allowed: Collection[S]) -> S | None:
        """Return one of the allowed texts, or None if the field is left out or invalid."""
        value = self._take(name)
        for option in allowed:
            if value == option:
                return option
        if value is not None and value != "":
            self._wrong(name, either(allowed), value)
        return None

    def needed_choice(self, name: str, allowed: Collection[S]) -> S | None:
        value = self._take(name)
        if value is None or value == "":
            self.problem(name, f"missing; it must be {either(allowed)}")
        return self.choice(name, allowed)

    def refuse(self, name: str, why: str) -> None:
        """Report a field that kube-scheduler knows but that is not allowed here."""
        if self._take(name) is not None:
            self.problem(name, why)

    def flag(self, name: str, default: bool = False) -> bool:
        value = self._take(name)
        if isinstance(value, bool):
            return value
        if value is not None:
            self._wrong(name, "true or false", value)
        return default

    def integer(self, name: str, default: int = 0, *, at_least: int, at_most: int = INT32_MAX) -> int:
        value = self._take(name)
        if value is None:
            return default
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            self._wrong(name, _whole(at_least, at_most), value)
            return default
        if not at_least <= value <= at_most:
            self._wrong(name, _whole(at_least, at_most, too_large=value > at_most), value)
            return default
        return value

    def number(self, name: str, default: float) -> float:
        """Return a number. 0 counts as left out."""
        value = self._take(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= FLOAT32_MAX:
            return float(value) or default
        if value is not None:
            self._wrong(name, "a number", value)
        return default

    def duration(self, name: str, default: float) -> float:
        """Return the seconds of a duration in Go's format, such as 1m30s."""
        value = self._take(name)
        if value is None:
            return default
        seconds = parse_duration(value) if isinstance(value, str) else None
        if seconds is None:
            self._wrong(name, "a duration such as 15s or 1m30s", value)
            return default
        return seconds

    def texts(
        self, name: str, wanted: str = "a text", valid: Callable[[str], bool] = lambda _: True
    ) -> tuple[str, ...]:
        """Return the items that are valid texts, and report the others."""
        good = []
        for index, item in enumerate(self._list(name, "a list of texts")):
            if isinstance(item, str) and valid(item):
                good.append(item)
            else:
                self._wrong(name, wanted, item, item=index)
        return tuple(good)

    def mapping(self, name: str) -> Mapping[str, object]:
        """Return a mapping as it is in the file."""
        value = self._take(name)
        if isinstance(value, dict):
            return value
        if value is not None:
            self._wrong(name, "a mapping", value)
        return {}

    def nested(self, name: str, reader: "Callable[[Fields], T]") -> T:
        """Return what the reader makes of the mapping, which is empty if it was left out."""
        value = self._take(name)
        if isinstance(value, dict | None):
            return read_mapping(value or {}, child(self.path, name), self.report, reader)
        self._wrong(name, "a mapping", value)
        return _read_nothing(reader)

    def optional(self, name: str, reader: "Callable[[Fields], T]") -> T | None:
        value = self._take(name)
        return None if value is None else self.nested(name, reader)

    def each(self, name: str, reader: "Callable[[Fields], T]") -> tuple[T, ...]:
        """Return a result for each item, also if it is not a mapping, so that indexes match the file."""
        results = []
        for index, item in enumerate(self._list(name, "a list of mappings")):
            if isinstance(item, dict):
                path = f"{child(self.path, name)}[{index}]"
                results.append(read_mapping(item, path, self.report, reader))
            else:
                self._wrong(name, "a mapping", item, item=index)
                results.append(_read_nothing(reader))
        return tuple(results)

    def _list(self, name: str, wanted: str) -> list[object]:
        value = self._take(name)
        if isinstance(value, list):
            return value
        if value is not None:
            self._wrong(name, wanted, value)
        return []

    def report_unknown(self) -> None:
        for name in self._content:
            if name not in self._known:
                self.problem(name, f"unknown field{suggestion(name, self._known)}")


def read_mapping(
    content: Mapping[str, object], path: str, report: Report, reader: Callable[[Fields], T]
) -> T:
    fields = Fields(content, path, report)
    result = reader(fields)
    fields.report_unknown()
    return result


def _read_nothing(reader: Callable[[Fields], T]) -> T:
    """Return the defaults, and report nothing: the value that is there instead was reported already."""
    return reader(Fields({}, "", Report()))


def _whole(at_least: int, at_most: int, *, too_large: bool = False) -> str:
    """Describe the range in words. It names the limits of 32 and 64 bits only if they were exceeded."""
    if at_most not in (INT32_MAX, INT64_MAX):
        return f"a whole number from {at_least} to {at_most}"
    if too_large:
        return f"a whole number of at most {at_most}"
    return "a whole number" if at_least == -INT64_MAX else f"a whole number of at least {at_least}"
