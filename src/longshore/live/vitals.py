"""What can be known about a running scheduler from any thread: for metrics and for probes."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from longshore.kube.reflector import Reflector
from longshore.live.follower import Driver
from longshore.live.heartbeat import Heartbeat


@dataclass(frozen=True, slots=True)
class Mirror:
    """A reflector as it is now."""

    name: str
    is_synced: bool
    size: int
    lists: int


def mirrors_of(reflectors: Iterable[Reflector[Any]]) -> Iterator[Mirror]:
    for each in reflectors:
        yield Mirror(str(each.resource), each.synced.is_set(), len(each.store), each.lists)


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
        self._heart = Heartbeat(clock)
        self._has_led = False

    def beating(self) -> AbstractAsyncContextManager[None]:
        """Note every second that the event loop still has its turns."""
        return self._heart.beating()

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
        return mirrors_of(self._driver.reflectors)

    @property
    def live(self) -> Mapping[str, Callable[[], str]]:
        """Checks that fail when only a restart can help. Each tells what is wrong, or nothing."""
        checks: dict[str, Callable[[], str]] = {"loop": self._heart.silence}
        if self.lease_name:
            checks["leaderElection"] = self._overdue
        return checks

    @property
    def ready(self) -> Mapping[str, Callable[[], str]]:
        """Checks that fail while it cannot schedule. One without the lease is ready to take over."""
        return {"sched-handler-sync": self._behind, "shutdown": self._ending}

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
