"""Runs the errands of controllers: from effect to effect, each with the outcome of the last."""

from collections.abc import Callable

from longshore.framework.controllers import Errand
from longshore.framework.effects import ANSWERED, Effect, Outcome, Succeeded


class Errands:
    """`ask` sends an effect on its way, and gives the number under which it will be answered."""

    def __init__(self, ask: Callable[[Effect], int]) -> None:
        self._ask = ask
        self._waiting: dict[int, Errand] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def start(self, errand: Errand) -> None:
        self._go_on(errand, None)

    def answered(self, number: int, outcome: Outcome) -> bool:
        """Whether the number is that of an errand."""
        errand = self._waiting.pop(number, None)
        if errand is None:
            return False
        self._go_on(errand, outcome)
        return True

    def _go_on(self, errand: Errand, outcome: Outcome | None) -> None:
        try:
            effect = next(errand) if outcome is None else errand.send(outcome)
            while True:
                number = self._ask(effect)
                if isinstance(effect, ANSWERED):
                    self._waiting[number] = errand
                    return
                effect = errand.send(Succeeded())
        except StopIteration:
            pass
