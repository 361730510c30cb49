"""The loop of `longshore.live.follower` in virtual time: mirror, receive, advance, perform."""

import math
from collections.abc import Callable

from longshore.agents.annotations import read_load
from longshore.engine import Effect, Engine, Event
from longshore.engine.link import Link
from longshore.framework.agents import is_agent
from longshore.framework.seam import FOLLOWED_KINDS
from longshore.sim.agenda import Agenda
from longshore.sim.cluster import SimulatedCluster


class VirtualFollower:
    """One engine at a time on a cluster whose time is an agenda. `on_effect` is called with every effect.

    `measures`: agents use what is measured in the scenario, not the annotations of nodes.
    """

    def __init__(
        self,
        engine: Engine,
        cluster: SimulatedCluster,
        agenda: Agenda,
        *,
        on_effect: Callable[[Effect], None] = lambda _effect: None,
    ) -> None:
        self.engine = engine
        self.measures = False
        self._cluster = cluster
        self._agenda = agenda
        self._on_effect = on_effect
        # The engine that knows everything that existed when it began.
        self._begun: Engine | None = None
        self._link = self._linked()

    def take_over(self, engine: Engine) -> None:
        """Go on with another engine, which learns what exists, but no outcomes of what the old one began."""
        self._link.cut()
        self.engine = engine
        self._link = self._linked()

    def receive(self, event: Event) -> None:
        self.engine.receive(event, now=self._agenda.now)

    def run(self, *, until: float = math.inf) -> None:
        """Let time pass, until the time given or until nothing more will happen by itself."""
        agenda = self._agenda
        while (due := self._next_due()) is not None and due <= until:
            if until == math.inf and not agenda and self.engine.settled:
                break
            # Everything that happens at one time is known before the engine decides.
            agenda.go_on_to(due)
            if self._begun is not self.engine:
                self._begin()
            for instruction in self.engine.advance(now=agenda.now):
                self._on_effect(instruction.effect)
                self._link.perform(instruction)
        if until < math.inf:
            agenda.now = max(agenda.now, until)

    def _linked(self) -> Link:
        link = Link(self._cluster, self.receive)
        link.watch((*FOLLOWED_KINDS, *self.engine.watches))
        return link

    def _begin(self) -> None:
        """Read the load that nodes report: a pod that becomes known later is added to it."""
        self._begun = self.engine
        plugins = [plugin for profile in self.engine.profiles.values() for plugin in profile.plugins]
        if not self.measures and any(map(is_agent, plugins)):
            read_load(self.engine.cluster)

    def _next_due(self) -> float | None:
        times = (self.engine.deadline, self._agenda.next_due)
        return min((time for time in times if time is not None), default=None)
