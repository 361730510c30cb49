"""A filter or a score from one function.

    @filter_plugin
    def no_spot(pod, node):
        if node.labels.get("lifecycle") == "spot" and "spot" not in pod.labels:
            return "node(s) were spot instances"

    @score_plugin(weight=2)
    def fast_disks(pod, node):
        return MAX_SCORE if node.labels.get("disk") == "ssd" else 0

`pod` is a `PodInfo` and `node` a `OneNode`, as everywhere in `points.py`, and the answers are those of
`filter_node` and `score_node` there. With `vectorized=True` the function gets the `Nodes` instead and answers
for all of them at once, as `filter` and `score` do. The plugin is called after the function (`NoSpot`), and
it can still be called as one.
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, overload

from longshore.cluster import Nodes, OneNode, PodInfo
from longshore.cluster.arrays import Ints
from longshore.framework.cluster_events import WakeOn
from longshore.framework.points import Rejection, Scope
from longshore.framework.reads import NOTHING, Reads
from longshore.framework.status import Status

FilterFunction = (
    Callable[[PodInfo, OneNode], Status | str | None] | Callable[[PodInfo, Nodes], Iterable[Rejection]]
)
ScoreFunction = Callable[[PodInfo, OneNode], int] | Callable[[PodInfo, Nodes], Ints | int]


class FunctionPlugin:
    """A plugin with the methods and attributes that its decorator gives it."""

    def __init__(self, function: Callable[..., Any], name: str | None, **attributes: Any) -> None:
        self.function = function
        self.name = name or _camel_case(function.__name__)
        vars(self).update(attributes)

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)

    def __repr__(self) -> str:
        return f"<plugin {self.name} of {self.function.__module__}.{self.function.__qualname__}>"


Decorator = Callable[[Callable[..., Any]], FunctionPlugin]


@overload
def filter_plugin(function: FilterFunction, /) -> FunctionPlugin: ...


@overload
def filter_plugin(
    *,
    name: str | None = None,
    vectorized: bool = False,
    scope: Scope = Scope.CLUSTER,
    wakes_on: Sequence[WakeOn] | None = None,
    reads: Reads = NOTHING,
) -> Decorator: ...


def filter_plugin(
    function: FilterFunction | None = None,
    /,
    *,
    name: str | None = None,
    vectorized: bool = False,
    scope: Scope = Scope.CLUSTER,
    wakes_on: Sequence[WakeOn] | None = None,
    reads: Reads = NOTHING,
) -> FunctionPlugin | Decorator:
    """Make the function a plugin that filters.

    `scope` is what a vectorized one promises; without `wakes_on`, a pod that it rejected is tried again after
    any event.
    """

    def decorate(function: Callable[..., Any]) -> FunctionPlugin:
        attributes: dict[str, Any] = {"filter" if vectorized else "filter_node": _method(function)}
        attributes |= _promise(scope, vectorized=vectorized) | {"reads": reads}
        if wakes_on is not None:
            attributes["wakes_on"] = tuple(wakes_on)
        return FunctionPlugin(function, name, **attributes)

    return decorate if function is None else decorate(function)


@overload
def score_plugin(function: ScoreFunction, /) -> FunctionPlugin: ...


@overload
def score_plugin(
    *,
    name: str | None = None,
    weight: int = 1,
    normalize: Callable[[Ints], Ints] | None = None,
    vectorized: bool = False,
    scope: Scope = Scope.CLUSTER,
    reads: Reads = NOTHING,
) -> Decorator: ...


def score_plugin(
    function: ScoreFunction | None = None,
    /,
    *,
    name: str | None = None,
    weight: int = 1,
    normalize: Callable[[Ints], Ints] | None = None,
    vectorized: bool = False,
    scope: Scope = Scope.CLUSTER,
    reads: Reads = NOTHING,
) -> FunctionPlugin | Decorator:
    """Make the function a plugin that scores.

    `weight` counts where no configuration gives one. `normalize` brings the scores into the range, such as
    `by_largest` of `longshore.framework.normalize`; without it they have to be from 0 to MAX_SCORE.
    """
    if weight < 1:
        raise ValueError(f"a weight is at least 1, not {weight}")

    def decorate(function: Callable[..., Any]) -> FunctionPlugin:
        attributes: dict[str, Any] = {"score" if vectorized else "score_node": _method(function)}
        attributes |= _promise(scope, vectorized=vectorized) | {"reads": reads}
        if normalize is not None:
            attributes["normalize"] = lambda _state, _pod, scores, _nodes: normalize(scores)
        return FunctionPlugin(function, name, weight=weight, **attributes)

    return decorate if function is None else decorate(function)


def _promise(scope: Scope, *, vectorized: bool) -> dict[str, Scope]:
    if scope is not Scope.CLUSTER and not vectorized:
        raise TypeError("a scope is for a vectorized function: a plain one is asked each time")
    return {"scope": scope}


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    """What the points call, out of a function that wants to know no more than pod and node."""
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        wanted = "has to take two arguments: a pod, and a node or nodes"
        raise TypeError(f"{function.__name__} {wanted}") from None

    def method(_state: object, pod: PodInfo, nodes: Nodes) -> Any:
        return function(pod, nodes)

    return method


def _camel_case(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
