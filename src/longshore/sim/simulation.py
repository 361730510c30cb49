"""Runs an engine on a simulated cluster, through a scenario in virtual time."""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from longshore.api.meta import ApiObject
from longshore.api.timestamps import format_timestamp
from longshore.engine import Effect, Engine, Measurements
from longshore.sim.agenda import Agenda
from longshore.sim.cluster import SimulatedCluster
from longshore.sim.recorded import Recorded, RecordedCluster
from longshore.sim.virtual_follower import VirtualFollower


class Simulation:
    """Runs an engine against a simulated cluster.

    `scenario` are the latencies, faults and other arguments of `SimulatedCluster`. `on_effect` is called with
    every effect that an engine asks for.
    """

    def __init__(
        self,
        engine: Engine | None = None,
        *,
        on_effect: Callable[[Effect], None] = lambda _effect: None,
        **scenario: Any,
    ) -> None:
        self.agenda = Agenda()
        self.cluster = SimulatedCluster(self.agenda, stamp=self._wall_clock, **scenario)
        self._follower = VirtualFollower(engine or Engine(), self.cluster, self.agenda, on_effect=on_effect)

    @classmethod
    def replay(cls, events: Iterable[Recorded], *, engine: Engine | None = None) -> dict[str, str]:
        """Let the engine decide again about a recorded cluster; returns `namespace/name` → node."""
        engine = engine or Engine()
        agenda = Agenda()
        cluster = RecordedCluster(agenda, events, scheduler_name=engine.scheduler_name)
        VirtualFollower(engine, cluster, agenda).run()
        return cluster.bindings

    @property
    def engine(self) -> Engine:
        return self._follower.engine

    @property
    def now(self) -> float:
        return self.agenda.now

    @property
    def bindings(self) -> dict[str, str]:
        """The node of the newest bind of each `namespace/name`, also of pods that are gone."""
        return self.cluster.bindings

    # What happens to the cluster from outside, now or at a later time.

    def create(self, *objects: ApiObject, at: float | None = None) -> None:
        """Create the objects; one of the same name is replaced."""
        for item in objects:
            self._schedule(at, partial(self.cluster.put, item))

    update = create

    def delete(self, *objects: ApiObject, at: float | None = None) -> None:
        """Delete the objects of these names."""
        for item in objects:
            self._schedule(at, partial(self.cluster.delete, item))

    def measure(self, values: Mapping[str, Mapping[str, float]], *, at: float | None = None) -> None:
        """Measure these values, by measure and node; the engine knows them at once.

        A scenario that does so before it runs is the provider, and the annotations of nodes are not read.
        Without any values only the time goes on: older measurements grow old by it.
        """
        self._follower.measures = self._follower.measures or bool(values)
        self._schedule(at, partial(self._measured, values))

    def restart(self, engine: Engine, *, order: Callable[[list[ApiObject]], None] | None = None) -> None:
        """Let another engine take over. It learns what exists; `order` may reorder the list of it.

        What the old one has asked for is still done, but no engine learns how it ended.
        """
        self.cluster.list_order = order
        self._follower.take_over(engine)

    def run(self, *, until: float = math.inf) -> None:
        """Let time pass, until the time given or until nothing more will happen by itself."""
        self._follower.run(until=until)

    def _wall_clock(self) -> str:
        """The time in whole seconds, as the API server stamps objects."""
        return format_timestamp(self.now + self.engine.epoch)

    def _schedule(self, at: float | None, action: Callable[[], object]) -> None:
        self.agenda.at(self.now if at is None else at, action)

    def _measured(self, values: Mapping[str, Mapping[str, float]]) -> None:
        time = self.now + self.engine.epoch
        timed = {name: {node: (value, time) for node, value in of.items()} for name, of in values.items()}
        self._follower.receive(Measurements(timed))
