"""The driver of a simulated cluster: one clock, one heap of things to come, and the engine in the middle.

Virtual time jumps from one happening to the next. Latencies and faults are part of the scenario and come from
a seed, so every run, and every failing one, can be had again.
"""

import heapq
import math
import random
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import count

import msgspec

from longshore.agents.annotations import read_load
from longshore.api import Change, Node, Pod
from longshore.api.meta import ApiObject
from longshore.api.plan_request import PlanRequest
from longshore.api.timestamps import format_timestamp
from longshore.engine import (
    Answered,
    Bind,
    Conflict,
    CreateObject,
    DeleteObject,
    Done,
    Effect,
    Engine,
    Event,
    Evict,
    Failed,
    Instruction,
    Measurements,
    Notice,
    Outcome,
    PatchObject,
    Run,
    Succeeded,
)
from longshore.framework.effects import CallPlanner
from longshore.sim.asynchronous import run
from longshore.sim.api_server import SimulatedCluster
from longshore.sim.pod_runs import as_watched

_replace = msgspec.structs.replace

Planner = Callable[[PlanRequest], Mapping[str, str]]

# A change as it was seen in a real cluster, and when.
Recorded = tuple[float, Change[Node] | Change[Pod]]


class Faults(msgspec.Struct, frozen=True):
    """How often binds, or writes of objects, go wrong, as probabilities, until the time given."""

    # It does not land, and the answer says so.
    failed: float = 0.0
    # It does not land, and the answer says that someone else has decided (though nobody has).
    conflict: float = 0.0
    # It lands, but the answer says that it has failed.
    lost: float = 0.0
    until: float = math.inf


_NO_FAULTS = Faults()
_OBJECT_WRITES = (CreateObject, PatchObject, DeleteObject)


