"""The rows that changed, in order: a reader that keeps answers catches up from where it stopped."""

# Changes kept. A reader further behind looks at all rows again, which costs less than replaying so many.
_KEPT = 50_000


class Journal:
    def __init__(self) -> None:
        # A row whose node changed, rather than the pods on it, is noted as its complement, ~row.
        self._entries: list[int] = []
        self._dropped = 0

    @property
    def position(self) -> int:
        """The position of a reader that has seen everything."""
        return self._dropped + len(self._entries)

    def rows_since(self, position: int, *, at_most: int = 2 * _KEPT) -> dict[int, bool] | None:
        """The rows that changed after the position, each with whether its node changed, not only its pods.

        None means that the reader has to look at all rows: the position is negative or too far back, or
        there are more than `at_most` changes.
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
        """All rows may have changed."""
        self._dropped = self.position + 1
        self._entries.clear()

    def _add(self, entry: int) -> None:
        entries = self._entries
        entries.append(entry)
        if len(entries) >= 2 * _KEPT:
            del entries[:_KEPT]
            self._dropped += _KEPT
