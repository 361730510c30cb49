"""What connects an engine with a cluster: its instructions go out, and events about them come back."""

from collections.abc import Callable, Collection
from functools import partial

from longshore.api.meta import ApiObject
from longshore.engine.events import Done, Event
from longshore.engine.request import Instruction, Notice
from longshore.framework.effects import Outcome
from longshore.framework.seam import Cancel, Cluster, ignore


class Link:
    """Passes changes and outcomes on to `on_event`, until it is cut."""

    def __init__(self, cluster: Cluster, on_event: Callable[[Event], None]) -> None:
        self._cluster = cluster
        self._on_event = on_event
        self._watch: Cancel = ignore
        self._unanswered: dict[int, Cancel] = {}

    @property
    def answers_due(self) -> int:
        """How many requests of the engine have no outcome yet."""
        return len(self._unanswered)

    def watch(self, kinds: Collection[type[ApiObject]], on_synced: Callable[[], None] = ignore) -> None:
        self._watch = self._cluster.watch(kinds, self._on_event, on_synced)

    def perform(self, instruction: Instruction) -> None:
        if isinstance(instruction, Notice):
            self._cluster.report(instruction.effect)
        else:
            number = instruction.id
            self._unanswered[number] = self._cluster.perform(
                instruction.effect, partial(self._answered, number)
            )

    def unwatch(self) -> None:
        """Pass on no more changes; outcomes are still passed on."""
        self._watch()

    def cut(self) -> None:
        """Pass on nothing more."""
        self.unwatch()
        for cancel in self._unanswered.values():
            cancel()
        self._unanswered.clear()

    def _answered(self, number: int, outcome: Outcome) -> None:
        del self._unanswered[number]
        self._on_event(Done(number, outcome))
