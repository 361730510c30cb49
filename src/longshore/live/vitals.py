"""The state of a running scheduler, readable from any thread: for metrics and probes."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager

from longshore.kube.cluster import Mirror
from longshore.live.follower import Follower
from longshore.live.heartbeat import Heartbeat


class Vitals:
    def __init__(
        self,
        follower: Follower,
        *,
        lease_name: str,
        stop: asyncio.Event,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # Empty if it runs without leader election.
        self.lease_name = lease_name
        self._follower = follower
        self._stop = stop
        self._heart = Heartbeat(clock)
        self._has_led = False

    def beating(self) -> AbstractAsyncContextManager[None]:
        """Note every second that the event loop still runs."""
        return self._heart.beating()

    @property
    def leads(self) -> bool:
        return self._follower.leads

    @property
    def writes_in_flight(self) -> int:
        return self._follower.requests_in_flight

    @property
    def events_waiting(self) -> int:
        return self._follower.events_waiting

    @property
    def mirrors(self) -> Iterator[Mirror]:
        return self._follower.mirrors

    @property
    def live(self) -> Mapping[str, Callable[[], str]]:
        """Checks that fail when only a restart can help. Each returns what is wrong, or an empty string."""
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
        if self._follower.ready:
            return ""
        missing = ", ".join(mirror.name for mirror in self.mirrors if not mirror.is_synced)
        return f"not all objects are known yet: {missing or 'the last ones are being counted'}"

    def _ending(self) -> str:
        return "stopping" if self._stop.is_set() else ""
