"""Names of nodes that requests contain but our watch does not know, perhaps because it is behind."""

from collections.abc import Sequence

# Seconds after which a name is forgotten, so that a node that is created again is waited for.
_REMEMBERED = 60.0
# More unknown names mean another cluster rather than a watch that is behind: do not wait for them.
_MOST = 10_000
# The longest name that a node can have.
_LONGEST = 253


class UnknownNodes:
    """Remembers unknown names for about a minute, so that no request waits for the same name twice."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._since = 0.0

    def worth_waiting_for(self, names: Sequence[str], *, now: float) -> bool:
        """Return whether one of the names is new, and remember them all."""
        if not names:
            return False
        if now - self._since > _REMEMBERED:
            self._names.clear()
            self._since = now
        before = len(self._names)
        if before >= _MOST:
            return False
        self._names.update(name for name in names if len(name) <= _LONGEST)
        return len(self._names) > before
