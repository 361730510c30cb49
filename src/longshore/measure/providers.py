"""Asks a provider what the nodes use, again and again, and tells it to whoever decides by it.

A provider knows one source: Prometheus, metrics-server or load-watcher. What it cannot give is missing from
its answer, and a source that is down gives nothing at all; the loop tells that too, since values grow old
only when they are looked at. Whoever reads the log hears once that a source fails, and once that it is well
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

# Of the interval: replicas that start together do not ask together for ever. It is only ever made shorter:
# values may count for hardly longer.
_JITTER = 0.1
# Seconds for a round. No agent gets better by waiting longer.
TIMEOUT = 10.0
# Seconds to the next round while nodes become known.
_SOON = 1.0
# So many names of nodes are enough to understand what is wrong.
_SHOWN = 3


class ProviderFailed(UserError):
    """The source gives nothing; the reason in one line."""


class Provider(Protocol):
    async def measure(self, nodes: Sequence[Node]) -> Values:
        """By measure and name of a node, the value and its time. Raises ProviderFailed.

        Values are of what is used, finite and not negative; names are those of the nodes that were asked for.
        """
        ...

    async def close(self) -> None:
        """Let go of connections; it may be asked again."""
        ...


def make_provider(settings: MeasurementSettings, client: Client) -> Provider | None:
    """The provider that the settings name; None for annotations, which come with the nodes themselves.

    Raises UserError for files that cannot be used.
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
    """Those of the configuration; if it has none, the default ones for agents, and None without agents."""
    configured = configuration.longshore.measurements
    if configured is not None:
        return configured
    enabled = {
        each.name for profile in configuration.profiles for point in profile.points.values() for each in point
    }
    agents = any(is_agent(plugin.thing) for name, plugin in plugins.items() if name in enabled)
    return MeasurementSettings() if agents else None


class Measuring:
    """The loop over one provider. `tell` is called after every round, also if there was nothing to tell."""

    def __init__(
        self,
        settings: MeasurementSettings,
        provider: Provider | None,
        cluster: ClusterState,
        tell: Callable[[Measurements], None],
        *,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._provider = provider
        self._cluster = cluster
        self._tell = tell
        self._wall = wall
        # Why the last round had nothing to tell, and which nodes it knew nothing of.
        self._problem = ""
        self._unmeasured: frozenset[str] = frozenset()
        # How often it has told.
        self.rounds = 0
        cluster.measures.max_age = settings.max_age
        cluster.measures.settle = settings.settle

    @property
    def problem(self) -> str:
        """Why there are no measurements, in one line; empty as long as there are."""
        return self._problem

    async def run(self) -> None:
        """Until it is cancelled. To be begun when nodes and pods are listed.

        What nodes say of themselves is read then, too: a pod that becomes known after the load of its node
        would count on top of it.
        """
        if self._provider is None:
            read_load(self._cluster)
        nodes_before = 0
        try:
            while True:
                nodes = self._cluster.node_count
                values = await self.measure()
                self.rounds += 1
                self._tell(Measurements(values))
                settled = 0 < nodes == nodes_before
                nodes_before = nodes
                pause = self._settings.interval if settled else min(self._settings.interval, _SOON)
                await asyncio.sleep(pause * random.uniform(1 - _JITTER, 1))
        finally:
            if self._provider is not None:
                await self._provider.close()

    async def measure(self) -> Values:
        """One round; nothing if the provider fails, for whatever reason."""
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
            # A scheduler goes on without measurements, also if what it was told is past all expectation.
            self._failed(f"{type(error).__name__}: {error}")
        else:
            values = self._of_this_time(values)
            self._judge(nodes, values)
            return values
        return {}

    def _nodes(self) -> list[Node]:
        rows = np.flatnonzero(self._cluster.known).tolist()
        return [node for row in rows if (node := self._cluster.node(row)) is not None]

    def _of_this_time(self, values: Values) -> Values:
        """Without what is yet to come: it would be believed until then, and longer."""
        latest = self._wall() + self._settings.max_age
        return {
            name: {node: measured for node, measured in by_node.items() if not measured[1] > latest}
            for name, by_node in values.items()
        }

    def _failed(self, reason: str) -> None:
        # Reasons may differ from one round to the next; that it fails is one piece of news.
        if not self._problem:
            log.warning("no measurements", provider=self._settings.provider, reason=reason)
        self._problem = reason

    def _judge(self, nodes: Iterable[Node], values: Values) -> None:
        """Whether these are measurements at all, and of which nodes they are."""
        oldest = self._wall() - self._settings.max_age
        measured = {
            name for by_node in values.values() for name, (_, at) in by_node.items() if not at < oldest
        }
        if not measured:
            old = f"all that it knows is older than {self._settings.max_age:g}s"
            self._failed(old if any(values.values()) else "it knows none of the nodes")
            return
        if self._problem:
            log.info("measurements are back", provider=self._settings.provider)
            self._problem = ""
        unmeasured = frozenset(node.metadata.name for node in nodes) - measured
        if unmeasured - self._unmeasured:
            some = sorted(unmeasured)[:_SHOWN]
            log.warning("no measurements of some nodes", nodes=some, number=len(unmeasured))
        self._unmeasured = unmeasured
