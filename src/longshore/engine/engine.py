"""The engine: it keeps its state and the queue in step with the cluster, and runs the scheduling cycles.

State changes only in `receive`, `advance` and `finish`, and the caller passes the time to each of them.
Effects collect in an outbox until the driver fetches them with `advance`.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import msgspec
import structlog

from longshore.api import Change, Node, Pod
from longshore.api.meta import ApiObject, kind_of
from longshore.cluster import ClusterState
from longshore.config import Configuration, LongshoreSettings, default_configuration
from longshore.engine.answers.observer import Observer, Unobserved
from longshore.engine.answers.records import Records
from longshore.engine.cluster_changes import ClusterChanges
from longshore.engine.cycle.reporting import report_failed, warning
from longshore.engine.cycle.scheduling_cycle import Cycles, Ending, Fate
from longshore.engine.cycle.waiting import WaitingPods
from longshore.engine.cycle.webhooks import Consultation, Webhooks
from longshore.engine.decision.chooser import Chooser, NextStart
from longshore.engine.decision.shapes import shape_key
from longshore.engine.events import Done, Event, Measurements
from longshore.engine.handle import EngineHandle
from longshore.engine.plugin_failure import PLUGIN_ERRORS, PluginFailure
from longshore.engine.profiles import Profiles, make_profile
from longshore.engine.queue.cluster_events import other_event
from longshore.engine.queue.scheduling_queue import Place, QueueEntry, SchedulingQueue
from longshore.engine.request import Instruction
from longshore.engine.runner import Runner
from longshore.framework import Handle, Status
from longshore.framework.controllers import Controller, Errand
from longshore.framework.effects import Tell
from longshore.framework.handle import PodListener
from longshore.framework.profile import Profile, TieBreak
from longshore.framework.reads import Reads, kept_of
from longshore.plugins import DEFAULT_PLUGINS, Factory

log = structlog.get_logger()

DEFAULT_SCHEDULER_NAME = "longshore"

ControllerFactory = Callable[["Engine"], Controller]


class Engine:
    """A scheduler without I/O: pass it events, perform what `advance` returns, and report the outcomes.

    The same events at the same times give the same decisions. Without a configuration it has the default
    profile, named `scheduler_name`. `tie_break` chooses among equally good nodes: "random" spreads pods by a
    hash of `seed` and pod; "first" takes the first node by name; "heap" does what kube-scheduler 1.36 does.
    `plugins` are registered in addition to the default ones. `epoch` is the number of seconds to add to the
    engine's time to get the Unix time. `stopwatch` is a clock for work with a time budget; without it, such
    work has no limit.
    """

    def __init__(
        self,
        configuration: Configuration | None = None,
        *,
        scheduler_name: str = DEFAULT_SCHEDULER_NAME,
        tie_break: TieBreak = "random",
        seed: int = 0,
        plugins: Mapping[str, Factory] | None = None,
        controllers: Iterable[ControllerFactory] = (),
        epoch: float = 0.0,
        stopwatch: Callable[[], float] | None = None,
    ) -> None:
        if configuration is None:
            configuration = msgspec.structs.replace(
                default_configuration(scheduler_name),
                longshore=LongshoreSettings(tie_break=tie_break, seed=seed),
            )
        self._cluster = ClusterState()
        # Each with the name of its plugin.
        self._pod_listeners: list[tuple[PodListener, str]] = []
        self._controllers: list[Controller] = []
        self._now = 0.0
        self.epoch = epoch
        self.stopwatch = stopwatch or (lambda: self._now)
        # The latest decisions.
        self.records = Records(self._time)
        registry = {**DEFAULT_PLUGINS, **(plugins or {})}
        self._runner = Runner(self._time)
        self._waiting = WaitingPods(self._runner, self._cluster, self._time)
        self._consultation = Consultation()
        # Events that arrive while extenders are asked about a decision. They are received afterwards.
        self._held_back: deque[Change[Any] | Measurements] = deque()
        self._handles: dict[str, EngineHandle] = {}
        self._profiles: dict[str, Profile] = {}
        self._calls_webhooks = bool(configuration.webhooks)
        next_start = NextStart()
        extended = any(each.filter_verb or each.prioritize_verb for each in configuration.webhooks)
        for settings in configuration.profiles:
            handle = EngineHandle(self)
            profile = make_profile(configuration, settings, registry, handle)
            handle.chooser = Chooser(profile, self._cluster, next_start, extended=extended)
            self._handles[profile.scheduler_name] = handle
            self._profiles[profile.scheduler_name] = profile
        self._queue = SchedulingQueue(
            Profiles(self._profiles, self._tell_failure),
            initial_backoff=float(configuration.pod_initial_backoff_seconds),
            max_backoff=float(configuration.pod_max_backoff_seconds),
        )
        self._changes = ClusterChanges(
            self._cluster,
            self._queue,
            self._waiting,
            now=self._time,
            tell=self.tell,
            is_ours=self._is_ours,
        )
        self._cycles = {
            name: self._make_cycles(handle.chooser, configuration) for name, handle in self._handles.items()
        }
        for make in controllers:
            self.add_controller(make(self))
        self._kept = kept_of(self.reads)
        self._observer: Observer = Unobserved()

    def _make_cycles(self, chooser: Chooser, configuration: Configuration) -> Cycles:
        webhooks = None
        if configuration.webhooks:
            webhooks = Webhooks(configuration.webhooks, chooser, self._cluster, self._consultation)
        return Cycles(
            chooser,
            self._cluster,
            self._queue,
            self.records,
            self._runner,
            self._waiting,
            now=self._time,
            land=self._land,
            webhooks=webhooks,
        )

    def _time(self) -> float:
        return self._now

    @property
    def scheduler_name(self) -> str:
        """The name of the first profile."""
        return next(iter(self._profiles))

    @property
    def profiles(self) -> Mapping[str, Profile]:
        return self._profiles

    @property
    def cluster(self) -> ClusterState:
        """The cluster as the engine sees it. Callers only read it."""
        return self._cluster

    @property
    def queue(self) -> SchedulingQueue:
        """The pods that need a node. Callers only read it."""
        return self._queue

    @property
    def reads(self) -> Reads:
        """What plugins and controllers read of pods, and what has to be sent to HTTP extenders."""
        sent = [Reads(pod_annotations=("*",))] if self._calls_webhooks else []
        profiles = (profile.reads for profile in self._profiles.values())
        return Reads.of([*sent, *profiles, *(each.reads for each in self._controllers)])

    def kept(self, pod: Pod) -> Pod:
        """Return the pod as plugins see it: with those annotations and conditions that they read."""
        return self._kept.pod(pod)

    @property
    def now(self) -> float:
        return self._now

    @property
    def wall_time(self) -> float:
        """The Unix time, provided that the driver has set `epoch`."""
        return self._now + self.epoch

    def handle(self, scheduler_name: str) -> Handle:
        """Return what the plugins of the profile see of the engine."""
        return self._handles[scheduler_name]

    def chooser(self, scheduler_name: str) -> Chooser:
        """Return what decides for the profile, to ask it what it would do."""
        return self._handles[scheduler_name].chooser

    @property
    def binds_in_flight(self) -> int:
        return sum(cycles.binds_in_flight for cycles in self._cycles.values())

    def observe(self, observer: Observer) -> None:
        """Inform this observer from now on, and no other."""
        self._observer = self._waiting.observer = observer
        self._queue.observe = observer.queued
        for cycles in self._cycles.values():
            cycles.observer = observer

    @property
    def observer(self) -> Observer:
        return self._observer

    @property
    def deadline(self) -> float | None:
        """When `advance` is due if no event comes before: at once if in the past, never if None."""
        if self._runner.outbox or (self._queue.has_active and self._may_decide):
            return self._now
        times = [self._runner.deadline, self._waiting.deadline, self._queue.next_due]
        times += [controller.deadline for controller in self._controllers]
        return min((time for time in times if time is not None), default=None)

    @property
    def _may_decide(self) -> bool:
        """Whether no extender is being asked, and all controllers know what they need."""
        return not self._consultation.is_open and not any(each.unready for each in self._controllers)

    @property
    def settled(self) -> bool:
        """Whether nothing is in progress: without an event, only unschedulable pods may be tried again."""
        counts = self._queue.counts()
        busy = self._runner or self._waiting or any(c.deadline is not None for c in self._controllers)
        return not busy and not counts["active"] and not counts["backoff"]

    def receive(self, event: Event, *, now: float) -> None:
        """Take in an event. It may come late, twice, or be about an unknown object."""
        self._now = now
        match event:
            case Done(number, outcome):
                self._runner.answered(number, outcome)
                while self._held_back and not self._consultation.is_open:
                    self.receive(self._held_back.popleft(), now=now)
                return
            case Change() | Measurements() if self._consultation.is_open:
                self._held_back.append(event)
                return
            case Change(None | Pod() as old, None | Pod() as new):
                old, new = old and self._kept.pod(old), new and self._kept.pod(new)
                event = Change(old, new)
                self._changes.pod_changed(old, new)
                if self._pod_listeners:
                    self._tell_listeners(old, new)
            case Change(None | Node() as old, None | Node() as new):
                self._changes.node_changed(old, new)
            case Measurements():
                self._changes.measured(event, wall_time=self.wall_time)
                return
            case Change(old, new) if (changed := new or old) is not None:
                kind = kind_of(changed)
                self._cluster.put(kind, old, new)
                if (meaning := other_event(kind, event)) is not None:
                    self._queue.event(meaning, now=now)
        self._runner.look_again()
        for controller in self._controllers:
            controller.changed(event, now=now)

    def advance(self, *, now: float, max_cycles: int | None = None) -> list[Instruction]:
        """Decide about the next pods, at most `max_cycles`, and return what the driver has to do."""
        self._now = now
        self._queue.flush(now=now)
        self._waiting.expire()
        self._runner.expire()
        for controller in self._controllers:
            if controller.deadline is not None and controller.deadline <= now:
                for errand in controller.advance(now=now):
                    self._start(controller, errand)
        cycles = 0
        while (max_cycles is None or cycles < max_cycles) and self._may_decide:
            if (entry := self._queue.pop()) is None:
                break
            cycles += 1
            self._begin(entry)
        return self._runner.take_outbox()

    def finish(self, *, now: float) -> list[Instruction]:
        """Return what controllers want to have done before the driver stops."""
        self._now = now
        for controller in self._controllers:
            for errand in controller.finish(now=now):
                self._start(controller, errand)
        return self._runner.take_outbox()

    def _start(self, controller: Controller, errand: Errand) -> None:
        self._runner.start(errand, lambda _: None, partial(_errand_failed, controller))

    def _begin(self, entry: QueueEntry) -> None:
        pod = entry.pod
        if self._cluster.is_assumed(pod):
            # It kept its room after a bind that failed, in case only the answer was lost.
            self._changes.forget(pod)
        name = pod.spec.scheduler_name
        if entry.shape_key is None:
            entry.shape_key = shape_key(pod)
        info = self._handles[name].chooser.info(pod, entry.shape_key)
        rests = self._observer.attempt_begins(entry)
        entry.measured = rests is not None
        self._cycles[name].start(entry, info, entry.shape_key)
        if rests is not None:
            rests()

    def _is_ours(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self._profiles and pod.metadata.deletion_timestamp is None

    def _land(self, entry: QueueEntry, fate: Fate) -> None:
        self._observer.attempt_ended(entry, fate.result, now=self._now)
        match fate.ending:
            case Ending.BOUND | Ending.DROPPED:
                self._queue.settle(entry)
            case Ending.RETRIED:
                self._queue.fail(entry, now=self._now)
            case Ending.UNSCHEDULABLE:
                self._queue.fail(entry, now=self._now, rejectors=fate.rejectors, pending=fate.pending)
            case Ending.ACTIVATED:
                self._queue.fail(entry, now=self._now)
                self._queue.activate([entry.pod], now=self._now)
        if fate.released:
            self._changes.released(entry.pod, fate.released)

    def _tell_listeners(self, old: Pod | None, new: Pod | None) -> None:
        for listener, plugin in self._pod_listeners:
            try:
                listener(old, new)
            except PLUGIN_ERRORS as error:  # a plugin's mistake must not stop the scheduler
                if new is not None and self._queue.find(new) is not None:
                    failure = PluginFailure(plugin, "PodChange", repr(error))
                    self.tell(warning(new, str(failure)))

    def _tell_failure(self, pod: Pod, status: Status) -> None:
        """Report that a plugin failed when the queue asked it, outside of any attempt."""
        report_failed(self.tell, pod, status)

    # What plugins may do through their handle.

    def waiting_pods(self) -> Mapping[str, str]:
        return self._waiting.nodes()

    def allow(self, uid: str, plugin: str) -> None:
        self._waiting.allow(uid, plugin)

    def reject(self, uid: str, plugin: str, message: str) -> None:
        self._waiting.reject(uid, plugin, message)

    def tell(self, effect: Tell) -> None:
        self._runner.tell(effect)

    def activate(self, pods: Any) -> None:
        self._queue.activate(pods, now=self._now)

    def hold(self, pods: Iterable[Pod]) -> None:
        pods = list(pods)
        self._queue.hold(pods)
        for pod in pods:
            # A failed bind may have left the pod its room. A pod that is not in the queue anymore is bound,
            # even if the watch has not shown it yet.
            if self._queue.find(pod) is not None and not self.in_flight(pod):
                self._changes.forget(pod)

    def take_back_nomination(self, pod: Pod) -> None:
        self._changes.take_back_nomination(pod)

    def in_flight(self, pod: Pod) -> bool:
        entry = self._queue.find(pod)
        return entry is not None and entry.place is Place.IN_FLIGHT

    def on_pod_change(self, listener: PodListener, plugin: str) -> None:
        self._pod_listeners.append((listener, plugin))

    def add_controller(self, controller: Controller) -> None:
        self._controllers.append(controller)
        self._kept = kept_of(self.reads)

    @property
    def controllers(self) -> tuple[Controller, ...]:
        return tuple(self._controllers)

    @property
    def watches(self) -> tuple[type[ApiObject], ...]:
        """The kinds of objects that controllers need, besides those that the scheduler watches anyway."""
        kinds = (kind for each in self._controllers for kind in each.watches)
        return tuple(dict.fromkeys(kinds))


def _errand_failed(controller: Controller, error: BaseException) -> None:
    log.error("an errand of a controller failed", controller=type(controller).__name__, exc_info=error)
