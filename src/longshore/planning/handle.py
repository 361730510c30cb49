"""What the engine offers to a plugin that plans for many pods at once."""

from typing import Protocol

from longshore.engine.decision.chooser import Chooser
from longshore.framework import Handle


class PlanningHandle(Handle, Protocol):
    """A `Handle` that also lends out the profile's way to decide, on which `Problem` builds.

    It is declared here rather than in `framework`, because a plan is made of the engine's own decisions.
    """

    @property
    def chooser(self) -> Chooser:
        """What decides about the pods of the profile. It does not exist yet while plugins are made."""
        ...

    def planned(self, planner: str, seconds: float, *, placed: int, left_out: int) -> None:
        """Report a plan to whoever observes the engine: how long it took, and how many pods have a node."""
        ...
