"""What can be known about a running scheduler from any thread: for metrics and for probes."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from longshore.live.driver import Driver

_BEAT_SECONDS = 1.0
# Without a turn for so long, the event loop is as good as dead.
_DEAF_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Mirror:
    """A reflector as it is now."""

    name: str
    is_synced: bool
    size: int
    lists: int


class Vitals:
    def __init__(
        self,
        driver: Driver,
        *,
        lease_name: str,
        stop: asyncio.Event,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # Empty if it schedules without a lease.
        self.lease_name = lease_name
        self._driver = driver
        self._stop = stop
        self._clock = clock
        self._last_beat = clock()
        self._has_led = False

    @asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        """Note every second that the event loop still has its turns."""
        heart = asyncio.create_task(self._beat())
        try:
            yield
        finally:
            heart.cancel()

    async def _beat(self) -> None:
        while True:
            self._last_beat = self._clock()
            await asyncio.sleep(_BEAT_SECONDS)

    @property
    def leads(self) -> bool:
        return self._driver.may_bind()

    @property
    def writes_in_flight(self) -> int:
        return self._driver.writes_in_flight

    @property
    def events_waiting(self) -> int:
        return self._driver.events_waiting

    @property
    def mirrors(self) -> Iterator[Mirror]:
        for reflector in self._driver.reflectors:
            yield Mirror(
                str(reflector.resource), reflector.synced.is_set(), len(reflector.store), reflector.lists
            )

    @property
    def live(self) -> Mapping[str, Callable[[], str]]:
        """Checks that fail when only a restart can help. Each tells what is wrong, or nothing."""
        checks: dict[str, Callable[[], str]] = {"loop": self._deaf}
        if self.lease_name:
            checks["leaderElection"] = self._overdue
        return checks

    @property
    def ready(self) -> Mapping[str, Callable[[], str]]:
        """Checks that fail while it cannot schedule. One without the lease is ready to take over."""
        return {"sched-handler-sync": self._behind, "shutdown": self._ending}

    def _deaf(self) -> str:
        silence = self._clock() - self._last_beat
        return f"the event loop has had no turn for {silence:.0f} s" if silence > _DEAF_SECONDS else ""

    def _overdue(self) -> str:
        leads = self.leads
        self._has_led = self._has_led or leads
        overdue = self._has_led and not leads and not self._stop.is_set()
        return "the lease was not renewed in time" if overdue else ""

    def _behind(self) -> str:
        if self._driver.ready:
            return ""
        missing = ", ".join(mirror.name for mirror in self.mirrors if not mirror.is_synced)
        return f"not all objects are known yet: {missing or 'the last are being counted'}"

    def _ending(self) -> str:
        return "stopping" if self._stop.is_set() else ""
