"""Generators that wait: what each effect does to them, whatever they are for."""

import random
from collections.abc import Callable, Generator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from longshore.api import PersistentVolume, PersistentVolumeClaim
from longshore.engine.request import Notice, Request
from longshore.engine.runner import OwnStep, Runner, Running, Step
from longshore.framework.effects import (
    Answered,
    Ask,
    Conflict,
    Failed,
    GetObject,
    Nominate,
    Outcome,
    Pause,
    RecordEvent,
    Succeeded,
    Together,
    Until,
)
from longshore.testing import pod

EVENT = RecordEvent.of(pod("a"), kind="Normal", reason="R", action="A", note="")


def read(name: str) -> GetObject:
    return GetObject(PersistentVolume, "", name)


class Scene:
    """A runner in virtual time, with one generator that yields these steps and notes down the outcomes."""

    def __init__(self, *steps: Any) -> None:
        self.now = 0.0
        self.runner = Runner(lambda: self.now)
        self.heard: list[Outcome] = []
        self.ends: list[str] = []
        self.running = self.start(self.steps(steps))

    def steps(self, steps: tuple[Any, ...]) -> Generator[Step, Outcome, str]:
        for step in steps:
            self.heard.append((yield step))
        return "done"

    def start(self, steps: Generator[Step, Outcome, str]) -> Running:
        return self.runner.start(steps, self.ends.append, lambda error: self.ends.append(repr(error)))

    def asked(self) -> list[str]:
        """The names of the objects to read."""
        return [request.effect.name for request in self.requests()]

    def requests(self) -> list[Any]:
        return [each for each in self.runner.outbox if isinstance(each, Request)]

    def answer(self, name: str, outcome: Outcome) -> None:
        (number,) = [request.id for request in self.requests() if request.effect.name == name]
        self.runner.answered(number, outcome)

    def wait_until(self, now: float) -> None:
        self.now = now
        self.runner.expire()


# Operations.


def test_an_operation_becomes_a_request_and_its_outcome_resumes_the_generator() -> None:
    scene = Scene(read("a"), read("b"))
    assert scene.asked() == ["a"]
    scene.answer("a", Conflict("changed"))
    assert scene.heard == [Conflict("changed")]
    assert scene.asked() == ["a", "b"]
    scene.answer("b", Succeeded())
    assert scene.ends == ["done"]


def test_a_repeated_answer_is_ignored() -> None:
    scene = Scene(read("a"), read("b"))
    scene.answer("a", Succeeded())
    scene.answer("a", Failed("again"))
    assert scene.heard == [Succeeded()]


def test_an_answer_with_an_unknown_number_is_ignored() -> None:
    scene = Scene(read("a"))
    scene.runner.answered(99, Succeeded())
    assert scene.heard == []


def test_a_notice_is_passed_on_and_nothing_waits_for_it() -> None:
    scene = Scene()
    scene.runner.tell(EVENT)
    assert scene.runner.take_outbox() == [Notice(EVENT)]
    assert not scene.runner


# Pause.


def test_a_pause_ends_at_its_time_and_not_before() -> None:
    scene = Scene(Pause(2.0))
    assert scene.runner.deadline == 2.0
    scene.wait_until(1.9)
    assert scene.heard == []
    scene.wait_until(2.0)
    assert scene.heard == [Succeeded()]
    assert not scene.runner


def test_a_generator_that_pauses_again_and_again_has_one_turn_at_a_time() -> None:
    scene = Scene(Pause(), Pause(), Pause())
    for turns in (1, 2, 3):
        scene.runner.expire()
        assert len(scene.heard) == turns
    assert scene.runner.deadline is None


def test_a_change_of_the_cluster_does_not_end_a_pause() -> None:
    scene = Scene(Pause())
    scene.runner.look_again()
    assert scene.heard == []


# Until.


class Condition:
    """What an `Until` waits for."""

    def __init__(self) -> None:
        self.outcome: Outcome | None = None

    def until(self, seconds: float = 10.0) -> Until:
        return Until(lambda: self.outcome, seconds, "too late")


def test_until_is_answered_at_once_if_its_check_has_an_outcome() -> None:
    scene = Scene(Until(lambda: Answered(7), 10.0, "too late"))
    assert scene.heard == [Answered(7)]
    assert not scene.runner


def test_until_is_answered_when_the_cluster_has_changed_as_needed() -> None:
    condition = Condition()
    scene = Scene(condition.until())
    scene.runner.look_again()
    assert scene.heard == []
    condition.outcome = Succeeded()
    scene.runner.look_again()
    assert scene.heard == [Succeeded()]
    assert not scene.runner


def test_until_fails_with_its_own_message_when_its_time_is_over() -> None:
    scene = Scene(Condition().until(10.0))
    assert scene.runner.deadline == 10.0
    scene.wait_until(9.9)
    assert scene.heard == []
    scene.wait_until(10.0)
    assert scene.heard == [Failed("too late")]


def test_until_without_any_time_fails_at_once() -> None:
    assert Scene(Condition().until(0.0)).heard == [Failed("too late")]


