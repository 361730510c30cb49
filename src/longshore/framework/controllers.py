"""The contract of what acts beside the scheduling of pods: it hears of changes, and asks for effects.

A controller is to the engine what a controller of Kubernetes is to the API server. It opens no socket and
reads no clock either: what it wants done it writes down as an errand, a generator that yields effects and is
resumed with the outcome of each. What only informs people goes through `tell`.
"""

from collections.abc import Generator, Iterable
from typing import Any, Protocol

from longshore.api import Change
from longshore.framework.effects import Ask, Outcome

Errand = Generator[Ask, Outcome, None]


class Controller(Protocol):
    """Three more are optional:

    `watches`                                  kinds of objects that it needs to hear of besides those of
                                               Kubernetes itself
    `unready: bool`                            true while it does not know yet what decisions depend on: no
                                               pod is tried until then
    `finish(self, *, now) -> Iterable[Errand]` what is still to be done when the driver is told to stop
    """

    def changed(self, change: Change[Any], *, now: float) -> None:
        """An object of any kind has changed, and the cluster state knows of it. Must be quick."""
        ...

    @property
    def deadline(self) -> float | None:
        """When `advance` is due: at once if that is not in the future, never if None."""
        ...

    def advance(self, *, now: float) -> Iterable[Errand]:
        """What is to be done now. Called when it is due, and only when the initial state is complete."""
        ...
