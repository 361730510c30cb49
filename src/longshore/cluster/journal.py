"""Which rows changed, in order: whoever keeps answers about rows catches up from where it stopped reading."""

# Changes kept. Who is further behind looks at all rows anew, which costs less than replaying so many.
_KEPT = 50_000


class Journal:
    def __init__(self) -> None:
        self._entries: list[int] = []
        self._dropped = 0

    @property
    def position(self) -> int:
        """Where a reader stands who has seen everything."""
        return self._dropped + len(self._entries)

    def since(self, position: int) -> list[int] | None:
        """The rows that changed after the position, some of them more than once; None if it is too far back.

        A row whose node changed, rather than the pods on it, is told as its complement, ~row.
        """
        start = position - self._dropped
        return self._entries[start:] if start >= 0 else None

    def pods_changed(self, row: int) -> None:
        self._add(row)

    def node_changed(self, row: int) -> None:
        self._add(~row)

    def everything_changed(self) -> None:
        """No row is what it was."""
        self._dropped = self.position + 1
        self._entries.clear()

    def _add(self, entry: int) -> None:
        entries = self._entries
        entries.append(entry)
        if len(entries) >= 2 * _KEPT:
            del entries[:_KEPT]
            self._dropped += _KEPT