class Simulation:
    """Runs an engine against a simulated cluster.

    A bind lands `bind_latency` seconds after the engine asked for it; its answer comes `answer_latency`
    later, and every change is told by the watch `watch_latency` after it happened, in order. Other writes
    land after `write_latency`, and those of objects have faults of their own. A bound pod is Running after
    `start_time`, and Succeeded `run_time` later; None means never. An evicted pod is gone after `stop_time`.
    What is to be done for `async def` plugins takes as long as they sleep. `planners` are what answers under
    an address, after `plan_time`; what they raise is a failure.

    `on_effect` is called with every effect that an engine asks for. `answer` is called when a write lands: an
    outcome that it gives is the answer, and the write changes nothing.
    """

    def __init__(
        self,
        engine: Engine | None = None,
        *,
        bind_latency: float = 0.005,
        answer_latency: float = 0.0,
        watch_latency: float = 0.0,
        write_latency: float = 0.0,
        start_time: float | None = 1.0,
        run_time: float | None = None,
        stop_time: float = 1.0,
        faults: Faults = _NO_FAULTS,
        write_faults: Faults = _NO_FAULTS,
        planners: Mapping[str, Planner] | None = None,
        plan_time: float = 0.0,
        on_effect: Callable[[Effect], None] | None = None,
        answer: Callable[[Effect], Outcome | None] | None = None,
        seed: int = 0,
    ) -> None:
        self.engine = Engine() if engine is None else engine
        self.cluster = SimulatedCluster(self._wall_clock)
        self.now = 0.0
        # Where the engine has bound pods: the newest bind of each `namespace/name`, also of pods gone since.
        self.bindings: dict[str, str] = {}
        self._bind_latency = bind_latency
        self._answer_latency = answer_latency
        self._watch_latency = watch_latency
        self._write_latency = write_latency
        self._start_time = start_time
        self._run_time = run_time
        self._stop_time = stop_time
        self._faults = faults
        # These three may be changed at any time.
        self.write_faults = write_faults
        self.planners = planners or {}
        self.answer = answer
        self._on_effect = on_effect
        self._plan_time = plan_time
        self._random = random.Random(seed)
        # Whether the scenario itself says what was measured.
        self._measures = False
        # The engine that knows what was there when it began.
        self._begun: Engine | None = None
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()

    @classmethod
    def replay(cls, events: Iterable[Recorded], *, engine: Engine | None = None) -> dict[str, str]:
        """Let the engine decide again what was recorded in a real cluster; gives `namespace/name` → node.

        All recorded changes happen at their times, save one thing: where a pod of the engine's scheduler
        goes. Such a pod appears as it was recorded first; its later versions are on the node that the engine
        chooses here, so the mere consequences of a bind may be left in or out. Changes of one time are all
        known before the engine decides: a recorder notes for each change the time of the next `advance`.
        """
        simulation = cls(engine, bind_latency=0.0, start_time=None)
        for time, change in events:
            simulation._schedule(time, partial(simulation._happen_again, change))
        simulation.run()
        return simulation.bindings

    # What happens to the cluster from outside, now or at a time to come.

    def create(self, *objects: ApiObject, at: float | None = None) -> None:
        """The objects come into being; one of the same name is replaced."""
        for obj in objects:
            self._schedule(at, partial(self._put, obj))

    update = create

    def delete(self, *objects: ApiObject, at: float | None = None) -> None:
        """The objects go; it is the name that counts."""
        for obj in objects:
            self._schedule(at, partial(self._delete, obj))

    def measure(self, values: Mapping[str, Mapping[str, float]], *, at: float | None = None) -> None:
        """These values are measured then, by measure and node, and told at once.

        A scenario that does so before it runs is the provider, and what nodes say in annotations is not read.
        Without any values only the time is told: what was measured grows old by it.
        """
        self._measures = self._measures or bool(values)
        self._schedule(at, partial(self._measured, values))

    def restart(self, engine: Engine, *, order: Callable[[list[ApiObject]], None] | None = None) -> None:
        """Another engine takes over. It is told what there is, in any `order` that a list can be brought in.

        What the old one has asked for is still done; nobody hears how that ended.
        """
        self.engine = engine
        cluster = self.cluster
        there: list[ApiObject] = [*cluster.nodes.values(), *cluster.pods.values()]
        there += [thing for kind in cluster.others.values() for thing in kind.values()]
        if order is not None:
            order(there)
        for thing in there:
            self._tell(engine, Change(None, thing))

    def run(self, *, until: float = math.inf) -> None:
        """Let time pass, until the time given or until nothing more will happen by itself."""
        while (due := self._next_due()) is not None and due <= until:
            if until == math.inf and not self._agenda and self.engine.settled:
                break
            self.now = max(self.now, due)
            # All that happens at one time is known before the engine decides.
            while self._agenda and self._agenda[0][0] <= self.now:
                heapq.heappop(self._agenda)[2]()
            if self._begun is not self.engine:
                self._begin()
            for request in self.engine.advance(now=self.now):
                self._perform(request)
        if until < math.inf:
            self.now = max(self.now, until)

    def _begin(self) -> None:
        """What nodes say of their load is read for agents; a pod that is known later counts on top of it."""
        self._begun = self.engine
        profiles = self.engine.profiles.values()
        plugins = [slot.plugin for each in profiles for slot in (*each.filters, *each.scores)]
        # What tells an agent from other plugins is the name that it has behind a stock kube-scheduler.
        if not self._measures and any(hasattr(plugin, "verb") for plugin in plugins):
            read_load(self.engine.cluster)

    def _wall_clock(self) -> str:
        """In whole seconds, as the API server stamps objects."""
        return format_timestamp(self.now + self.engine.epoch)

    def _next_due(self) -> float | None:
        times = [self.engine.deadline, self._agenda[0][0] if self._agenda else None]
        return min((time for time in times if time is not None), default=None)

    def _schedule(self, at: float | None, action: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (self.now if at is None else at, next(self._order), action))

    def _tell(self, engine: Engine, event: Event) -> None:
        """Unless another engine has taken over since."""
        if engine is self.engine:
            for each in as_watched(engine, event):
                engine.receive(each, now=self.now)

    def _tell_after(self, seconds: float, engine: Engine, event: Event) -> None:
        if seconds:
            self._schedule(self.now + seconds, partial(self._tell, engine, event))
        else:
            self._tell(engine, event)

    def _watch(self, event: Event) -> None:
        self._tell_after(self._watch_latency, self.engine, event)

    def _measured(self, values: Mapping[str, Mapping[str, float]]) -> None:
        time = self.now + self.engine.epoch
        timed = {name: {node: (value, time) for node, value in of.items()} for name, of in values.items()}
        self._tell(self.engine, Measurements(timed))

    def _put(self, obj: ApiObject) -> None:
        self._watch(self.cluster.put(obj))

    def _delete(self, obj: ApiObject) -> None:
        change = self.cluster.delete(obj)
        if change is not None:
            self._watch(change)

    def _happen_again(self, change: Change[Node] | Change[Pod]) -> None:
        new = change.new
        if new is None:
            self._delete(change.object)
            return
        if isinstance(new, Pod) and new.spec.scheduler_name == self.engine.scheduler_name:
            known = self.cluster.pods.get(new.key)
            if known is not None and known.metadata.uid == new.metadata.uid:
                new = _replace(new, spec=_replace(new.spec, node_name=known.spec.node_name))
        self._put(new)

    def _perform(self, request: Instruction) -> None:
        engine = self.engine
        if self._on_effect is not None:
            self._on_effect(request.effect)
        if isinstance(request, Notice):
            self._begin_write(engine, request)
            return
        effect = request.effect
        if isinstance(effect, Bind):
            landing = partial(self._bind, engine, request.id, effect)
            self._schedule(self.now + self._bind_latency, landing)
        elif isinstance(effect, Run):
            self._run(engine, request.id, effect)
        elif isinstance(effect, CallPlanner):
            self._ask_planner(engine, request.id, effect)
        else:
            self._begin_write(engine, request)

    def _begin_write(self, engine: Engine, request: Instruction) -> None:
        if self._write_latency:
            landing = partial(self._write, engine, request)
            self._schedule(self.now + self._write_latency, landing)
        else:
            self._write(engine, request)

    def _run(self, engine: Engine, number: int, effect: Run) -> None:
        seconds = 0.0
        try:
            value, seconds = run(effect.awaitable)
            outcome: Outcome = Answered(value)
        except Exception as error:  # a plugin's failure is its pod's alone
            outcome = Failed(repr(error))
        self._schedule(self.now + seconds, partial(self._tell, engine, Done(number, outcome)))

    def _ask_planner(self, engine: Engine, number: int, call: CallPlanner) -> None:
        planner = self.planners.get(call.address)
        outcome: Outcome = Failed(f"planner {call.address} is not there")
        if planner is not None and self._plan_time > call.seconds:
            outcome = Failed(f"planner {call.address} did not answer within {call.seconds:g} s")
        elif planner is not None:
            try:
                outcome = Answered(planner(call.request))
            except Exception as error:  # as above
                outcome = Failed(f"planner {call.address}: {error}")
        at = self.now + min(self._plan_time, call.seconds)
        self._schedule(at, partial(self._tell, engine, Done(number, outcome)))

    def _stop(self, evicted: Evict) -> None:
        pod = self.cluster.pods.get(f"{evicted.namespace}/{evicted.name}")
        if pod is not None and pod.metadata.uid == evicted.uid:
            self._delete(pod)

    def _write(self, engine: Engine, request: Instruction) -> None:
        effect = request.effect
        if isinstance(effect, Evict):
            self._schedule(self.now + self._stop_time, partial(self._stop, effect))
        faults = self.write_faults if isinstance(effect, _OBJECT_WRITES) else _NO_FAULTS
        outcome = self._land(effect, faults)
        if not isinstance(request, Notice):
            self._tell_after(self._answer_latency, engine, Done(request.id, outcome))

    def _bind(self, engine: Engine, number: int, bind: Bind) -> None:
        outcome = self._land(bind, self._faults)
        self._schedule(self.now + self._answer_latency, partial(self._tell, engine, Done(number, outcome)))

    def _land(self, effect: Effect, faults: Faults) -> Outcome:
        if self.answer is not None and (answer := self.answer(effect)) is not None:
            return answer
        luck = 1.0 if faults is _NO_FAULTS or self.now >= faults.until else self._random.random()
        if luck < faults.failed:
            return Failed("injected fault: the API server was not reached")
        luck -= faults.failed
        if luck < faults.conflict:
            return Conflict("injected fault: someone else has decided")
        luck -= faults.conflict
        outcome, changes = self.cluster.perform(effect)
        for change in changes:
            if isinstance(effect, Bind):
                self.bindings[change.object.key] = effect.node
                self._start(change.object)
            self._watch(change)
        if isinstance(outcome, Succeeded) and luck < faults.lost:
            return Failed("injected fault: the answer was lost")
        return outcome

    def _start(self, pod: Pod) -> None:
        """What the kubelet makes of a bound pod."""
        if self._start_time is None:
            return
        started = self.now + self._start_time
        self._schedule(started, partial(self._report, pod, "Running"))
        if self._run_time is not None:
            self._schedule(started + self._run_time, partial(self._report, pod, "Succeeded"))

    def _report(self, pod: Pod, phase: str) -> None:
        for change in self.cluster.set_phase(pod.key, pod.metadata.uid, phase):
            self._watch(change)
