"""The handle of a plugin that plans for many pods at once."""

from typing import Protocol

from longshore.engine.decision.chooser import Chooser
from longshore.framework import Handle


class PlanningHandle(Handle, Protocol):
    """A `Handle` that also gives access to the `Chooser` of the profile, which a `Problem` needs.

    It is declared here rather than in `framework`, because a plan consists of the engine's own decisions.
    """

    @property
    def chooser(self) -> Chooser:
        """The `Chooser` that decides about the pods of the profile. It is not available in constructors."""
        ...

    def planned(self, planner: str, seconds: float, *, placed: int, left_out: int) -> None:
        """Report a plan to the observers of the engine: how long it took, and how many pods have a node."""
        ...
