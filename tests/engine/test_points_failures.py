"""A plugin that raises or returns nonsense fails the attempt of one pod under its name, and nothing else."""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.engine.stage import Stage, room

from longshore.api import Pod
from longshore.framework import (
    Action,
    Code,
    PostFilterResult,
    Rejection,
    Resource,
    Scope,
    Status,
    Wait,
    WakeOn,
)
from longshore.testing import pod

# Pods of different shapes, so that answers for one are not used for the other.
BAD, GOOD = pod("bad").requests(cpu="1"), pod("good").requests(cpu="1").labels(app="good")


class Plugin:
    """Return a plugin whose method calls `act` for the pod `bad`, and `usual` for all others."""

    name = "Faulty"
    wakes_on = ()
    made_of: tuple[str, Any, dict[str, Any]]

    def __init__(self, method: str, act: Callable[[], Any], usual: Any = None) -> None:
        def call(*arguments: Any) -> Any:
            info = arguments[0] if method in ("pre_enqueue", "concerns") else arguments[1]
            return act() if getattr(info, "pod", info).metadata.name == "bad" else usual

        setattr(self, method, call)


def raises() -> Any:
    raise KeyError("lost")


def exits() -> Any:
    raise SystemExit(3)


def of(method: str, act: Callable[[], Any], usual: Any = None, **more: Any) -> Plugin:
    plugin = Plugin(method, act, usual)
    plugin.made_of = (method, usual, more)
    for name, value in more.items():
        setattr(plugin, name, value)
    return plugin


def zero(*_: Any) -> int:
    return 0


def done(*_: Any) -> None:
    pass


def as_they_are(_state: Any, _pod: Any, scores: Any, _nodes: Any) -> Any:
    return scores


def nothing(*_: Any) -> tuple[()]:
    return ()


def arrays(size: int, dtype: Any = np.int64) -> Callable[[], Any]:
    return lambda: np.zeros(size, dtype)


def text() -> Any:
    return "nonsense"


def number() -> Any:
    return 42


def absent() -> Any:
    return None


MISBEHAVING = {
    "concerns raises": of("concerns", raises, usual=True, filter=nothing),
    "PreFilter raises": of("pre_filter", raises),
    "PreFilter answers a number": of("pre_filter", number),
    "PreFilter answers a text": of("pre_filter", text),
    "PreFilter of a local filter raises": of("pre_filter", raises, filter=nothing, scope=Scope.NODE),
    "PreFilter of a local filter answers a number": of(
        "pre_filter", number, filter=nothing, scope=Scope.NODE
    ),
    "PreFilter answers Error": of("pre_filter", lambda: Status.error("lost")),
    "PreFilter answers Wait": of("pre_filter", lambda: Status(Code.WAIT)),
    "filter raises": of("filter", raises, usual=()),
    "filter answers text": of("filter", text, usual=()),
    "filter answers too few": of("filter", lambda: [Rejection("no", np.ones(1, np.bool_))], usual=()),
    "filter answers numbers": of("filter", lambda: [Rejection("no", arrays(2)())], usual=()),
    "filter answers for one pod with numbers": of(
        "filter", lambda: [Rejection("no", arrays(2)())], usual=(), scope=Scope.NODE
    ),
    "local filter raises": of("filter", raises, usual=(), scope=Scope.PODS),
    "filter_node raises": of("filter_node", raises),
    "filter_node answers a number": of("filter_node", number),
    "filter_node answers Error": of("filter_node", lambda: Status.error("lost")),
    "filter_node answers Wait": of("filter_node", lambda: Status(Code.WAIT)),
    "PreScore raises": of("pre_score", raises, score=zero),
    "PreScore rejects": of("pre_score", lambda: Status.unschedulable("no"), score=zero),
    "PreScore answers a number": of("pre_score", number, score=zero),
    "PreScore of a local score raises": of("pre_score", raises, score=zero, scope=Scope.NODE),
    "PreScore of a local score answers a number": of("pre_score", number, score=zero, scope=Scope.NODE),
    "score raises": of("score", raises, usual=0),
    "score answers nothing": of("score", absent, usual=0),
    "score answers too many": of("score", arrays(3), usual=0),
    "score answers fractions": of("score", arrays(2, np.float64), usual=0),
    "score is negative": of("score", lambda: -1, usual=0),
    "score is too high": of("score", lambda: np.array([0, 101]), usual=0),
    "local score raises": of("score", raises, usual=0, scope=Scope.NODE),
    "local score answers too many": of("score", arrays(3), usual=0, scope=Scope.NODE),
    "local score is too high": of("score", lambda: np.array([0, 101]), usual=0, scope=Scope.NODE),
    "local score to be normalized answers too many": of(
        "score", arrays(3), usual=0, scope=Scope.NODE, normalize=as_they_are
    ),
    "score_node raises": of("score_node", raises, usual=0),
    "score_node answers text": of("score_node", text, usual=0),
    "score_node answers fractions": of("score_node", lambda: 0.5, usual=0),
    "normalize raises": of("normalize", raises, usual=np.zeros(2, np.int64), score=zero),
    "normalize answers nothing": of("normalize", absent, usual=np.zeros(2, np.int64), score=zero),
    "normalize answers too many": of("normalize", arrays(3), usual=np.zeros(2, np.int64), score=zero),
    "normalize of equal local scores raises": of(
        "normalize", raises, usual=np.zeros(1, np.int64), score=zero, scope=Scope.NODE
    ),
    "normalize leaves the range": of(
        "normalize", lambda: np.array([0, 101]), usual=np.zeros(2, np.int64), score=zero
    ),
    "Reserve raises": of("reserve", raises, unreserve=zero),
    "Reserve answers a number": of("reserve", number, unreserve=zero),
    "Permit raises": of("permit", raises),
    "Permit answers a number": of("permit", number),
    "Permit waits for nonsense": of("permit", lambda: Wait("long")),  # type: ignore[arg-type]
    "Permit waits for no number": of("permit", lambda: Wait(math.nan)),
    "Permit waits for ever": of("permit", lambda: Wait(math.inf)),
    "PreBind's look ahead raises": of("pre_bind_pre_flight", raises, pre_bind=done),
    "PreBind's look ahead answers a number": of("pre_bind_pre_flight", number, pre_bind=done),
    "PreBind raises": of("pre_bind", raises),
    "PreBind answers a number": of("pre_bind", number),
    "Bind raises": of("bind", raises, usual=Status(Code.SKIP)),
    "Bind answers a number": of("bind", number, usual=Status(Code.SKIP)),
}


