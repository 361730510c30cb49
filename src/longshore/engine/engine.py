"""The engine itself: it keeps state and queue in step with the cluster and runs the cycles.

State changes only while an event is received or a cycle runs; both are told the time. Effects gather in an
outbox until the driver fetches them with `advance`.
"""

from dataclasses import dataclass
from itertools import count

from longshore.api import Change, Node, Pod
from longshore.cluster import ClusterState
from longshore.engine.cycle import Cycle, Fate, cycle
from longshore.engine.effects import Bind, Request
from longshore.engine.events import Done, Event, Gone, Outcome, Succeeded
from longshore.engine.queue import Entry, Queue
from longshore.framework import Profile, TieBreak, WeightedScore
from longshore.plugins import NodeResourcesFit

DEFAULT_SCHEDULER_NAME = "longshore"


@dataclass(frozen=True, slots=True)
class _Flight:
    """A cycle that waits for the outcome of its bind."""

    entry: Entry
    steps: Cycle
    bind: Bind


class Engine:
    """A scheduler without hands: feed it events, perform what `advance` asks for, and tell how that ended.

    Equal events at equal times give equal decisions. `tie_break` chooses among equally good nodes: "random"
    spreads pods by a hash of `seed`, pod and node; "first" takes the first by name.
    """

    def __init__(
        self,
        *,
        scheduler_name: str = DEFAULT_SCHEDULER_NAME,
        tie_break: TieBreak = "random",
        seed: int = 0,
    ) -> None:
        fit = NodeResourcesFit()
        self._profile = Profile(scheduler_name, (fit,), (WeightedScore(fit),), tie_break, seed)
        self._cluster = ClusterState()
        self._queue = Queue()
        self._flights: dict[int, _Flight] = {}
        self._outbox: list[Request] = []
        self._ids = count(1)
        self._room_seen = 0
        self._now = 0.0

    @property
    def scheduler_name(self) -> str:
        return self._profile.scheduler_name

    @property
    def cluster(self) -> ClusterState:
        """The cluster as the engine sees it, to read from."""
        return self._cluster

    @property
    def deadline(self) -> float | None:
        """When `advance` is due if no event comes before: at once if not in the future, never if None."""
        if self._outbox or self._queue.has_active:
            return self._now
        return self._queue.next_ready

    def receive(self, event: Event, *, now: float) -> None:
        """Take in what happened. Anything may come late, twice, or about an object never heard of."""
        self._now = now
        match event:
            case Done(number, outcome):
                flight = self._flights.pop(number, None)
                if flight is not None:
                    self._resume(flight.entry, flight.steps, self._in_truth(flight, outcome))
            case Change(None | Pod() as old, None | Pod() as new):
                self._pod_changed(old, new)
            case Change(None | Node() as old, None | Node() as new):
                self._node_changed(old, new)
        self._wake_for_room()

    def advance(self, *, now: float, max_cycles: int | None = None) -> list[Request]:
        """Decide about the pods whose turn it is, at most `max_cycles`, and hand out what is to be done."""
        self._now = now
        self._queue.flush(now=now)
        cycles = 0
        while (max_cycles is None or cycles < max_cycles) and (entry := self._queue.pop()) is not None:
            cycles += 1
            # Held since a bind whose answer was a failure.
            self._cluster.forget(entry.pod)
            self._wake_for_room()
            self._resume(entry, cycle(entry, self._cluster, self._profile), None)
        requests, self._outbox = self._outbox, []
        return requests

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is not None:
            self._cluster.add_node(new)
        elif old is not None:
            self._cluster.remove_node(old.metadata.name)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and (new is None or old.metadata.uid != new.metadata.uid):
            self._queue.withdraw(old)
            self._cluster.remove_pod(old)
        if new is None:
            return
        self._queue.remove_predecessor(new)
        self._cluster.remove_predecessor(new)
        if new.spec.node_name or new.terminal:
            self._queue.withdraw(new)
            self._cluster.add_pod(new)
            return
        if not self._cluster.is_assumed(new):
            self._cluster.remove_pod(new)
        if not self._is_ours(new):
            self._queue.withdraw(new)
            if not self._queue.holds(new):
                self._cluster.forget(new)
        elif self._queue.holds(new) or not self._cluster.is_assumed(new):
            self._queue.put(new, now=self._now)
        # Else we have bound it, and this is a last word from before.

    def _is_ours(self, pod: Pod) -> bool:
        spec = pod.spec
        return (
            spec.scheduler_name == self._profile.scheduler_name
            and not spec.scheduling_gates
            and pod.metadata.deletion_timestamp is None
        )

    def _in_truth(self, flight: _Flight, outcome: Outcome) -> Outcome:
        """The outcome in the light of the watch, which outranks an answer that the bind came to nothing."""
        pod = flight.entry.pod
        if isinstance(outcome, Succeeded) or self._queue.find(pod) is flight.entry:
            return outcome
        if self._cluster.node_of(pod) == flight.bind.node and not self._cluster.is_assumed(pod):
            return Succeeded()
        return Gone("no longer to be scheduled here")

    def _resume(self, entry: Entry, steps: Cycle, outcome: Outcome | None) -> None:
        """Run the cycle until it waits for a bind or ends; what only informs people is not waited for."""
        try:
            effect = next(steps) if outcome is None else steps.send(outcome)
            while True:
                number = next(self._ids)
                self._outbox.append(Request(number, effect))
                if isinstance(effect, Bind):
                    self._flights[number] = _Flight(entry, steps, effect)
                    return
                effect = steps.send(Succeeded())
        except StopIteration as end:
            self._land(entry, end.value)

    def _land(self, entry: Entry, fate: Fate) -> None:
        match fate:
            case Fate.BOUND | Fate.DROPPED:
                self._queue.settle(entry)
            case Fate.RETRIED:
                self._queue.back_off(entry, now=self._now)
            case Fate.SET_ASIDE:
                self._queue.set_aside(entry, now=self._now)

    def _wake_for_room(self) -> None:
        if self._cluster.room_made != self._room_seen:
            self._room_seen = self._cluster.room_made
            self._queue.wake(now=self._now)
