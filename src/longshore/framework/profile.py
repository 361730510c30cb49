"""The plugins of one scheduler name: which of them are called at each point, in order and with weights.

A profile looks at its plugins once, when it is made. It keeps what each of them has and promises, so that an
attempt need not look again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from longshore.framework.cluster_events import WakeOn
from longshore.framework.extension_points import FILTER, POINTS, PRE_FILTER, SCORE, P_co, Point
from longshore.framework.points import Plugin, PreFilterExtensions, Scope
from longshore.framework.reads import NOTHING, Reads

TieBreak = Literal["random", "first", "heap"]


@dataclass(frozen=True, slots=True)
class Slot:
    """A plugin at Filter or Score, with what it promises."""

    plugin: Any
    name: str
    scope: Scope
    # It is called for one node at a time.
    plain: bool
    weight: int = 1
    normalizes: bool = False
    # Its answer about a node depends on that node alone, and can be kept until the node changes.
    local: bool = False
    # Its answer is local but depends on the pods on the node. It works with the numbers of a single node.
    counts_pods: bool = False


@dataclass(frozen=True, slots=True)
class Profile:
    scheduler_name: str
    filters: tuple[Slot, ...] = ()
    scores: tuple[Slot, ...] = ()
    # The PreFilters that have to be called when a pod is added to a node, or removed, hypothetically.
    extensions: tuple[PreFilterExtensions, ...] = ()
    # The events that each plugin wakes on, or None for all events.
    wakes: Mapping[str, Sequence[WakeOn] | None] = field(default_factory=dict)
    # What any of the plugins reads of pods.
    reads: Reads = NOTHING
    # 0 means all nodes.
    percentage_of_nodes_to_score: int = 0
    tie_break: TieBreak = "random"
    seed: int = 0
    _plugins: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        scheduler_name: str,
        enabled: Mapping[str, Iterable[tuple[Plugin, int]]],
        *,
        percentage_of_nodes_to_score: int = 0,
        tie_break: TieBreak = "random",
        seed: int = 0,
    ) -> "Profile":
        """Make a profile of the plugins of each point, in order and with weights, by the point's name."""
        pairs = {point: tuple(enabled.get(point, ())) for point in POINTS}
        plugins = {point: tuple(plugin for plugin, _ in at) for point, at in pairs.items()}
        everything = {plugin.name: plugin for at in plugins.values() for plugin in at}
        return cls(
            scheduler_name,
            filters=tuple(_slot(FILTER, plugin) for plugin in plugins[FILTER.name]),
            scores=tuple(_slot(SCORE, plugin, weight) for plugin, weight in pairs[SCORE.name]),
            extensions=tuple(p for p in plugins[PRE_FILTER.name] if isinstance(p, PreFilterExtensions)),
            wakes={name: getattr(plugin, "wakes_on", None) for name, plugin in everything.items()},
            reads=Reads.of(getattr(plugin, "reads", NOTHING) for plugin in everything.values()),
            percentage_of_nodes_to_score=percentage_of_nodes_to_score,
            tie_break=tie_break,
            seed=seed,
            _plugins=plugins,
        )

    def without(self, name: str) -> "Profile":
        """Return the profile without this plugin."""
        return replace(
            self,
            filters=tuple(slot for slot in self.filters if slot.name != name),
            scores=tuple(slot for slot in self.scores if slot.name != name),
            extensions=tuple(plugin for plugin in self.extensions if plugin.name != name),
            _plugins={
                point: tuple(plugin for plugin in at if plugin.name != name)
                for point, at in self._plugins.items()
            },
        )

    def at(self, point: Point[P_co]) -> tuple[P_co, ...]:
        """Return the plugins of the point in the order in which they are called."""
        return self._plugins.get(point.name, ())

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        """All plugins of the profile, each of them once."""
        found = {id(plugin): plugin for at in self._plugins.values() for plugin in at}
        return tuple(found.values())

    @property
    def enabled(self) -> Mapping[str, tuple[tuple[str, int], ...]]:
        """The names of the plugins of each point, in order, with their weights at Score and 0 elsewhere."""
        weights = {slot.name: slot.weight for slot in self.scores}
        return {
            name: tuple(
                (plugin.name, weights[plugin.name] if name == SCORE.name else 0)
                for plugin in self._plugins.get(name, ())
            )
            for name in POINTS
        }


def _slot(point: Point[Any], plugin: Any, weight: int = 1) -> Slot:
    scope = getattr(plugin, "scope", Scope.CLUSTER)
    plain = point.is_plain(plugin)
    return Slot(
        plugin,
        plugin.name,
        scope,
        plain=plain,
        weight=weight,
        normalizes=hasattr(plugin, "normalize"),
        local=scope is not Scope.CLUSTER and not plain,
        counts_pods=scope is Scope.PODS and not plain,
    )
