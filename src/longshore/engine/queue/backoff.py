"""The pods that sit out a while after a failed attempt: 1, 2, 4, 8, 10, 10… seconds.

As in kube-scheduler, pods whose time ends within the same whole second come out together at its end, and are
in the order of the active queue until then. Those rejected by plugins are apart from those that met an error:
only the former may be tried early, when there is nothing else to do.
"""

from collections.abc import Iterator
from math import floor, inf

from longshore.engine.queue.entry import Entry
from longshore.engine.queue.heap import Line

_WINDOW = 1.0
_DOUBLINGS = 60  # more of them pass any limit


class Backoff:
    def __init__(self, *, initial: float, longest: float) -> None:
        self._initial = initial
        self._longest = longest
        self._rejected = Line()
        self._errors = Line()

    def ends(self, entry: Entry) -> float:
        """The second in which its backoff ends; long ago for a pod that never failed."""
        failures = entry.errors or entry.rejections
        if not failures or not self._longest:
            return -inf
        seconds = min(self._longest, self._initial * float(1 << min(failures - 1, _DOUBLINGS)))
        return float(floor(entry.timestamp + seconds))

    def holds_back(self, entry: Entry, *, now: float) -> bool:
        """Whether its time has not come: not before the second in which it ends is over."""
        return self.ends(entry) + _WINDOW > now

    def push(self, entry: Entry) -> None:
        if entry.rejectors:
            self._rejected.push((self.ends(entry), entry.sort_key), entry)
        else:
            self._errors.push((self.ends(entry),), entry)

    def pop_early(self) -> Entry | None:
        """The rejected pod whose time comes next."""
        return self._rejected.pop()

    @property
    def has_early(self) -> bool:
        return self._rejected.first() is not None

    def over(self, *, now: float) -> Iterator[Entry]:
        """Take out those whose time has come."""
        for line in (self._rejected, self._errors):
            while (head := line.first()) is not None and head[0][0] + _WINDOW <= now:
                line.pop()
                yield head[1]

    @property
    def next_over(self) -> float | None:
        heads = (self._rejected.first(), self._errors.first())
        return min((head[0][0] + _WINDOW for head in heads if head is not None), default=None)
