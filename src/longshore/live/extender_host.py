"""The cluster behind an extender: follows nodes and pods, and takes in measurements.

It decides and binds nothing. Controllers of agents still have their errands run, such as saving what was
learned, and providers of measurements are asked as in a scheduler.
"""

import asyncio
from collections.abc import Callable

from longshore.api import Node, Pod
from longshore.config import MeasurementSettings
from longshore.engine import Engine, Event, Measurements
from longshore.kube.cluster import KubeCluster
from longshore.live.follower import Follower
from longshore.measure.providers import Provider

_STOP_SECONDS = 5.0


class ExtenderHost:
    """`on_measured` is called with measurements once the engine has taken them in."""

    def __init__(
        self,
        engine: Engine,
        cluster: KubeCluster,
        *,
        measurements: MeasurementSettings,
        provider: Provider | None,
        on_measured: Callable[[Measurements], None] = lambda _measurements: None,
    ) -> None:
        self._on_measured = on_measured
        self._follower = Follower(
            engine,
            cluster,
            kinds=(Node, Pod),
            decides=False,
            measurements=measurements,
            provider=provider,
            on_event=self._taken_in,
            finish_within=_STOP_SECONDS,
        )

    @property
    def hindrance(self) -> str:
        """Why it does not know yet what answers depend on; empty once it does."""
        return self._follower.hindrance

    async def run(self, *, until: asyncio.Event) -> None:
        """Follow the cluster until told to stop; then let what is under way end."""
        await self._follower.run(until=until)

    def _taken_in(self, event: Event, _now: float) -> None:
        if isinstance(event, Measurements):
            self._on_measured(event)
