"""An engine with plugins that the test defines, on a simulated cluster in virtual time."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from longshore.api import Pod, PodCondition
from longshore.config import (
    Configuration,
    EnabledPlugin,
    LongshoreSettings,
    ProfileConfiguration,
    default_configuration,
)
from longshore.engine import Engine
from longshore.framework import Handle
from longshore.framework.extension_points import POINTS, points_of
from longshore.framework.profile import TieBreak
from longshore.plugins import Factory
from longshore.sim import Simulation
from longshore.testing import NodeBuilder, node

# Without these no pod is bound.
_BARE = {"queueSort": ("PrioritySort",), "bind": ("DefaultBinder",)}


def room(name: str, cpu: str = "4", memory: str = "32Gi") -> NodeBuilder:
    return node(name).allocatable(cpu=cpu, memory=memory)


def profile(
    *plugins: Any,
    name: str = "longshore",
    defaults: bool = False,
    weights: Mapping[str, int] | None = None,
    percentage: int = 0,
) -> ProfileConfiguration:
    """Return a profile with these plugins at all their points, in this order.

    With `defaults`, the default plugins come first; otherwise only those without which no pod is bound. Bind
    plugins come before the default one, and a QueueSort plugin replaces it. Scores have the weight 1 unless
    `weights` names another.
    """
    usual = default_configuration(name).profiles[0]
    points: dict[str, tuple[EnabledPlugin, ...]] = {}
    for point in POINTS:
        ours = tuple(
            EnabledPlugin(each.name, (weights or {}).get(each.name, 1) if point == "score" else 0)
            for each in plugins
            if point in points_of(each)
        )
        theirs = tuple(map(EnabledPlugin, _BARE.get(point, ())))
        if defaults:
            theirs = usual.points.get(point, ())
        if point == "queueSort" and ours:
            theirs = ()
        points[point] = ours + theirs if point == "bind" else theirs + ours
    args = usual.args if defaults else {}
    return ProfileConfiguration(name, percentage, points, args)


def configuration(
    *profiles: ProfileConfiguration, tie_break: TieBreak = "first", seed: int = 0
) -> Configuration:
    return msgspec.structs.replace(
        default_configuration(),
        profiles=profiles,
        longshore=LongshoreSettings(tie_break=tie_break, seed=seed),
    )


def registry(plugins: Sequence[Any]) -> dict[str, Factory]:
    """Return factories that set the handle on each plugin as `handle`."""

    def factory(plugin: Any) -> Factory:
        def make(_args: Any, handle: Handle) -> Any:
            plugin.handle = handle
            return plugin

        return make

    return {each.name: factory(each) for each in plugins}


def engine_of(*plugins: Any, **options: Any) -> Engine:
    return Engine(configuration(profile(*plugins, **options)), plugins=registry(plugins))


class Stage(Simulation):
    """A simulation in which binds take no time by default."""

    def __init__(
        self,
        *plugins: Any,
        engine: Engine | None = None,
        defaults: bool = False,
        weights: Mapping[str, int] | None = None,
        bind_latency: float = 0.0,
        stop_time: float = 1.0,
    ) -> None:
        super().__init__(
            engine or engine_of(*plugins, defaults=defaults, weights=weights),
            bind_latency=bind_latency,
            start_time=None,
            stop_time=stop_time,
        )

    def pod(self, name: str) -> Pod:
        return self.cluster.pods[f"default/{name}"]

    def node_of(self, name: str) -> str:
        return self.pod(name).spec.node_name

    def condition(self, name: str, kind: str = "PodScheduled") -> PodCondition:
        (found,) = [c for c in self.pod(name).status.conditions if c.type == kind]
        return found

    def message(self, name: str) -> str:
        """Return the message of the pod's condition, which says why it has no node."""
        condition = self.condition(name)
        assert condition.status == "False"
        return condition.message

    def told(self, name: str) -> list[tuple[str, str]]:
        """Return reason and note of the events about the pod."""
        return [(event.reason, event.note) for event in self.cluster.events if event.name == name]

    def place(self, name: str) -> str:
        """Return the place of the pod in the queue."""
        entry = self.engine.queue.find(self.pod(name))
        return "nowhere" if entry is None else entry.place.value

    def used(self, resource: int, name: str) -> int:
        row = self.engine.cluster.row(name)
        return 0 if row is None else int(self.engine.cluster.requested[resource, row])
