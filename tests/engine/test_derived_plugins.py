"""The engine treats a subclass or a wrapper of a default plugin like the plugin itself."""

from typing import Any

import pytest
from tests.engine.stage import Stage, configuration, profile, registry, room

from longshore.api import Change, Pod
from longshore.cluster import PodInfo
from longshore.engine import Conflict, Done, Effect, Engine, Failed, Gone, Outcome, Request
from longshore.framework import SKIP, CycleState, Status
from longshore.framework.effects import Bind
from longshore.plugins import DefaultBinder, PrioritySort
from longshore.testing import pod

LOW = pod("low").requests(cpu="1").priority(1)
HIGH = pod("high").requests(cpu="1").priority(2)
WEB = pod("web").requests(cpu="3")


class Wrapper:
    """Passes on everything to the plugin that it wraps."""

    def __init__(self, plugin: Any) -> None:
        self._plugin = plugin

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plugin, name)


# Bind.


class LeavesLow(DefaultBinder):
    """Leaves unimportant pods to the next plugin, which refuses them."""

    name = "LeavesLow"

    def bind(self, state: CycleState, pod: PodInfo, node: str) -> Any:
        return super().bind(state, pod, node) if pod.pod.spec.priority > 1 else SKIP


class Refuses:
    name = "Refuses"

    def bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        return Status.error("not by me")


def test_a_subclass_of_the_binder_decides_which_pods_it_binds() -> None:
    stage = Stage(LeavesLow(), Refuses())
    stage.create(room("n1"), LOW, HIGH)
    stage.run(until=0.5)
    assert (stage.node_of("low"), stage.node_of("high")) == ("", "n1")
    assert stage.message("low") == 'running Bind plugin "Refuses": not by me'


class Same(DefaultBinder):
    pass


def effects_of(binder: Any, outcome: Outcome) -> list[Effect]:
    """What is done in ten seconds if the first bind ends like this, with a second pod that needs the room."""
    plugins = [binder]
    settings = profile()
    engine = Engine(configuration(settings), plugins=registry(plugins))
    for each in (room("n1"), WEB):
        engine.receive(Change(None, each), now=0.0)
    (request,) = engine.advance(now=0.0)
    assert isinstance(request, Request)
    effects = [request.effect]
    engine.receive(Change(None, pod("other").requests(cpu="3")), now=0.0)
    engine.receive(Done(request.id, outcome), now=0.1)
    return [*effects, *(each.effect for second in range(10) for each in engine.advance(now=float(second)))]


@pytest.mark.parametrize("outcome", [Failed("answer lost"), Gone("deleted"), Conflict("bound already")])
@pytest.mark.parametrize("binder", [Same(), Wrapper(DefaultBinder())], ids=["subclass", "wrapper"])
def test_a_bind_that_fails_is_treated_as_one_of_the_default_binder(binder: Any, outcome: Outcome) -> None:
    usual = effects_of(DefaultBinder(), outcome)
    assert isinstance(usual[0], Bind)
    assert effects_of(binder, outcome) == usual


# QueueSort.


class LowFirst(PrioritySort):
    name = "LowFirst"

    def sort_key(self, pod: Pod, since: float) -> Any:
        return tuple(-each for each in super().sort_key(pod, since))


class Fails(PrioritySort):
    name = "Fails"

    def sort_key(self, pod: Pod, since: float) -> Any:
        raise KeyError(pod.metadata.name)


class Mixes(PrioritySort):
    name = "Mixes"

    def sort_key(self, pod: Pod, since: float) -> Any:
        return ("low",) if pod.spec.priority == 1 else super().sort_key(pod, since)


def order(sorts: Any) -> list[str]:
    stage = Stage(sorts)
    stage.create(room("n1"), LOW, HIGH)
    stage.run()
    return [key.removeprefix("default/") for key in stage.bindings]


def test_a_subclass_of_the_queue_sort_orders_pods_its_own_way() -> None:
    assert order(LowFirst()) == ["low", "high"]


def test_a_wrapper_of_the_queue_sort_keeps_its_order() -> None:
    assert order(Wrapper(PrioritySort())) == ["high", "low"]


@pytest.mark.parametrize("sorts", [Fails(), Mixes()])
def test_a_queue_sort_subclass_with_unusable_keys_does_not_stop_the_queue(sorts: Any) -> None:
    assert sorted(order(sorts)) == ["high", "low"]
