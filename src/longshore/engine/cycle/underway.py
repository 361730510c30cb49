"""Cycles that wait: for the outcome of an effect, a permission, or the cluster to become as needed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from longshore.api import Pod
from longshore.cluster import ClusterState
from longshore.engine.answers.observer import Observer, Unobserved
from longshore.engine.cycle.evictions import IN_MEMORY
from longshore.engine.cycle.scheduling_cycle import Cycle, Fate, Step
from longshore.engine.cycle.waiting import (
    BindingBegins,
    BindThrough,
    Consult,
    MayGiveWay,
    WaitingPod,
    WaitOnPermit,
)
from longshore.engine.plugin_failure import PLUGIN_ERRORS
from longshore.engine.queue.entry import Entry
from longshore.engine.queue.scheduling_queue import Queue
from longshore.engine.request import Instruction, Notice, Request
from longshore.framework import Code, Status
from longshore.framework.effects import (
    Answered,
    Bind,
    Evict,
    Failed,
    Gone,
    Operation,
    Outcome,
    Succeeded,
    Tell,
    Together,
    Until,
)


@dataclass(slots=True)
class Flight:
    """A cycle that waits for an outcome."""

    entry: Entry
    steps: Cycle
    # The node it is being bound to, once that is under way.
    node: str = ""
    # Whether its bind is to be measured, and when that was asked for, until it is answered.
    measured: bool = False
    bind_asked: float | None = None


@dataclass(slots=True)
class _Group:
    """Outcomes of effects that are done together."""

    flight: Flight
    outcomes: list[Outcome | None]


@dataclass(slots=True)
class _Watcher:
    """A cycle that waits for the cluster to become what it needs."""

    flight: Flight
    until: Until
    deadline: float


class Underway:
    """Runs cycles from step to step. What they ask for gathers in `outbox`.

    `land` is told how a cycle ended, `released` of a pod that gave up the node it was assumed on meanwhile.
    """

    def __init__(
        self,
        cluster: ClusterState,
        queue: Queue,
        *,
        now: Callable[[], float],
        land: Callable[[Entry, Fate], None],
        released: Callable[[Pod, str], None],
    ) -> None:
        self._cluster = cluster
        self._queue = queue
        self._now = now
        self._land = land
        self._released = released
        self.observer: Observer = Unobserved()
        self.outbox: list[Instruction] = []
        # A cycle that asks extenders about its decision.
        self.consulting: Flight | None = None
        self._flights: dict[int, Flight | tuple[_Group, int]] = {}
        self._waiting: dict[str, tuple[WaitingPod, Flight]] = {}
        self._watchers: list[_Watcher] = []
        # Those that may give way, by the UID of their pod, and what goes on in their place then.
        self._yielding: dict[str, tuple[Flight, Callable[[], Fate]]] = {}
        self._ids = count(1)

    def __bool__(self) -> bool:
        return bool(self.outbox or self._flights or self._waiting or self._watchers)

    @property
    def binds_in_flight(self) -> int:
        # Copied in one step: another thread may ask.
        flights = self._flights.copy().values()
        return sum(isinstance(flight, Flight) and bool(flight.node) for flight in flights)

    @property
    def deadline(self) -> float | None:
        """When the first of the waits is over."""
        times = [waiting.deadline for waiting, _ in self._waiting.values()]
        times += [watcher.deadline for watcher in self._watchers]
        return min(times, default=None)

    def tell(self, effect: Tell) -> None:
        self.outbox.append(Notice(effect))

    def ask(self, effect: Operation) -> int:
        """Ask for something that no cycle waits for; the number of the request."""
        number = next(self._ids)
        self.outbox.append(Request(number, effect))
        return number

    def expire(self) -> None:
        """Time has passed: end the waits that are over."""
        if self._waiting:
            self._reject_expired()
        if self._watchers:
            self._look_at_watchers()

    def look_again(self) -> None:
        """The cluster has changed."""
        if self._watchers:
            self._look_at_watchers()

    def resume(self, flight: Flight, outcome: Outcome | None = None) -> None:
        """Run the cycle until it waits for something or ends; what only informs people is not waited for."""
        pod = flight.entry.pod
        # While it waited, others may have found its room taken.
        held = outcome is not None and self._cluster.is_assumed(pod) and self._cluster.node_of(pod)
        try:
            step: Step = next(flight.steps) if outcome is None else flight.steps.send(outcome)
            while True:
                if isinstance(step, Bind):
                    # As most cycles go: told apart first.
                    self._bind_through(step, step.node, flight)
                    return
                if self._waits_for(step, flight):
                    return
                step = flight.steps.send(Succeeded())
        except StopIteration as end:
            self._land(flight.entry, end.value)
            if held and self._cluster.node_of(pod) is None:
                self._released(pod, held)

    def _waits_for(self, step: Step, flight: Flight) -> bool:
        """Set the step going; whether the cycle waits for it."""
        match step:
            case BindingBegins():
                self._queue.done_scheduling(flight.entry)
                return False
            case MayGiveWay(instead):
                self._let_give_way(flight, instead)
                return False
            case WaitOnPermit(seconds):
                self._hold(flight, seconds)
                return True
            case Until():
                self._watchers.append(_Watcher(flight, step, self._now() + step.seconds))
                self._look_at_watchers()
                return True
            case Together(effects):
                self._request_all(flight, effects)
                return bool(effects)
            case Consult(calls):
                self.consulting = flight
                self._request_all(flight, calls)
                return True
            case BindThrough(node, call):
                self._bind_through(call, node, flight)
                return True
        number = next(self._ids)
        assert isinstance(step, Operation)  # noqa: S101
        self.outbox.append(Request(number, step))
        self._flights[number] = flight
        return True

    def _bind_through(self, effect: Operation, node: str, flight: Flight) -> None:
        flight.node = node
        flight.bind_asked = self._now() if flight.measured else None
        self._flights[self.ask(effect)] = flight

    def _request_all(self, flight: Flight, effects: Sequence[Any]) -> None:
        group = _Group(flight, [None] * len(effects))
        for place, effect in enumerate(effects):
            self._request(effect, (group, place))

    def _request(self, effect: Any, waiter: tuple[_Group, int]) -> None:
        if isinstance(effect, Evict) and self._gives_way(effect.uid):
            self._joined(*waiter, Answered(IN_MEMORY))
            return
        number = next(self._ids)
        self._flights[number] = waiter
        self.outbox.append(Request(number, effect))

    def answered(self, number: int, outcome: Outcome) -> None:
        flight = self._flights.pop(number, None)
        if isinstance(flight, Flight):
            outcome = self._in_truth(flight, outcome)
            if flight.bind_asked is not None:
                seconds, flight.bind_asked = self._now() - flight.bind_asked, None
                name = flight.entry.pod.spec.scheduler_name
                self.observer.bind_answered(name, seconds, bound=isinstance(outcome, Succeeded))
            self.resume(flight, outcome)
        elif flight is not None:
            self._joined(*flight, outcome)

    def _joined(self, group: _Group, place: int, outcome: Outcome) -> None:
        group.outcomes[place] = outcome
        if all(other is not None for other in group.outcomes):
            if group.flight is self.consulting:
                self.consulting = None
            self.resume(group.flight, Answered(group.outcomes))

    def _in_truth(self, flight: Flight, outcome: Outcome) -> Outcome:
        """The outcome in the light of the watch, which outranks an answer that the bind came to nothing."""
        pod = flight.entry.pod
        if not flight.node or isinstance(outcome, Succeeded) or self._queue.find(pod) is flight.entry:
            return outcome
        if self._cluster.node_of(pod) == flight.node and not self._cluster.is_assumed(pod):
            return Succeeded()
        return Gone("no longer to be scheduled here")

    # Pods that are on no node yet need not be deleted to make room, only to give way.

    def _let_give_way(self, flight: Flight, instead: Callable[[], Fate] | None) -> None:
        uid = flight.entry.pod.metadata.uid
        if instead is None:
            self._yielding.pop(uid, None)
        else:
            self._yielding[uid] = (flight, instead)

    def _gives_way(self, uid: str) -> bool:
        """Whether the pod could be made to give up its node."""
        if uid in self._waiting:
            self.permitted(uid, Status.error("waiting on permit for pod: preempted"))
            return True
        if uid not in self._yielding:
            return False
        flight, instead = self._yielding.pop(uid)
        pod = flight.entry.pod
        node = self._cluster.node_of(pod)
        self._watchers = [watcher for watcher in self._watchers if watcher.flight is not flight]
        # What was asked for goes on, but nobody waits for the answer any more.
        self._flights = {number: each for number, each in self._flights.items() if _of(each) is not flight}
        flight.steps.close()
        self._land(flight.entry, instead())
        if node is not None:
            self._released(pod, node)
        return True

    # Pods that wait for a permission, and cycles that wait for the cluster.

    def _hold(self, flight: Flight, seconds: Mapping[str, float]) -> None:
        pod = flight.entry.pod
        until = {plugin: self._now() + wait for plugin, wait in seconds.items()}
        node = self._cluster.node_of(pod) or ""
        self._waiting[pod.metadata.uid] = (WaitingPod(pod, node, self._now(), until), flight)

    def waiting_pods(self) -> Mapping[str, str]:
        return {uid: waiting.node for uid, (waiting, _) in self._waiting.items()}

    def allow(self, uid: str, plugin: str) -> None:
        held = self._waiting.get(uid)
        if held is not None and held[0].allow(plugin):
            self.permitted(uid, None)

    def reject(self, uid: str, plugin: str, message: str) -> None:
        if uid in self._waiting:
            self.permitted(uid, Status(Code.UNSCHEDULABLE, (message,), plugin))

    def permitted(self, uid: str, refusal: Status | None) -> None:
        waiting, flight = self._waiting.pop(uid)
        code = Code.SUCCESS if refusal is None else refusal.code
        self.observer.permit_waited(self._now() - waiting.since, code)
        self.resume(flight, Succeeded() if refusal is None else Answered(refusal))

    def _reject_expired(self) -> None:
        for uid, (waiting, _) in list(self._waiting.items()):
            if uid in self._waiting and (refusal := waiting.expired(self._now())) is not None:
                self.permitted(uid, refusal)

    def _look_at_watchers(self) -> None:
        for watcher in list(self._watchers):
            try:
                outcome = watcher.until.check()
            except PLUGIN_ERRORS as error:  # whatever a plugin does, only this attempt fails
                outcome = Failed(repr(error))
            if outcome is None and watcher.deadline <= self._now():
                outcome = Failed(watcher.until.timeout)
            if outcome is not None and watcher in self._watchers:
                self._watchers.remove(watcher)
                self.resume(watcher.flight, outcome)


def _of(waiter: Flight | tuple[_Group, int]) -> Flight:
    return waiter if isinstance(waiter, Flight) else waiter[0].flight
