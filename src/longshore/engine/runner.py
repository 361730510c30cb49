"""Runs generators from effect to effect: scheduling cycles, steps of plugins, errands of controllers.

A generator yields what it waits for, and is resumed exactly once with the outcome. The rules are the same for
all: an operation becomes a request in `outbox`, which the driver answers by its number; `Until`, `Pause` and
`Together` are answered here. A wait that only scheduling knows is an `OwnStep`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar

from longshore.engine.plugin_failure import PLUGIN_ERRORS
from longshore.engine.request import Instruction, Notice, Request
from longshore.framework.effects import (
    Answered,
    Ask,
    Failed,
    Operation,
    Outcome,
    Pause,
    Succeeded,
    Tell,
    Together,
    Until,
)

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class Running:
    """A generator that was started. `ended` is called with what it returns, `failed` with what it raises."""

    steps: Generator[Any, Outcome, Any]
    ended: Callable[[Any], None]
    failed: Callable[[BaseException], None]
    is_over: bool = False


class OwnStep(ABC):
    """A wait that neither the driver nor the runner ends, but the part of the engine that it belongs to."""

    @abstractmethod
    def begin(self, running: Running) -> Outcome | None:
        """Return the outcome if it is known already; otherwise call `Runner.answer` later, once."""


Step = Ask | OwnStep


@dataclass(eq=False, slots=True)
class _Group:
    """The effects of one `Together`, and the generator or group that waits for them."""

    waiter: "_Waiter"
    outcomes: list[Outcome | None]
    missing: int


# A generator, or a place in a group.
_Waiter = Running | tuple[_Group, int]


@dataclass(eq=False, slots=True)
class _Wait:
    """A `Pause`, or an `Until` whose check has given no outcome so far."""

    waiter: _Waiter
    deadline: float
    until: Until | None


class Runner:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.outbox: list[Instruction] = []
        # By the number of the request.
        self._asked: dict[int, _Waiter] = {}
        self._waits: dict[int, _Wait] = {}
        self._numbers = count(1)

    def __bool__(self) -> bool:
        """Whether anything waits for the driver, for the cluster or for time to pass."""
        return bool(self.outbox or self._asked or self._waits)

    @property
    def deadline(self) -> float | None:
        """When `expire` is due."""
        return min((wait.deadline for wait in self._waits.values()), default=None)

    def tell(self, effect: Tell) -> None:
        self.outbox.append(Notice(effect))

    def take_outbox(self) -> list[Instruction]:
        taken, self.outbox = self.outbox, []
        return taken

    def start(
        self,
        steps: Generator[Step, Outcome, T],
        ended: Callable[[T], None],
        failed: Callable[[BaseException], None],
    ) -> Running:
        running = Running(steps, ended, failed)
        self._resume(running, None)
        return running

    def cancel(self, running: Running) -> None:
        """Close the generator. `ended` and `failed` are not called, and later answers are ignored."""
        running.is_over = True
        self._asked = {n: waiter for n, waiter in self._asked.items() if _generator(waiter) is not running}
        self._waits = {n: wait for n, wait in self._waits.items() if _generator(wait.waiter) is not running}
        # It may raise, or yield once more, instead of ending: then it stops there.
        with suppress(*PLUGIN_ERRORS):
            running.steps.close()

    def answered(self, number: int, outcome: Outcome) -> None:
        """Take the outcome of a request; ignored if the number is unknown or was answered before."""
        waiter = self._asked.pop(number, None)
        if waiter is not None:
            self._answer(waiter, outcome)

    def answer(self, running: Running, outcome: Outcome) -> None:
        """Resume a generator that waits for an `OwnStep`."""
        if not running.is_over:
            self._resume(running, outcome)

    def expire(self) -> None:
        """End the waits whose time is over. A generator that pauses again waits for the next call."""
        now = self._now()
        for number, wait in list(self._waits.items()):
            outcome: Outcome | None = Succeeded() if wait.deadline <= now else None
            if wait.until is not None:
                outcome = self._look(wait.until, wait.deadline)
            self._end_wait(number, outcome)

    def look_again(self) -> None:
        """The cluster has changed: repeat the checks of `Until`."""
        if not self._waits:
            return
        for number, wait in list(self._waits.items()):
            if wait.until is not None:
                self._end_wait(number, self._look(wait.until, wait.deadline))

    def _end_wait(self, number: int, outcome: Outcome | None) -> None:
        # What was resumed before may have ended this wait as well.
        if outcome is not None and (wait := self._waits.pop(number, None)) is not None:
            self._answer(wait.waiter, outcome)

    def _look(self, until: Until, deadline: float) -> Outcome | None:
        try:
            outcome = until.check()
        except PLUGIN_ERRORS as error:  # a plugin's mistake fails only what it waits for
            return Failed(repr(error))
        return Failed(until.timeout) if outcome is None and deadline <= self._now() else outcome

    def _answer(self, waiter: _Waiter, outcome: Outcome) -> None:
        while isinstance(waiter, tuple):
            group, place = waiter
            group.outcomes[place] = outcome
            group.missing -= 1
            if group.missing:
                return
            waiter, outcome = group.waiter, Answered(group.outcomes)
        self._resume(waiter, outcome)

    def _resume(self, running: Running, outcome: Outcome | None) -> None:
        """Run the generator until it waits for something or ends."""
        steps = running.steps
        try:
            step = next(steps) if outcome is None else steps.send(outcome)
            while True:
                if isinstance(step, Operation):
                    self._request(step, running)
                    return
                if isinstance(step, OwnStep):
                    outcome = step.begin(running)
                elif _is_answered(step):
                    outcome = self._begin(step, running)
                else:
                    # Raised where the generator waits, so that whatever yielded it fails.
                    step = steps.throw(TypeError(f"{step!r} is not an effect that is answered"))
                    continue
                if outcome is None:
                    return
                step = steps.send(outcome)
        except StopIteration as end:
            result = end.value
        except PLUGIN_ERRORS as error:
            running.is_over = True
            running.failed(error)
            return
        running.is_over = True
        running.ended(result)

    def _begin(self, effect: Ask, waiter: _Waiter) -> Outcome | None:
        """Set the effect going, and return its outcome if that is known at once."""
        match effect:
            case Until(seconds=seconds):
                deadline = self._now() + seconds
                outcome = self._look(effect, deadline)
                if outcome is None:
                    self._waits[next(self._numbers)] = _Wait(waiter, deadline, effect)
                return outcome
            case Pause(seconds):
                self._waits[next(self._numbers)] = _Wait(waiter, self._now() + seconds, None)
                return None
            case Together(effects):
                group = _Group(waiter, [None] * len(effects), len(effects))
                for place, each in enumerate(effects):
                    outcome = self._begin(each, (group, place))
                    if outcome is not None:
                        group.outcomes[place] = outcome
                        group.missing -= 1
                return None if group.missing else Answered(group.outcomes)
        self._request(effect, waiter)
        return None

    def _request(self, effect: Operation, waiter: _Waiter) -> None:
        number = next(self._numbers)
        self._asked[number] = waiter
        self.outbox.append(Request(number, effect))


def _generator(waiter: _Waiter) -> Running:
    while isinstance(waiter, tuple):
        waiter = waiter[0].waiter
    return waiter


def _is_answered(effect: object) -> bool:
    if isinstance(effect, Together):
        return all(_is_answered(each) for each in effect.effects)
    return isinstance(effect, Operation | Until | Pause)
