"""Runs the errands of controllers: from effect to effect, each with the outcome of the last."""

from collections.abc import Callable
from dataclasses import dataclass

from longshore.framework.controllers import Errand
from longshore.framework.effects import Answered, Ask, Operation, Outcome, Pause, Succeeded, Together


@dataclass(slots=True)
class _Group:
    """Outcomes of effects that are done together."""

    errand: Errand
    outcomes: list[Outcome | None]


class Errands:
    """`ask` sends an effect on its way, and gives the number under which it will be answered."""

    def __init__(self, ask: Callable[[Operation], int], *, now: Callable[[], float]) -> None:
        self._ask = ask
        self._now = now
        self._waiting: dict[int, Errand | tuple[_Group, int]] = {}
        # Those that pause, each with the time when it goes on.
        self._paused: list[tuple[float, Errand]] = []

    def __bool__(self) -> bool:
        return bool(self._waiting or self._paused)

    @property
    def deadline(self) -> float | None:
        """When the first of the pauses is over."""
        return min((time for time, _ in self._paused), default=None)

    def start(self, errand: Errand) -> None:
        self._go_on(errand, None)

    def wake(self) -> None:
        """Go on with those whose pause is over. One that pauses again is left for the next time."""
        now, paused = self._now(), self._paused
        self._paused = [each for each in paused if each[0] > now]
        for time, errand in paused:
            if time <= now:
                self._go_on(errand, Succeeded())

    def answered(self, number: int, outcome: Outcome) -> bool:
        """Whether the number is that of an errand."""
        found = self._waiting.pop(number, None)
        if found is None:
            return False
        if not isinstance(found, tuple):
            self._go_on(found, outcome)
            return True
        group, place = found
        group.outcomes[place] = outcome
        if None not in group.outcomes:
            self._go_on(group.errand, Answered(group.outcomes))
        return True

    def _go_on(self, errand: Errand, outcome: Outcome | None) -> None:
        try:
            effect = next(errand) if outcome is None else errand.send(outcome)
            while not self._waits_for(effect, errand):
                effect = errand.send(Succeeded())
        except StopIteration:
            pass

    def _waits_for(self, effect: Ask, errand: Errand) -> bool:
        """Set the effect going; whether the errand waits for it."""
        match effect:
            case Pause(seconds):
                self._paused.append((self._now() + seconds, errand))
                return True
            case Together(effects):
                group = _Group(errand, [None] * len(effects))
                for place, each in enumerate(effects):
                    assert isinstance(each, Operation)  # noqa: S101
                    self._waiting[self._ask(each)] = (group, place)
                return bool(effects)
        assert isinstance(effect, Operation)  # noqa: S101
        self._waiting[self._ask(effect)] = errand
        return True
