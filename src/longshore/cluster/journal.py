"""The rows that changed, in order. A reader that caches results catches up from where it stopped."""

# The changes that are kept. A reader that is further behind looks at all rows again, which costs less than
# going through that many changes.
_KEPT = 50_000


class Journal:
    def __init__(self) -> None:
        # A change of pods is recorded as the row, a change of the node as the complement, ~row.
        self._entries: list[int] = []
        self._dropped = 0

    @property
    def position(self) -> int:
        """The position of a reader that has seen all changes."""
        return self._dropped + len(self._entries)

    def rows_since(self, position: int, *, at_most: int = 2 * _KEPT) -> dict[int, bool] | None:
        """Return the rows that changed after the position, each with whether its node changed.

        Return None if the reader has to look at all rows: because the position is negative or too far back,
        or because there are more than `at_most` changes.
        """
        entries, start = self._entries, position - self._dropped
        if start < 0 or len(entries) - start > at_most:
            return None
        rows: dict[int, bool] = {}
        for entry in entries[start:]:
            if entry < 0:
                rows[~entry] = True
            elif entry not in rows:
                rows[entry] = False
        return rows

    def pods_changed(self, row: int) -> None:
        self._add(row)

    def node_changed(self, row: int) -> None:
        self._add(~row)

    def everything_changed(self) -> None:
        """Record that all rows may have changed."""
        self._dropped = self.position + 1
        self._entries.clear()

    def _add(self, entry: int) -> None:
        entries = self._entries
        entries.append(entry)
        if len(entries) >= 2 * _KEPT:
            del entries[:_KEPT]
            self._dropped += _KEPT
