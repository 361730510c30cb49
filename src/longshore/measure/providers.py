"""The contract of a provider of measurements, and the loop that asks one and passes the values on.

A provider knows one source: Prometheus, metrics-server or load-watcher. Values that it does not know are
missing in its answer, and if the source is down, the answer is empty. The loop passes on empty answers too,
because values expire only when they are read. The log has one line when a source fails and one when it works
again.
"""

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
import structlog

from longshore.agents.annotations import read_load
from longshore.api import Node
from longshore.cluster import ClusterState
from longshore.cluster.measures import Measured
from longshore.config import Configuration, MeasurementSettings
from longshore.config.registry import Registered
from longshore.engine import Measurements
from longshore.errors import UserError
from longshore.framework.agents import is_agent
from longshore.kube.client import Client

log = structlog.get_logger()

Values = Mapping[str, Mapping[str, Measured]]

# The share of the interval that is random, so that replicas do not ask at the same time. It only shortens the
# interval, because values may expire soon after it.
_JITTER = 0.1
# The most seconds that a round may take.
TIMEOUT = 10.0
# Seconds until the next round while the nodes are being listed.
_SOON = 1.0
# How many names of nodes a log line shows.
_SHOWN = 3


class ProviderFailed(UserError):
    """A source that cannot be used. The text is one line."""


class Provider(Protocol):
    async def measure(self, nodes: Sequence[Node]) -> Values:
        """Return the value and its time, by measure and node name. Raises ProviderFailed.

        Values are the used amounts, finite and not negative, and names are those of the given nodes.
        """
        ...

    async def close(self) -> None:
        """Close connections. The provider may be used again."""
        ...


def make_provider(settings: MeasurementSettings, client: Client) -> Provider | None:
    """Return the provider in the settings; None for annotations, which come with the nodes.

    Raises UserError if a file in the settings cannot be used.
    """
    match settings.provider:
        case "annotations":
            return None
        case "prometheus":
            from longshore.measure.prometheus import Prometheus

            return Prometheus(settings)
        case "metrics-server":
            from longshore.measure.metrics_server import MetricsServer

            return MetricsServer(client, window=settings.window, max_age=settings.max_age)
        case "load-watcher":
            from longshore.measure.load_watcher import LoadWatcher

            return LoadWatcher(settings)


def settings_for(
    configuration: Configuration, plugins: Mapping[str, Registered]
) -> MeasurementSettings | None:
    """Return the settings in the configuration, or the defaults if it has agents but no settings."""
    configured = configuration.longshore.measurements
    if configured is not None:
        return configured
    enabled = {
        each.name for profile in configuration.profiles for point in profile.points.values() for each in point
    }
    agents = any(is_agent(plugin.thing) for name, plugin in plugins.items() if name in enabled)
    return MeasurementSettings() if agents else None


class Measuring:
    """The loop over one provider. `on_values` is called after every round, also without values."""

    def __init__(
        self,
        settings: MeasurementSettings,
        provider: Provider | None,
        cluster: ClusterState,
        on_values: Callable[[Measurements], None],
        *,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._provider = provider
        self._cluster = cluster
        self._on_values = on_values
        self._wall = wall
        # Why the last round had no values, and the nodes without values.
        self._problem = ""
        self._unmeasured: frozenset[str] = frozenset()
        # The number of completed rounds.
        self.rounds = 0
        cluster.measures.max_age = settings.max_age
        cluster.measures.settle = settings.settle

    @property
    def problem(self) -> str:
        """Why there are no measurements, in one line, or an empty string."""
        return self._problem

    async def run(self) -> None:
        """Run until cancelled. Call this when nodes and pods are listed.

        Annotations are read only from then on: a pod that becomes known after the load of its node would be
        added to that load.
        """
        if self._provider is None:
            read_load(self._cluster)
        nodes_before = 0
        try:
            while True:
                nodes = self._cluster.node_count
                values = await self.measure()
                self.rounds += 1
                self._on_values(Measurements(values))
                settled = 0 < nodes == nodes_before
                nodes_before = nodes
                pause = self._settings.interval if settled else min(self._settings.interval, _SOON)
                await asyncio.sleep(pause * random.uniform(1 - _JITTER, 1))
        finally:
            if self._provider is not None:
                await self._provider.close()

    async def measure(self) -> Values:
        """Run one round. Return nothing if the provider fails for any reason."""
        nodes = self._nodes()
        if self._provider is None or not nodes:
            return {}
        try:
            async with asyncio.timeout(TIMEOUT):
                values = await self._provider.measure(nodes)
        except TimeoutError:
            self._failed(f"no answer within {TIMEOUT:g}s")
        except UserError as error:
            self._failed(str(error))
        except Exception as error:
            # A scheduler must continue without measurements even after an unexpected error.
            self._failed(f"{type(error).__name__}: {error}")
        else:
            values = self._without_future(values)
            self._check(nodes, values)
            return values
        return {}

    def _nodes(self) -> list[Node]:
        rows = np.flatnonzero(self._cluster.known).tolist()
        return [node for row in rows if (node := self._cluster.node(row)) is not None]

    def _without_future(self, values: Values) -> Values:
        """Return the values without those far in the future, which would not expire for too long."""
        latest = self._wall() + self._settings.max_age
        return {
            name: {node: measured for node, measured in by_node.items() if not measured[1] > latest}
            for name, by_node in values.items()
        }

    def _failed(self, reason: str) -> None:
        # Log the failure once, even if the reason changes.
        if not self._problem:
            log.warning("no measurements", provider=self._settings.provider, reason=reason)
        self._problem = reason

    def _check(self, nodes: Iterable[Node], values: Values) -> None:
        """Log if no value is fresh, or if some nodes have no values."""
        oldest = self._wall() - self._settings.max_age
        measured = {
            name for by_node in values.values() for name, (_, at) in by_node.items() if not at < oldest
        }
        if not measured:
            old = f"all values are older than {self._settings.max_age:g}s"
            self._failed(old if any(values.values()) else "no values for any node")
            return
        if self._problem:
            log.info("measurements are back", provider=self._settings.provider)
            self._problem = ""
        unmeasured = frozenset(node.metadata.name for node in nodes) - measured
        if unmeasured - self._unmeasured:
            some = sorted(unmeasured)[:_SHOWN]
            log.warning("some nodes have no measurements", nodes=some, number=len(unmeasured))
        self._unmeasured = unmeasured
