"""The contract of controllers, which run next to the scheduling of pods: they observe changes and act.

A controller is to the engine what a Kubernetes controller is to the API server. Like a plugin, it opens no
socket and reads no clock. Work that needs the outside is an errand: a generator that yields effects and is
resumed with the outcome of each. What only informs people goes through `Handle.tell`.
"""

from collections.abc import Collection, Generator, Iterable
from typing import Any, Protocol

from longshore.api import Change
from longshore.api.meta import ApiObject
from longshore.framework.effects import Ask, Outcome
from longshore.framework.reads import NOTHING, Reads

Errand = Generator[Ask, Outcome, None]


class Controller(Protocol):
    """What the engine calls. A class that inherits from it gets the defaults, and an empty `finish`."""

    # The kinds of objects that the controller needs, apart from those that the scheduler watches anyway.
    watches: Collection[type[ApiObject]] = ()
    # The annotations and conditions of pods that the controller reads.
    reads: Reads = NOTHING
    # Whether the controller still lacks what decisions depend on. As long as it does, no pod is scheduled.
    unready: bool = False

    @property
    def deadline(self) -> float | None:
        """The time at which `advance` is due, or None if only a change can make it due."""
        ...

    def changed(self, change: Change[Any], *, now: float) -> None:
        """Called after an object of any kind changed and the cluster state contains the change.

        It must be quick, and must not act: it notes what `advance` has to do.
        """
        ...

    def advance(self, *, now: float) -> Iterable[Errand]:
        """Return the errands to start now. Called when it is due, and not before all objects are listed."""
        ...

    def finish(self, *, now: float) -> Iterable[Errand]:  # noqa: ARG002 - by default there is nothing to do
        """Return the errands to complete before the process ends. Called once."""
        return ()