def exiting(plugin: Plugin) -> Plugin:
    """Return the same plugin, except that it calls `sys.exit` instead of raising an error."""
    method, usual, more = plugin.made_of
    return of(method, exits, usual, **more)


MISBEHAVING |= {
    f"{name.removesuffix('raises')}exits": exiting(plugin)
    for name, plugin in MISBEHAVING.items()
    if name.endswith(" raises")
}


@pytest.mark.parametrize("plugin", MISBEHAVING.values(), ids=MISBEHAVING)
def test_the_pod_fails_under_the_name_of_the_plugin_and_the_others_go_on(plugin: Plugin) -> None:
    stage = Stage(plugin)
    stage.create(room("n1"), room("n2"), BAD, GOOD)
    stage.run(until=0.5)
    assert stage.node_of("good")
    condition = stage.condition("bad")
    assert (condition.status, condition.reason) == ("False", "SchedulerError")
    assert "Faulty" in condition.message
    assert [reason for reason, note in stage.told("bad") if "Faulty" in note] == ["FailedScheduling"]


@pytest.mark.parametrize("plugin", MISBEHAVING.values(), ids=MISBEHAVING)
def test_the_pod_leaves_nothing_behind_and_is_tried_again_after_a_while(plugin: Plugin) -> None:
    stage = Stage(plugin)
    stage.create(room("n1"), room("n2"), BAD)
    stage.run(until=0.5)
    assert sum(stage.used(0, name) for name in ("n1", "n2")) == 0
    assert stage.place("bad") == "backoff"
    stage.run(until=3.0)
    assert [reason for reason, _ in stage.told("bad")] == ["FailedScheduling"] * 2


def test_the_message_of_the_error_is_reported() -> None:
    stage = Stage(MISBEHAVING["filter raises"])
    stage.create(room("n1"), BAD)
    stage.run(until=0.5)
    assert stage.message("bad") == """running "Faulty" filter plugin: KeyError('lost')"""


@pytest.mark.parametrize(
    "plugin",
    [
        of("post_filter", raises),
        of("post_filter", exits),
        of("post_filter", absent),
        of("post_filter", number),
    ],
    ids=["raises", "exits", "answers nothing", "answers a number"],
)
def test_the_message_quotes_a_post_filter_that_fails_after_why_no_node_fits(plugin: Plugin) -> None:
    stage = Stage(plugin, defaults=True)
    stage.create(room("n1"), BAD.requests(cpu="9"), GOOD)
    stage.run()
    assert stage.node_of("good") == "n1"
    assert re.fullmatch(r"0/1 nodes are available: 1 Insufficient cpu\. .*Faulty.*", stage.message("bad"))
    assert stage.condition("bad").reason == "Unschedulable"


