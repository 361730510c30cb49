"""Passes over the cluster as it is at a moment, for those who cannot or do not want to watch it.

What can be decided is decided, bound and told, and each pod is tried once. What waits for the cluster to
change is left for the next pass, which tells the engine what is different.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable

from longshore.api import Change
from longshore.api.meta import ApiObject, kind_of
from longshore.engine import Engine
from longshore.engine.events import Done
from longshore.kube.cluster import Performer

_CYCLES_AT_ONCE = 8


class Passes:
    """`performer` makes one, given whom to tell how an effect ended, and when there is room for more."""

    def __init__(
        self, engine: Engine, performer: Callable[[Callable[[Done], None], Callable[[], None]], Performer]
    ) -> None:
        self._engine = engine
        self._seen: dict[tuple[type[ApiObject], str], ApiObject] = {}
        self._answers: deque[Done] = deque()
        self._wake = asyncio.Event()
        self._performer = performer(self._answered, self._wake.set)

    async def make(self, objects: Iterable[ApiObject], *, finish_within: float) -> None:
        """Another pass, over all objects that there are now."""
        self._look_at({(kind_of(thing), thing.key): thing for thing in objects})
        while True:
            self._wake.clear()
            while self._answers:
                self._engine.receive(self._answers.popleft(), now=time.monotonic())
            while self._performer.has_room and self._is_due():
                for request in self._engine.advance(now=time.monotonic(), max_cycles=_CYCLES_AT_ONCE):
                    self._performer.perform(request)
            if not self._performer.answers_due and not self._is_due():
                break
            await self._wake.wait()
        await self._performer.finish(within=finish_within)

    def _look_at(self, now_there: dict[tuple[type[ApiObject], str], ApiObject]) -> None:
        now = time.monotonic()
        for key, old in list(self._seen.items()):
            new = now_there.get(key)
            # Another object may have taken the name since: a pod that was deleted and has come back.
            if new is None or new.metadata.uid != old.metadata.uid:
                del self._seen[key]
                self._engine.receive(Change(old, None), now=now)
        for key, new in now_there.items():
            before = self._seen.get(key)
            if before is None or before.metadata.resource_version != new.metadata.resource_version:
                self._engine.receive(Change(before, new), now=now)
        self._seen = now_there

    def _answered(self, done: Done) -> None:
        self._answers.append(done)
        self._wake.set()

    def _is_due(self) -> bool:
        deadline = self._engine.deadline
        return deadline is not None and deadline <= time.monotonic()