def test_a_check_that_raises_is_a_failure_of_the_one_that_waits() -> None:
    def check() -> Outcome | None:
        raise KeyError("disk")

    assert Scene(Until(check, 10.0, "too late")).heard == [Failed("KeyError('disk')")]


# Together.


def test_effects_together_are_answered_together_in_their_order() -> None:
    scene = Scene(Together((read("a"), read("b"))))
    scene.answer("b", Answered("second"))
    assert scene.heard == []
    scene.answer("a", Failed("first"))
    assert scene.heard == [Answered([Failed("first"), Answered("second")])]


def test_no_effects_together_are_answered_at_once() -> None:
    scene = Scene(Together(()))
    assert scene.heard == [Answered([])]
    assert scene.ends == ["done"]


def test_groups_within_groups_wait_for_operations_time_and_the_cluster_alike() -> None:
    condition = Condition()
    inner = Together((read("a"), Together(()), condition.until(30.0)))
    scene = Scene(Together((Pause(5.0), inner, Until(lambda: Answered("known"), 1.0, ""))))
    scene.answer("a", Conflict())
    scene.wait_until(5.0)
    assert scene.heard == []
    condition.outcome = Succeeded()
    scene.runner.look_again()
    assert scene.heard == [
        Answered([Succeeded(), Answered([Conflict(), Answered([]), Succeeded()]), Answered("known")])
    ]
    assert scene.ends == ["done"]


# Steps of the engine's own.


class Held(OwnStep):
    def __init__(self) -> None:
        self.running: Running | None = None

    def begin(self, running: Running) -> None:
        self.running = running


def test_a_step_of_the_engines_own_waits_until_its_owner_answers() -> None:
    held = Held()
    scene = Scene(held)
    assert scene.heard == []
    assert held.running is scene.running
    scene.runner.answer(scene.running, Answered("allowed"))
    assert scene.heard == [Answered("allowed")]


def test_a_step_of_the_engines_own_may_be_answered_at_once() -> None:
    class Noted(OwnStep):
        def begin(self, running: Running) -> Outcome:
            return Succeeded()

    assert Scene(Noted()).ends == ["done"]


# Failures.


def test_a_generator_that_raises_fails_alone() -> None:
    def broken() -> Generator[Step, Outcome, str]:
        yield read("a")
        raise ValueError("broken")

    scene = Scene(read("b"))
    scene.start(broken())
    scene.answer("a", Succeeded())
    assert scene.ends == ["ValueError('broken')"]
    scene.answer("b", Succeeded())
    assert scene.ends == ["ValueError('broken')", "done"]


# The type checker rejects these.
_UNANSWERED: list[Any] = [EVENT, Nominate.of(pod("a"), "n1"), None, "nonsense"]


@pytest.mark.parametrize("step", [*_UNANSWERED, *(Together((each,)) for each in [*_UNANSWERED, Held()])])
def test_yielding_an_effect_without_an_answer_is_an_error(step: Any) -> None:
    scene = Scene(step)
    (end,) = scene.ends
    assert end.startswith("TypeError(")
    assert "is not an effect that is answered" in end
    assert not scene.runner


def test_a_generator_may_catch_the_error_for_an_effect_without_an_answer() -> None:
    def careful() -> Generator[Any, Outcome, str]:
        try:
            yield EVENT
        except TypeError:
            yield read("a")
        return "caught"

    scene = Scene()
    scene.start(careful())
    scene.answer("a", Succeeded())
    assert scene.ends == ["done", "caught"]


# Cancellation.


@pytest.mark.parametrize(
    "step",
    [
        read("a"),
        Pause(1.0),
        Condition().until(),
        Together((read("a"), Pause(1.0), Condition().until())),
        Held(),
    ],
)
def test_a_canceled_generator_is_closed_and_later_answers_are_ignored(step: Step) -> None:
    closed: list[str] = []

    def tidy() -> Generator[Step, Outcome, str]:
        try:
            yield step
        finally:
            closed.append("tidied up")
        return "never"

    scene = Scene()
    running = scene.start(tidy())
    scene.runner.cancel(running)
    assert closed == ["tidied up"]
    for request in scene.requests():
        scene.runner.answered(request.id, Succeeded())
    scene.runner.answer(running, Succeeded())
    scene.wait_until(99.0)
    assert scene.ends == ["done"]
    scene.runner.take_outbox()
    assert not scene.runner
    assert scene.runner.deadline is None


def test_cancellation_leaves_other_generators_alone() -> None:
    scene = Scene(read("a"))
    other = scene.start(scene.steps((read("b"), Pause(1.0))))
    scene.runner.cancel(scene.running)
    scene.answer("b", Succeeded())
    scene.wait_until(1.0)
    assert other.is_over
    assert scene.ends == ["done"]


@pytest.mark.parametrize("stubborn", [ValueError("at the end"), None])
def test_a_generator_that_does_not_end_when_it_is_canceled_is_left_where_it_is(
    stubborn: Exception | None,
) -> None:
    def steps() -> Generator[Step, Outcome, str]:
        try:
            yield read("a")
        finally:
            if stubborn is not None:
                raise stubborn
            yield read("b")
        return "never"

    scene = Scene()
    scene.runner.cancel(scene.start(steps()))
    assert scene.asked() == ["a"]
    assert scene.ends == ["done"]


