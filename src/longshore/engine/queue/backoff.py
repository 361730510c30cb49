"""Pods that wait after a failed attempt before they are tried again: 1, 2, 4, 8, 10, 10… seconds.

As in kube-scheduler, pods whose backoff ends within the same whole second come out together at its end, in
the order of the active pods. Pods that plugins rejected are kept apart from pods that met an error: only the
former may be tried early, when no other pod is active.
"""

from collections.abc import Iterator
from math import floor, inf

from longshore.engine.queue.entry import QueueEntry
from longshore.engine.queue.heap import EntryHeap

_WINDOW = 1.0
_DOUBLINGS = 60  # more of them pass any limit


class BackoffPods:
    def __init__(self, *, initial: float, longest: float) -> None:
        self._initial = initial
        self._longest = longest
        self._rejected = EntryHeap()
        self._errors = EntryHeap()

    def ends(self, entry: QueueEntry) -> float:
        """Return the second in which its backoff ends; long ago for a pod that never failed."""
        failures = entry.errors or entry.rejections
        if not failures or not self._longest:
            return -inf
        seconds = min(self._longest, self._initial * float(1 << min(failures - 1, _DOUBLINGS)))
        return float(floor(entry.timestamp + seconds))

    def holds_back(self, entry: QueueEntry, *, now: float) -> bool:
        """Whether its backoff still lasts: until the second in which it ends is over."""
        return self.ends(entry) + _WINDOW > now

    def push(self, entry: QueueEntry) -> None:
        if entry.rejectors:
            self._rejected.push((self.ends(entry), entry.sort_key), entry)
        else:
            self._errors.push((self.ends(entry),), entry)

    def pop_early(self) -> QueueEntry | None:
        """Remove and return the rejected pod whose backoff ends next."""
        return self._rejected.pop()

    @property
    def has_early(self) -> bool:
        return self._rejected.first() is not None

    def over(self, *, now: float) -> Iterator[QueueEntry]:
        """Remove and yield the pods whose backoff is over."""
        for heap in (self._rejected, self._errors):
            while (head := heap.first()) is not None and head[0][0] + _WINDOW <= now:
                heap.pop()
                yield head[1]

    @property
    def next_over(self) -> float | None:
        heads = (self._rejected.first(), self._errors.first())
        return min((head[0][0] + _WINDOW for head in heads if head is not None), default=None)
