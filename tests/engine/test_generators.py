"""An effect means the same for every generator that the engine runs, whatever the generator is for."""

from collections.abc import Callable, Generator, Iterable
from typing import Any

import pytest
import structlog
from tests.engine.stage import engine_of

from longshore.api import Change, PersistentVolume, PersistentVolumeClaim, PodCondition
from longshore.api.plan_request import PlanRequest
from longshore.cluster import PodInfo
from longshore.engine import Done, Engine, Request
from longshore.framework import CycleState
from longshore.framework.controllers import Controller, Errand
from longshore.framework.effects import (
    Answered,
    Ask,
    Bind,
    CallPlanner,
    CallWebhook,
    CreateObject,
    DeleteObject,
    Evict,
    Failed,
    GetObject,
    Outcome,
    PatchObject,
    Pause,
    RecordEvent,
    Run,
    Succeeded,
    Together,
    Until,
)
from longshore.testing import node, pod

OTHER = pod("other")
DONE = Answered("done")
READ = GetObject(PersistentVolumeClaim, "default", "a")


async def work() -> None: ...


OPERATIONS: list[Ask] = [
    Bind.of(OTHER, "n1"),
    Evict.of(OTHER, PodCondition(type="T", status="True")),
    PatchObject(PersistentVolume, "", "a", {}),
    CreateObject(PersistentVolumeClaim, "default", "a", {}),
    DeleteObject(PersistentVolumeClaim, "default", "a", "uid"),
    READ,
    CallWebhook(0, "filter", b""),
    CallPlanner("planner:7777", PlanRequest("default", "batch", "a", ()), 15.0),
]
# Each effect with the outcome that it has when the driver answers everything at once.
EFFECTS: list[tuple[Ask, Outcome]] = [
    *((operation, DONE) for operation in OPERATIONS),
    (Until(Succeeded, 1.0, "too late"), Succeeded()),
    (Until(lambda: None, 5.0, "too late"), Failed("too late")),
    (Pause(), Succeeded()),
    (Pause(5.0), Succeeded()),
    (Together(()), Answered([])),
    (
        Together((READ, Together((Pause(2.0), READ)), Until(lambda: None, 5.0, "too late"))),
        Answered([DONE, Answered([Succeeded(), DONE]), Failed("too late")]),
    ),
]

Steps = Generator[Ask, Outcome, None]


class Waits:
    """Does its work at one of the points where a plugin may take its time."""

    name = "Waits"

    def __init__(self, method: str, steps: Callable[[], Steps]) -> None:
        def called(state: CycleState, pod: PodInfo, node: str) -> Steps:
            return steps()

        setattr(self, method, called)


class Sends(Controller):
    """A controller with one errand."""

    deadline: float | None = 0.0

    def __init__(self, errand: Errand) -> None:
        self._errand = errand

    def changed(self, change: Change[Any], *, now: float) -> None: ...

    def advance(self, *, now: float) -> Iterable[Errand]:
        self.deadline = None
        return [self._errand]


def engine_that_runs(kind: str, steps: Callable[[], Steps]) -> Engine:
    """With one generator of the kind to run, and a pod to schedule."""
    if kind == "errand":
        engine = engine_of()
        engine.add_controller(Sends(steps()))
    else:
        engine = engine_of(Waits(kind, steps))
    for each in (node("n1").allocatable(cpu="4", memory="8Gi"), pod("web").requests(cpu="1")):
        engine.receive(Change(None, each), now=0.0)
    return engine


def drive(engine: Engine) -> list[Any]:
    """Answer all requests at once, and let twenty seconds pass; returns the effects."""
    effects = []
    for second in range(20):
        while engine.deadline is not None and engine.deadline <= second:
            for each in engine.advance(now=float(second)):
                effects.append(each.effect)
                if isinstance(each, Request):
                    own = each.effect == Bind.of(pod("web"), "n1")
                    engine.receive(Done(each.id, Succeeded() if own else DONE), now=float(second))
    return effects


KINDS = ["errand", "pre_bind", "bind", "post_bind"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("effect", "outcome"), EFFECTS, ids=lambda each: type(each).__name__)
def test_an_effect_is_answered_in_the_same_way_wherever_it_is_yielded(
    kind: str, effect: Ask, outcome: Outcome
) -> None:
    heard: list[Outcome] = []

    def steps() -> Steps:
        heard.append((yield effect))

    engine = engine_that_runs(kind, steps)
    effects = drive(engine)
    assert heard == [outcome]
    assert any(isinstance(each, RecordEvent) and each.reason == "Scheduled" for each in effects)
    assert engine.settled


@pytest.mark.parametrize("kind", KINDS)
def test_a_coroutine_is_awaited_by_the_driver_wherever_it_is_yielded(kind: str) -> None:
    heard: list[Outcome] = []
    coroutine = work()

    def steps() -> Steps:
        heard.append((yield Run("Waits", coroutine)))

    drive(engine_that_runs(kind, steps))
    coroutine.close()
    assert heard == [DONE]


@pytest.mark.parametrize("kind", ["pre_bind", "bind"])
@pytest.mark.parametrize("wrong", ["raises", "yields an event"])
def test_a_plugins_generator_that_fails_fails_its_pod_under_the_name_of_the_plugin(
    kind: str, wrong: str
) -> None:
    engine = engine_that_runs(kind, lambda: broken(wrong))
    notes = [e.note for e in drive(engine) if isinstance(e, RecordEvent) and e.type == "Warning"]
    point = {"pre_bind": "PreBind", "bind": "Bind"}[kind]
    assert notes[0].startswith(f'running {point} plugin "Waits": ')
    assert ("KeyError('broken')" if wrong == "raises" else "is not an effect that is answered") in notes[0]


@pytest.mark.parametrize("wrong", ["raises", "yields an event"])
def test_a_failing_errand_is_logged_with_its_controller_and_pods_are_bound(
    wrong: str,
) -> None:
    engine = engine_that_runs("errand", lambda: broken(wrong))
    with structlog.testing.capture_logs() as logs:
        effects = drive(engine)
    assert [(line["event"], line["controller"]) for line in logs] == [
        ("an errand of a controller failed", "Sends")
    ]
    assert any(isinstance(each, Bind) for each in effects)
    assert engine.settled


def broken(wrong: str) -> Steps:
    yield READ
    if wrong == "raises":
        raise KeyError("broken")
    event: Any = RecordEvent.of(OTHER, kind="Normal", reason="R", action="A", note="")
    yield event


def test_a_mistake_of_the_engine_fails_the_pod_and_not_the_scheduler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = engine_that_runs("post_bind", lambda: broken("raises"))

    def lost(*_: Any) -> None:
        raise LookupError("lost")

    with monkeypatch.context() as patch:
        patch.setattr(engine.records, "placed", lost)
        effects = engine.advance(now=0.0)
    notes = [e.effect.note for e in effects if isinstance(e.effect, RecordEvent)]
    assert notes == ["the scheduler failed: LookupError('lost')"]
    assert engine.queue.counts()["backoff"] == 1
    assert any(isinstance(each, Bind) for each in drive(engine))
