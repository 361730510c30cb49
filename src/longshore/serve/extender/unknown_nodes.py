"""Nodes that requests name and nobody here knows: perhaps not yet, for the watch may be a moment behind."""

from collections.abc import Sequence

# Seconds; a node that goes and comes back later is waited for again.
_REMEMBERED = 60.0
# More names than that are no race with a watch, but another cluster: nobody waits for them.
_MOST = 10_000
# Nodes have no longer names.
_LONGEST = 253


class UnknownNodes:
    """Their names, so that nobody waits for them twice; forgotten together, about once a minute."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._since = 0.0

    def worth_waiting_for(self, names: Sequence[str], *, now: float) -> bool:
        """Whether one of them is new here; from now on none is."""
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
