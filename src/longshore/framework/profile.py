"""Which plugins decide, at which point, in which order and with which weight; and how a tie is broken.

The plugins of a profile are looked at once, when it is made: what each of them has and promises is kept
beside it, so that an attempt need not ask again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from longshore.framework import points
from longshore.framework.cluster_events import WakeOn
from longshore.framework.points import Plugin, Scope

TieBreak = Literal["random", "first", "heap"]

# Names of the points in a configuration, and the method that makes a plugin one of that point.
POINTS: Mapping[str, tuple[str, ...]] = {
    "preEnqueue": ("pre_enqueue",),
    "queueSort": ("sort_key",),
    "preFilter": ("pre_filter",),
    "filter": ("filter", "filter_node"),
    "postFilter": ("post_filter",),
    "preScore": ("pre_score",),
    "score": ("score", "score_node"),
    "reserve": ("reserve", "unreserve"),
    "permit": ("permit",),
    "preBind": ("pre_bind",),
    "bind": ("bind",),
    "postBind": ("post_bind",),
}


def points_of(plugin: type | Plugin) -> frozenset[str]:
    """The points that the plugin has methods for."""
    return frozenset(
        point for point, methods in POINTS.items() if any(hasattr(plugin, method) for method in methods)
    )


@dataclass(frozen=True, slots=True)
class Slot:
    """A plugin at the Filter or the Score point, with what it promises."""

    plugin: Any
    name: str
    scope: Scope
    # Answers node by node.
    plain: bool
    weight: int = 1
    normalizes: bool = False
    # Its answers about a node depend on that node alone, and can be kept until it changes.
    local: bool = False
    # Local, and to be asked again when pods come and go. It works on the numbers of a single node.
    counts_pods: bool = False


@dataclass(frozen=True, slots=True)
class Profile:
    scheduler_name: str
    pre_enqueue: tuple[points.PreEnqueue, ...] = ()
    queue_sort: points.QueueSort | None = None
    pre_filters: tuple[points.PreFilter, ...] = ()
    filters: tuple[Slot, ...] = ()
    post_filters: tuple[points.PostFilter, ...] = ()
    pre_scores: tuple[points.PreScore, ...] = ()
    scores: tuple[Slot, ...] = ()
    reserves: tuple[points.Reserve, ...] = ()
    permits: tuple[points.Permit, ...] = ()
    pre_binds: tuple[points.PreBind, ...] = ()
    binds: tuple[points.Bind, ...] = ()
    post_binds: tuple[points.PostBind, ...] = ()
    # PreFilters that have to be told of pods imagined on a node.
    extensions: tuple[points.PreFilterExtensions, ...] = ()
    wakes: Mapping[str, Sequence[WakeOn] | None] = field(default_factory=dict)
    # 0: all nodes.
    percentage_of_nodes_to_score: int = 0
    tie_break: TieBreak = "random"
    seed: int = 0

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
        """`enabled`: the plugins of each point by its name in a configuration, in order, with weights."""

        def at(point: str) -> tuple[Any, ...]:
            return tuple(plugin for plugin, _ in enabled.get(point, ()))

        pre_filters = at("preFilter")
        queue_sort = at("queueSort")
        everything = {plugin.name: plugin for pairs in enabled.values() for plugin, _ in pairs}
        return cls(
            scheduler_name,
            pre_enqueue=at("preEnqueue"),
            queue_sort=queue_sort[0] if queue_sort else None,
            pre_filters=pre_filters,
            filters=tuple(slot(plugin, plain="filter_node") for plugin in at("filter")),
            post_filters=at("postFilter"),
            pre_scores=at("preScore"),
            scores=tuple(
                slot(plugin, plain="score_node", weight=weight) for plugin, weight in enabled.get("score", ())
            ),
            reserves=at("reserve"),
            permits=at("permit"),
            pre_binds=at("preBind"),
            binds=at("bind"),
            post_binds=at("postBind"),
            extensions=tuple(plugin for plugin in pre_filters if hasattr(plugin, "add_pod")),
            wakes={name: getattr(plugin, "wakes_on", None) for name, plugin in everything.items()},
            percentage_of_nodes_to_score=percentage_of_nodes_to_score,
            tie_break=tie_break,
            seed=seed,
        )

    @property
    def enabled(self) -> Mapping[str, tuple[tuple[str, int], ...]]:
        """The names of the plugins that are called at each point, in order; those that score with weights."""
        called: dict[str, Iterable[Any]] = {
            "preEnqueue": self.pre_enqueue,
            "queueSort": () if self.queue_sort is None else (self.queue_sort,),
            "preFilter": self.pre_filters,
            "filter": self.filters,
            "postFilter": self.post_filters,
            "preScore": self.pre_scores,
            "score": self.scores,
            "reserve": self.reserves,
            "permit": self.permits,
            "preBind": self.pre_binds,
            "bind": self.binds,
            "postBind": self.post_binds,
        }
        return {
            point: tuple((plugin.name, plugin.weight if point == "score" else 0) for plugin in plugins)
            for point, plugins in called.items()
        }


def slot(plugin: Any, *, plain: str, weight: int = 1) -> Slot:
    scope = getattr(plugin, "scope", Scope.CLUSTER)
    is_plain = not hasattr(plugin, plain.removesuffix("_node"))
    return Slot(
        plugin,
        plugin.name,
        scope,
        plain=is_plain,
        weight=weight,
        normalizes=hasattr(plugin, "normalize"),
        local=scope is not Scope.CLUSTER and not is_plain,
        counts_pods=scope is Scope.PODS and not is_plain,
    )