def test_a_post_filter_that_finds_a_way_is_the_last_one_called() -> None:
    found = of("post_filter", lambda: PostFilterResult(nominated="n1"))
    never = of("post_filter", raises)
    never.name = "NeverAsked"
    stage = Stage(
        of("filter", lambda: [Rejection("no", where=True)], usual=()), found_as("Found", found), never
    )
    stage.create(room("n1"), BAD)
    stage.run(until=0.5)
    assert stage.pod("bad").status.nominated_node_name == "n1"
    assert "NeverAsked" not in stage.message("bad")


def found_as(name: str, plugin: Plugin) -> Plugin:
    plugin.name = name
    return plugin


@pytest.mark.parametrize(
    "plugin",
    [
        of("post_bind", raises),
        of("post_bind", exits),
        of("post_bind", number),
        of("post_bind", lambda: Status.error("lost")),
    ],
    ids=["raises", "exits", "answers a number", "answers Error"],
)
def test_the_answer_of_post_bind_changes_nothing(plugin: Plugin) -> None:
    stage = Stage(plugin)
    stage.create(room("n1"), BAD)
    stage.run()
    assert stage.node_of("bad") == "n1"
    assert [reason for reason, _ in stage.told("bad")] == ["Scheduled"]


@pytest.mark.parametrize(
    "plugin",
    [of("pre_enqueue", raises), of("pre_enqueue", exits), of("pre_enqueue", number)],
    ids=["raises", "exits", "answers a number"],
)
def test_a_pre_enqueue_that_fails_keeps_only_that_pod_out(plugin: Plugin) -> None:
    stage = Stage(plugin)
    stage.create(room("n1"), BAD, GOOD)
    stage.run()
    assert stage.node_of("good") == "n1"
    assert stage.place("bad") == "gated"
    assert stage.message("bad").startswith('running PreEnqueue plugin "Faulty": ')
    assert stage.told("bad")[0][0] == "FailedScheduling"


class Sorts:
    name = "Sorts"

    def __init__(self, key: Callable[[str], Any]) -> None:
        self._key = key

    def sort_key(self, pod: Pod, _since: float) -> Any:
        return self._key(pod.metadata.name)


@pytest.mark.parametrize("fails", [raises, exits])
def test_a_queue_sort_that_fails_is_reported_and_the_pods_are_tried(
    fails: Callable[[], Any],
) -> None:
    stage = Stage(Sorts(lambda name: fails() if name == "bad" else name))
    stage.create(room("n1"), BAD, GOOD)
    stage.run()
    assert (stage.node_of("good"), stage.node_of("bad")) == ("n1", "n1")
    reason, note = stage.told("bad")[0]
    assert reason == "FailedScheduling"
    assert note.startswith('running QueueSort plugin "Sorts": ')


def test_a_queue_sort_whose_keys_cannot_be_compared_does_not_stop_the_queue() -> None:
    stage = Stage(Sorts(lambda name: 1 if name == "bad" else name))
    stage.create(room("n1"), BAD, GOOD)
    stage.run()
    assert (stage.node_of("good"), stage.node_of("bad")) == ("n1", "n1")


def test_an_unreserve_that_raises_does_not_stop_the_others() -> None:
    undone: list[str] = []
    first = of("reserve", absent, unreserve=lambda *_: undone.append("first"))
    second = found_as("Second", of("reserve", raises, unreserve=raises_always))
    stage = Stage(first, second)
    stage.create(room("n1"), BAD)
    stage.run(until=0.5)
    assert undone == ["first"]
    assert stage.used(0, "n1") == 0


def raises_always(*_: Any) -> None:
    raises()


def test_a_hint_that_exits_wakes_the_pod() -> None:
    def hint(*_: Any) -> bool:
        return bool(exits())

    refuses = of("filter_node", lambda: "not here", wakes_on=(WakeOn(Resource.NODE, Action.ADD, hint),))
    stage = Stage(refuses)
    stage.create(room("n1"), BAD)
    stage.create(room("n2"), at=5.0)
    stage.run()
    assert len(stage.told("bad")) == 2


def test_a_keyboard_interrupt_in_a_plugin_ends_the_scheduler() -> None:
    def interrupted() -> Any:
        raise KeyboardInterrupt

    stage = Stage(of("filter_node", interrupted))
    stage.create(room("n1"), BAD)
    with pytest.raises(KeyboardInterrupt):
        stage.run()


def test_a_local_filter_that_returns_none_for_a_changed_node_accepts_it() -> None:
    stage = Stage(of("filter", absent, scope=Scope.PODS))
    stage.create(room("n1"), GOOD)
    stage.create(pod("next").requests(cpu="1").labels(app="good"), at=1.0)
    stage.run()
    assert (stage.node_of("good"), stage.node_of("next")) == ("n1", "n1")
