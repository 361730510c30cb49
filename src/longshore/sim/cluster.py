"""The simulated cluster: objects in memory, in virtual time, with latencies and faults.

Latencies and faults are part of the scenario, and chance comes from a seed, so any run can be reproduced.
"""

import math
import random
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, TypeVar, assert_never

import msgspec

from longshore.api import Change, Pod
from longshore.api.meta import ApiObject, kind_of
from longshore.api.plan_request import PlanRequest
from longshore.api.pod_run import PodRun
from longshore.framework.effects import (
    Answered,
    Bind,
    CallPlanner,
    CallWebhook,
    Conflict,
    CreateObject,
    DeleteObject,
    Effect,
    Evict,
    Failed,
    GetObject,
    Operation,
    Outcome,
    PatchObject,
    Run,
    Succeeded,
    Tell,
)
from longshore.framework.seam import Cancel, ignore
from longshore.sim.agenda import Agenda
from longshore.sim.api_server import Changes, ServerEffect, SimulatedApiServer, Write
from longshore.sim.asynchronous import run

Planner = Callable[[PlanRequest], Mapping[str, str]]


class Faults(msgspec.Struct, frozen=True):
    """How often binds, or writes of objects, go wrong, as probabilities, until the time given."""

    # It does not land, and the answer says so.
    failed: float = 0.0
    # It does not land, and the answer says that someone else has decided, which is not true.
    conflict: float = 0.0
    # It lands, but the answer is lost: the object is read, and what it is like then is the answer.
    lost: float = 0.0
    # It lands, but the answer says that it has failed: the API server could not be asked either.
    unknown: float = 0.0
    until: float = math.inf


NO_FAULTS = Faults()
_OBJECT_WRITES = (CreateObject, PatchObject, DeleteObject)
# Stands for an answer that was lost, until the object has been read.
_LOST = Failed("injected fault: the answer was lost")
_E = TypeVar("_E", bound=ServerEffect)


