"""The table of extension points.

The configuration, the profile, the time limit and the metrics derive from `POINTS`. To add a point, declare
its protocol in `points.py`, add it here, and call the plugins of `Profile.at(…)` where the engine reaches it.
"""

import enum
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

import msgspec

from longshore.framework import points

P_co = TypeVar("P_co", covariant=True)


class Form(enum.Enum):
    """How a method answers."""

    # With a value.
    VALUE = enum.auto()
    # With a value, or as a generator of the parts of a list, which is read to its end at once.
    LIST = enum.auto()
    # With a value, as a generator of effects, or as an awaitable.
    STEPS = enum.auto()


class Method(msgspec.Struct, frozen=True):
    """A method that the engine calls.

    A plugin belongs to the point if it has one of the methods that are not `optional`. `per_node` marks the
    plain form of a method that also has a vectorized form. `metric` is the name under which metrics show how
    long calls take, and is empty for methods that may wait; `part` says that the time of such a call belongs
    to the point that made it.
    """

    name: str
    metric: str = ""
    form: Form = Form.VALUE
    per_node: bool = False
    optional: bool = False
    part: bool = False


class Point(msgspec.Struct, Generic[P_co], frozen=True):
    """An extension point: its name in a configuration and its methods. `P_co` is what its plugins implement.

    At points with `by_concern`, a plugin is skipped for pods that do not concern it.
    """

    name: str
    methods: tuple[Method, ...]
    by_concern: bool = False

    def implemented_by(self, plugin: object) -> bool:
        """Whether the plugin, or the class of a plugin, belongs to the point."""
        return any(hasattr(plugin, method.name) for method in self.methods if not method.optional)

    def is_plain(self, plugin: object) -> bool:
        """Whether the plugin, which belongs to the point, answers for one node at a time."""
        required = [method for method in self.methods if hasattr(plugin, method.name) and not method.optional]
        return all(method.per_node for method in required)


PRE_ENQUEUE: Point[points.PreEnqueue] = Point("preEnqueue", (Method("pre_enqueue"),))
QUEUE_SORT: Point[points.QueueSort] = Point("queueSort", (Method("sort_key"),))
PRE_FILTER: Point[points.PreFilter] = Point(
    "preFilter",
    (
        Method("pre_filter", "PreFilter", Form.LIST),
        Method("add_pod", "PreFilterExtensionAddPod", optional=True, part=True),
        Method("remove_pod", "PreFilterExtensionRemovePod", optional=True, part=True),
    ),
    by_concern=True,
)
FILTER: Point[points.Filter | points.PlainFilter] = Point(
    "filter",
    (Method("filter", "Filter", Form.LIST), Method("filter_node", "Filter", per_node=True)),
    by_concern=True,
)
POST_FILTER: Point[points.PostFilter] = Point("postFilter", (Method("post_filter", "PostFilter"),))
PRE_SCORE: Point[points.PreScore] = Point("preScore", (Method("pre_score", "PreScore"),), by_concern=True)
SCORE: Point[points.Score | points.PlainScore] = Point(
    "score",
    (
        Method("score", "Score"),
        Method("score_node", "Score", per_node=True),
        Method("normalize", "ScoreExtensionNormalize", optional=True, part=True),
    ),
    by_concern=True,
)
RESERVE: Point[points.Reserve] = Point(
    "reserve", (Method("reserve", "Reserve"), Method("unreserve", "Unreserve")), by_concern=True
)
PERMIT: Point[points.Permit] = Point("permit", (Method("permit", "Permit"),), by_concern=True)
PRE_BIND: Point[points.PreBind] = Point(
    "preBind",
    (Method("pre_bind", form=Form.STEPS), Method("pre_bind_pre_flight", optional=True)),
    by_concern=True,
)
BIND: Point[points.Bind] = Point("bind", (Method("bind", form=Form.STEPS),))
POST_BIND: Point[points.PostBind] = Point("postBind", (Method("post_bind", form=Form.STEPS),))

POINTS: Mapping[str, Point[points.Plugin]] = {
    point.name: point
    for point in (
        PRE_ENQUEUE,
        QUEUE_SORT,
        PRE_FILTER,
        FILTER,
        POST_FILTER,
        PRE_SCORE,
        SCORE,
        RESERVE,
        PERMIT,
        PRE_BIND,
        BIND,
        POST_BIND,
    )
}
# A method of plugins at all points.
CONCERNS = Method("concerns")


def points_of(plugin: object) -> frozenset[str]:
    """Return the names of the points that the plugin, or the class of a plugin, belongs to."""
    return frozenset(name for name, point in POINTS.items() if point.implemented_by(plugin))


def methods() -> Iterator[Method]:
    """Yield every method that the engine calls on plugins."""
    for point in POINTS.values():
        yield from point.methods
    yield CONCERNS