def test_a_resumed_generator_may_cancel_another_that_is_due_at_the_same_time() -> None:
    scene = Scene()
    victims: list[Running] = []

    def first() -> Generator[Step, Outcome, str]:
        yield Pause(1.0)
        scene.runner.cancel(victims[0])
        return "first"

    scene.start(first())
    victims.append(scene.start(scene.steps((Pause(1.0),))))
    scene.wait_until(1.0)
    assert scene.heard == []
    assert scene.ends == ["done", "first"]


# Anything in any order.


def leaves() -> st.SearchStrategy[Ask]:
    return st.one_of(
        st.builds(read, st.sampled_from("abc")),
        st.builds(Pause, st.sampled_from([0.0, 1.0, 3.0])),
        # Filled in by the test: the check looks at what it makes of the cluster.
        st.builds(lambda n: GetObject(PersistentVolumeClaim, "", str(n)), st.integers(0, 2)),
    )


PROGRAMS = st.lists(
    st.recursive(
        leaves(), lambda inner: st.builds(Together, st.lists(inner, max_size=3).map(tuple)), max_leaves=5
    ),
    max_size=4,
)


class Crowd:
    """Several generators with random programs; each notes down how often it is resumed and with what."""

    def __init__(self, programs: list[list[Ask]]) -> None:
        self.now = 0.0
        self.fulfilled: set[str] = set()
        self.runner = Runner(lambda: self.now)
        self.yielded = [0] * len(programs)
        self.ended: set[int] = set()
        self.canceled: set[int] = set()
        self.requests: list[Request] = []
        self.running = [
            self.runner.start(self.steps(n, program), self.ended.add, self._failed)
            for n, program in enumerate(programs)
        ]

    def _failed(self, error: BaseException) -> None:
        raise error

    def steps(self, number: int, program: list[Ask]) -> Generator[Step, Outcome, int]:
        for effect in program:
            self.yielded[number] += 1
            before = self.yielded[number]
            outcome = yield self._made(effect)
            assert self.yielded[number] == before
            assert number not in self.canceled
            self._check(effect, outcome)
        return number

    def _made(self, effect: Ask) -> Ask:
        """The effect, with an `Until` in place of what stands for one."""
        match effect:
            case Together(effects):
                return Together(tuple(map(self._made, effects)))
            case GetObject(kind, name=name) if kind is PersistentVolumeClaim:
                seconds = float(name)
                return Until(
                    lambda: Answered(name) if name in self.fulfilled else None, seconds, f"late {name}"
                )
        return effect

    def _check(self, effect: Ask, outcome: Outcome) -> None:
        match effect:
            case Together(effects):
                assert isinstance(outcome, Answered)
                for inner, each in zip(effects, outcome.value, strict=True):
                    self._check(inner, each)
            case GetObject(kind, name=name) if kind is PersistentVolumeClaim:
                assert outcome in (Answered(name), Failed(f"late {name}"))
            case GetObject(name=name):
                assert isinstance(outcome, Answered)
                assert outcome.value.startswith(f"{name} ")
            case _:
                assert outcome == Succeeded()

    def fetch(self) -> None:
        for each in self.runner.take_outbox():
            assert isinstance(each, Request)
            self.requests.append(each)

    def answer(self, request: Request) -> None:
        assert isinstance(request.effect, GetObject)
        self.runner.answered(request.id, Answered(f"{request.effect.name} {request.id}"))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(PROGRAMS, min_size=1, max_size=4), st.randoms(use_true_random=False), st.booleans())
def test_every_generator_is_resumed_once_for_each_step_in_any_order(
    programs: list[list[Ask]], chance: random.Random, cancels: bool
) -> None:
    crowd = Crowd(programs)

    def answer() -> None:
        if crowd.requests:
            # Sometimes a second time.
            crowd.answer(chance.choice(crowd.requests))

    def pass_time() -> None:
        crowd.now += chance.choice([0.0, 0.5, 2.0])
        crowd.runner.expire()

    def change() -> None:
        crowd.fulfilled.add(chance.choice("012"))
        crowd.runner.look_again()

    def cancel() -> None:
        number = chance.randrange(len(programs))
        if cancels and number not in crowd.ended:
            crowd.canceled.add(number)
            crowd.runner.cancel(crowd.running[number])

    moves: list[Callable[[], None]] = [answer, pass_time, change, cancel]
    for _ in range(30):
        crowd.fetch()
        chance.choice(moves)()
    for _ in range(60):
        crowd.fetch()
        for request in crowd.requests:
            crowd.answer(request)
        crowd.now += 5.0
        crowd.runner.expire()
    everyone = set(range(len(programs)))
    assert crowd.ended | crowd.canceled == everyone
    assert not crowd.ended & crowd.canceled
    for number in crowd.ended:
        assert crowd.yielded[number] == len(programs[number])
    # Nothing is left behind.
    assert not crowd.runner
    assert crowd.runner.deadline is None
