"""Decorators that make a Filter or a Score plugin of one function.

    @filter_plugin
    def no_spot(pod, node):
        if node.labels.get("lifecycle") == "spot" and "spot" not in pod.labels:
            return "node(s) were spot instances"

    @score_plugin(weight=2)
    def fast_disks(pod, node):
        return MAX_SCORE if node.labels.get("disk") == "ssd" else 0

The function gets a `PodInfo` and a `OneNode`, and its answer is that of `filter_node` or `score_node` in
`points.py`. With `vectorized=True` it gets the `Nodes` instead and answers for all of them at once, as
`filter` and `score` do. The plugin has the name of the function in camel case (`NoSpot`), and can still be
called like the function.
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
    """A plugin that was made of a function, with the methods and attributes that its decorator adds."""

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
    """Make a Filter plugin of the function.

    `scope` is what a vectorized function promises. `reads` declares the annotations and conditions of pods
    that the function reads. Without `wakes_on`, a rejected pod is scheduled again after any event.
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
    """Make a Score plugin of the function.

    `weight` applies where no configuration sets one. `normalize` scales the scores to the range from 0 to
    MAX_SCORE, as `by_largest` in `longshore.framework.normalize` does; without it they must be in this range.
    `scope` and `reads` are those of `filter_plugin`.
    """
    if weight < 1:
        raise ValueError(f"the weight must be at least 1, not {weight}")

    def decorate(function: Callable[..., Any]) -> FunctionPlugin:
        attributes: dict[str, Any] = {"score" if vectorized else "score_node": _method(function)}
        attributes |= _promise(scope, vectorized=vectorized) | {"reads": reads}
        if normalize is not None:
            attributes["normalize"] = lambda _state, _pod, scores, _nodes: normalize(scores)
        return FunctionPlugin(function, name, weight=weight, **attributes)

    return decorate if function is None else decorate(function)


def _promise(scope: Scope, *, vectorized: bool) -> dict[str, Scope]:
    if scope is not Scope.CLUSTER and not vectorized:
        raise TypeError("only a vectorized function can have a scope: a plain function is called each time")
    return {"scope": scope}


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method that the engine calls, given a function of a pod and a node."""
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        wanted = "must take two arguments: a pod, and a node or nodes"
        raise TypeError(f"{function.__name__} {wanted}") from None

    def method(_state: object, pod: PodInfo, nodes: Nodes) -> Any:
        return function(pod, nodes)

    return method


def _camel_case(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
