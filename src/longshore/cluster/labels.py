"""Node labels as columns of numbers. The column of a key is created on first use.

`column(key)[row]` is the number of the label's value, or ABSENT if the node has no such label. The values of
each key are numbered from 0 in the order in which they were first seen, so a column also divides the nodes
into the domains of a topology key.
"""

import re
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from longshore.api import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from longshore.cluster.arrays import Bools, Ids, Rows

ABSENT = -1
NAME_FIELD = "metadata.name"
# What Go's ParseInt accepts. Python's int() accepts more, such as "1_000".
_INTEGER = re.compile(r"[+-]?[0-9]+")
_INT64 = range(-(2**63), 2**63)


class _Column:
    def __init__(self, size: int) -> None:
        self.ids: Ids = np.full(size, ABSENT, np.int32)
        self.values: dict[str, int] = {}

    def put(self, row: int, value: str | None) -> None:
        self.ids[row] = ABSENT if value is None else self.values.setdefault(value, len(self.values))


class LabelColumns:
    """The labels of all rows. `rows` returns the current labels of each row that has a node."""

    def __init__(self, rows: Callable[[], Iterable[tuple[int, Mapping[str, str]]]]) -> None:
        self._rows = rows
        self._size = 0
        self._columns: dict[str, _Column] = {}
        self._names: dict[str, int] = {}

    def column(self, key: str) -> Ids:
        return self._column(key).ids

    def domains(self, key: str) -> int:
        """Return how many values the key has had so far. Every number in its column is smaller."""
        return len(self._column(key).values)

    def number(self, key: str, value: str) -> int:
        """Return the number of the value, or a number that no row has if the value was never seen."""
        return self._column(key).values.get(value, ABSENT - 1)

    def matches_all(self, wanted: Mapping[str, str], rows: Rows) -> Bools:
        """Return true for the rows on which every wanted label has the wanted value."""
        found = self._everywhere(rows)
        for key, value in wanted.items():
            found = found & (self.column(key)[rows] == self.number(key, value))
        return found

    def matches_selector(self, selector: NodeSelector, rows: Rows) -> Bools:
        """Return true for the rows on which at least one term holds."""
        found = self._everywhere(rows) ^ True
        for term in selector.node_selector_terms:
            found = found | self.matches_term(term, rows)
        return found

    def matches_term(self, term: NodeSelectorTerm, rows: Rows) -> Bools:
        """Return true for the rows on which all requirements hold; an empty term never holds."""
        found = self._everywhere(rows)
        if not term.match_expressions and not term.match_fields:
            return found ^ True
        for requirement in term.match_expressions:
            found = found & self._matches(requirement, rows)
        for requirement in term.match_fields:
            found = found & self._matches_name(requirement, rows)
        return found

    def _matches(self, requirement: NodeSelectorRequirement, rows: Rows) -> Bools:
        key, values = requirement.key, requirement.values
        column = self.column(key)[rows]
        match requirement.operator:
            case "In":
                return self._is_one_of(key, values, column)
            case "NotIn":
                return self._is_one_of(key, values, column) ^ True
            case "Exists":
                return _bools(column != ABSENT)
            case "DoesNotExist":
                return _bools(column == ABSENT)
            case "Gt" | "Lt" if len(values) == 1 and (bound := integer(values[0])) is not None:
                greater = requirement.operator == "Gt"
                fitting = [
                    number
                    for value, number in self._column(key).values.items()
                    if (amount := integer(value)) is not None
                    and (amount > bound if greater else amount < bound)
                ]
                return self._is_numbered(key, fitting, column)
        # The API server rejects other operators. One that comes from elsewhere never holds.
        return self._everywhere(rows) ^ True

    def _matches_name(self, requirement: NodeSelectorRequirement, rows: Rows) -> Bools:
        everywhere = self._everywhere(rows)
        if requirement.key != NAME_FIELD or requirement.operator not in ("In", "NotIn"):
            return everywhere ^ True
        named = np.zeros(self._size, np.bool_)
        named[[self._names[name] for name in requirement.values if name in self._names]] = True
        return _bools(named[rows] if requirement.operator == "In" else ~named[rows])

    def _is_one_of(self, key: str, values: tuple[str, ...], column: Ids) -> Bools:
        if len(values) == 1:
            return _bools(column == self.number(key, values[0]))
        known = self._column(key).values
        return self._is_numbered(key, [known[value] for value in values if value in known], column)

    def _is_numbered(self, key: str, numbers: list[int], column: Ids) -> Bools:
        # One element more than there are values: ABSENT is -1, the index of the last one.
        chosen = np.zeros(self.domains(key) + 1, np.bool_)
        chosen[numbers] = True
        return _bools(chosen[column])

    def _everywhere(self, rows: Rows) -> Bools:
        return _bools(np.ones(self._size, np.bool_)[rows])

    # Updates.

    def put(self, row: int, name: str, labels: Mapping[str, str]) -> None:
        """Update the row, whose node is new or has changed."""
        self._names[name] = row
        for key, column in self._columns.items():
            column.put(row, labels.get(key))

    def remove(self, row: int, name: str) -> None:
        self._names.pop(name, None)
        for column in self._columns.values():
            column.ids[row] = ABSENT

    def resize(self, size: int) -> None:
        self._size = size
        for column in self._columns.values():
            more: Ids = np.full(size - len(column.ids), ABSENT, np.int32)
            column.ids = np.concatenate([column.ids, more])

    def _column(self, key: str) -> _Column:
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = _Column(self._size)
            for row, labels in self._rows():
                column.put(row, labels.get(key))
        return column


def integer(text: str) -> int | None:
    """Return the value of a label as Gt and Lt read it, or None if it is not a 64-bit integer."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if number in _INT64 else None


def _bools(answer: object) -> Bools:
    """Cast for the type checker: numpy's types do not say that comparing integers gives booleans."""
    return answer  # type: ignore[return-value]