class SimulatedCluster:
    """`Cluster` in memory.

    A bind lands after `bind_latency` seconds, other writes after `write_latency`. Outcomes come
    `answer_latency` after a write has landed, and watches report every change `watch_latency` after it
    happened, in order. `faults` strike binds, `write_faults` the other writes of objects. A bound pod is
    Running after `start_time`, and Succeeded `run_time` later; None means never. An evicted pod is gone after
    `stop_time`. The work of `async def` plugins takes as long as they sleep. `planners` answer under their
    address, after `plan_time`; an exception of theirs is a failure.

    `answer` is called when a write lands: an outcome that it returns is the answer, and the write changes
    nothing. It also answers in the place of webhooks.
    """

    def __init__(
        self,
        agenda: Agenda,
        *,
        bind_latency: float = 0.005,
        answer_latency: float = 0.0,
        watch_latency: float = 0.0,
        write_latency: float = 0.0,
        start_time: float | None = 1.0,
        run_time: float | None = None,
        stop_time: float = 1.0,
        faults: Faults = NO_FAULTS,
        write_faults: Faults = NO_FAULTS,
        planners: Mapping[str, Planner] | None = None,
        plan_time: float = 0.0,
        answer: Callable[[Effect], Outcome | None] | None = None,
        stamp: Callable[[], str | None] = lambda: None,
        seed: int = 0,
    ) -> None:
        self._agenda = agenda
        # What is written to it directly is not reported to watches.
        self.server = SimulatedApiServer(stamp)
        self.nodes = self.server.nodes
        self.pods = self.server.pods
        # Objects of the other kinds, by kind and key.
        self.others = self.server.others
        # All recorded events, in order.
        self.events = self.server.events
        # Where pods were bound: the newest bind of each `namespace/name`, also of pods that are gone.
        self.bindings: dict[str, str] = {}
        # These five may be changed at any time.
        self.faults = faults
        self.write_faults = write_faults
        self.planners = planners or {}
        self.answer = answer
        # Brings the objects that exist into the order in which a new watch reports them.
        self.list_order: Callable[[list[ApiObject]], None] | None = None
        self._bind_latency = bind_latency
        self._answer_latency = answer_latency
        self._watch_latency = watch_latency
        self._write_latency = write_latency
        self._start_time = start_time
        self._run_time = run_time
        self._stop_time = stop_time
        self._plan_time = plan_time
        self._random = random.Random(seed)
        self._watches: tuple[_Watch, ...] = ()
        self._operations: set[_Operation] = set()
        self._closed = False

    # What others do to the cluster.

    def put(self, item: ApiObject) -> None:
        """Create the object, or replace the one of this name. A pod that is bound stays bound."""
        self._changed(self.server.put(item))

    def delete(self, item: ApiObject) -> None:
        """Delete the object of this kind and name, if it exists."""
        change = self.server.delete(item)
        if change is not None:
            self._changed(change)

    @property
    def objects(self) -> list[ApiObject]:
        """All objects that exist."""
        others = (item for items in self.others.values() for item in items.values())
        return [*self.nodes.values(), *self.pods.values(), *others]

    # The protocol.

    def watch(
        self,
        kinds: Collection[type[ApiObject]],
        on_change: Callable[[Change[Any]], None],
        on_synced: Callable[[], None] = ignore,
    ) -> Cancel:
        if self._closed:
            return ignore
        watch = _Watch(frozenset(kinds), on_change)
        existing = self.objects
        if self.list_order is not None:
            self.list_order(existing)
        for item in existing:
            watch.tell(Change(None, item))
        on_synced()
        self._watches = (*self._watches, watch)
        return partial(self._unwatch, watch)

    def perform(self, operation: Operation, on_outcome: Callable[[Outcome], None]) -> Cancel:
        if self._closed:
            return ignore
        asked = _Operation(self._operations, on_outcome)
        match operation:
            case Bind():
                self._agenda.after(self._bind_latency, partial(self._land_for, asked, operation))
            case Run():
                self._run(operation, asked)
            case CallPlanner():
                self._call_planner(operation, asked)
            case CallWebhook():
                self._write(partial(self._call_webhook, operation, asked))
            case Evict() | PatchObject() | CreateObject() | DeleteObject() | GetObject():
                self._write(partial(self._land_for, asked, operation))
            case _:
                assert_never(operation)
        return asked.cancel

    def report(self, tell: Tell) -> None:
        if not self._closed:
            self._write(partial(self._land, tell))

    def close(self) -> None:
        self._closed = True
        self._watches = ()
        for asked in list(self._operations):
            asked.cancel()

    def _unwatch(self, watch: "_Watch") -> None:
        watch.cancelled = True
        self._watches = tuple(other for other in self._watches if other is not watch)

    def _changed(self, change: Change[Any]) -> None:
        for watch in self._watches:
            if self._watch_latency:
                self._agenda.after(self._watch_latency, partial(watch.tell, change))
            else:
                watch.tell(change)

    def _write(self, landing: Callable[[], object]) -> None:
        if self._write_latency:
            self._agenda.after(self._write_latency, landing)
        else:
            landing()

    def _land_for(self, asked: "_Operation", operation: Write | Evict | GetObject) -> None:
        outcome = self._land(operation)
        answer = partial(asked.answer, outcome)
        if outcome is _LOST and not isinstance(operation, Evict | GetObject):
            answer = partial(self._look, asked, operation)
        self._agenda.after(self._answer_latency, answer)

    def _look(self, asked: "_Operation", write: Write) -> None:
        if asked.is_under_way:
            asked.answer(self._perform(write, self.server.look))

    def _land(self, effect: ServerEffect) -> Outcome:
        if isinstance(effect, Evict):
            self._agenda.after(self._stop_time, partial(self._stop, effect))
        if self.answer is not None and (answer := self.answer(effect)) is not None:
            return answer
        faults = NO_FAULTS
        if isinstance(effect, Bind):
            faults = self.faults
        elif isinstance(effect, _OBJECT_WRITES):
            faults = self.write_faults
        chance = 1.0 if faults is NO_FAULTS or self._agenda.now >= faults.until else self._random.random()
        if chance < faults.failed:
            return Failed("injected fault: the API server was not reached")
        chance -= faults.failed
        if chance < faults.conflict:
            return Conflict("injected fault: someone else has decided")
        chance -= faults.conflict
        outcome = self._perform(effect, self.server.perform)
        if isinstance(outcome, Succeeded) and chance < faults.lost:
            return _LOST
        chance -= faults.lost
        if isinstance(outcome, Succeeded) and chance < faults.unknown:
            return Failed("injected fault: it is unknown whether the write has landed")
        return outcome

    def _perform(self, effect: _E, by: Callable[[_E], tuple[Outcome, Changes]]) -> Outcome:
        outcome, changes = by(effect)
        for change in changes:
            if isinstance(effect, Bind):
                self.bindings[change.object.key] = effect.node
                self._start(change.object)
            self._changed(change)
        return outcome

    def _run(self, operation: Run, asked: "_Operation") -> None:
        seconds = 0.0
        try:
            value, seconds = run(operation.awaitable)
            outcome: Outcome = Answered(value)
        except Exception as error:  # a plugin's failure is its pod's alone
            outcome = Failed(repr(error))
        self._agenda.after(seconds, partial(asked.answer, outcome))

    def _call_webhook(self, call: CallWebhook, asked: "_Operation") -> None:
        outcome = None if self.answer is None else self.answer(call)
        if outcome is None:
            outcome = Failed("a simulated cluster has no webhooks: give it an `answer`")
        self._agenda.after(self._answer_latency, partial(asked.answer, outcome))

    def _call_planner(self, call: CallPlanner, asked: "_Operation") -> None:
        planner = self.planners.get(call.address)
        outcome: Outcome = Failed(f"planner {call.address} is not there")
        if planner is not None and self._plan_time > call.seconds:
            outcome = Failed(f"planner {call.address} did not answer within {call.seconds:g} s")
        elif planner is not None:
            try:
                outcome = Answered(planner(call.request))
            except Exception as error:  # as above
                outcome = Failed(f"planner {call.address}: {error}")
        self._agenda.after(min(self._plan_time, call.seconds), partial(asked.answer, outcome))

    # What kubelets do.

    def _start(self, pod: Pod) -> None:
        if self._start_time is None:
            return
        self._agenda.after(self._start_time, partial(self._set_phase, pod, "Running"))
        if self._run_time is not None:
            self._agenda.after(self._start_time + self._run_time, partial(self._set_phase, pod, "Succeeded"))

    def _set_phase(self, pod: Pod, phase: str) -> None:
        for change in self.server.set_phase(pod.key, pod.metadata.uid, phase):
            self._changed(change)

    def _stop(self, evicted: Evict) -> None:
        pod = self.pods.get(f"{evicted.namespace}/{evicted.name}")
        if pod is not None and pod.metadata.uid == evicted.uid:
            self.delete(pod)


