"""Errands of controllers: what they wait for, and that others have their turn meanwhile."""

from longshore.api.plan_request import PlanRequest
from longshore.engine.cycle.errands import Errands
from longshore.framework.controllers import Errand
from longshore.framework.effects import (
    Answered,
    Ask,
    CallPlanner,
    Failed,
    Outcome,
    Pause,
    Succeeded,
    Together,
)


class Office:
    """Runs one errand, and keeps what it asks for and hears."""

    def __init__(self, *effects: Ask) -> None:
        self.now = 0.0
        self.asked: list[Ask] = []
        self.heard: list[Outcome] = []
        self.errands = Errands(self._ask, now=lambda: self.now)
        self.errands.start(self._errand(effects))

    def _ask(self, effect: Ask) -> int:
        self.asked.append(effect)
        return len(self.asked)

    def _errand(self, effects: tuple[Ask, ...]) -> Errand:
        for effect in effects:
            self.heard.append((yield effect))


def call(address: str) -> CallPlanner:
    return CallPlanner(address, PlanRequest("default", "batch", "a", ()), 15.0)


def test_a_pause_is_over_at_its_time_and_not_before() -> None:
    office = Office(Pause(2.0))
    assert office.errands.deadline == 2.0
    office.now = 1.9
    office.errands.wake()
    assert office.heard == []
    office.now = 2.0
    office.errands.wake()
    assert office.heard == [Succeeded()]
    assert not office.errands
    assert office.asked == []


def test_one_that_pauses_again_and_again_has_one_turn_at_a_time() -> None:
    office = Office(Pause(), Pause(), Pause())
    for turns in (1, 2, 3):
        office.errands.wake()
        assert len(office.heard) == turns
    assert office.errands.deadline is None


def test_effects_that_are_done_together_are_answered_together_in_their_order() -> None:
    calls = (call("one"), call("two"))
    office = Office(Together(calls))
    assert office.asked == list(calls)
    assert office.errands.answered(2, Answered("second"))
    assert office.heard == []
    assert office.errands.answered(1, Failed("first"))
    assert office.heard == [Answered([Failed("first"), Answered("second")])]


def test_nothing_to_be_done_together_is_not_waited_for() -> None:
    office = Office(Together(()))
    assert len(office.heard) == 1
    assert not office.errands