class _Watch:
    def __init__(self, kinds: frozenset[type[ApiObject]], on_change: Callable[[Change[Any]], None]) -> None:
        self.cancelled = False
        self._kinds = kinds
        self._on_change = on_change

    def tell(self, change: Change[Any]) -> None:
        kind = kind_of(change.object)
        if kind in self._kinds:
            self._tell(change)
        # Plugins that learn from how pods run watch them as PodRun. Here these have a phase only.
        if kind is Pod and PodRun in self._kinds:
            old, new = (None if pod is None else PodRun.of(pod) for pod in (change.old, change.new))
            self._tell(Change(old, new))

    def _tell(self, change: Change[Any]) -> None:
        old, new = change.old, change.new
        if old is not None and new is not None and old.metadata.uid != new.metadata.uid:
            self._tell(Change(old, None))
            self._tell(Change(None, new))
        elif not self.cancelled:
            self._on_change(change)


class _Operation:
    """An operation that has no outcome yet."""

    def __init__(self, under_way: "set[_Operation]", on_outcome: Callable[[Outcome], None]) -> None:
        self._under_way = under_way
        self._on_outcome = on_outcome
        under_way.add(self)

    @property
    def is_under_way(self) -> bool:
        return self in self._under_way

    def answer(self, outcome: Outcome) -> None:
        if self.is_under_way:
            self._under_way.remove(self)
            self._on_outcome(outcome)

    def cancel(self) -> None:
        self._under_way.discard(self)
