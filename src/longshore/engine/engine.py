"""The engine itself: it keeps state and queue in step with the cluster and runs the cycles.

State changes only while an event is received or a cycle runs; both are told the time. Effects gather in an
outbox until the driver fetches them with `advance`.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from longshore.api import Change, Node, Pod
from longshore.api.meta import ApiObject, kind_of
from longshore.cluster import ClusterState
from longshore.config import Configuration, LongshoreSettings, default_configuration
from longshore.engine.answers.observer import Observer, Unobserved
from longshore.engine.answers.records import Records
from longshore.engine.cluster_changes import Intake
from longshore.engine.cycle.errands import Errands
from longshore.engine.cycle.reporting import report_failed, warning
from longshore.engine.cycle.scheduling_cycle import Cycles, Ending, Fate
from longshore.engine.cycle.underway import Flight, Underway
from longshore.engine.cycle.webhooks import Webhooks
from longshore.engine.decision.chooser import Chooser, Turn
from longshore.engine.decision.shapes import shape_key
from longshore.engine.events import Done, Event, Measurements
from longshore.engine.handle import EngineHandle
from longshore.engine.plugin_failure import PLUGIN_ERRORS, PluginFailure
from longshore.engine.profiles import Profiles, make_profile
from longshore.engine.queue.cluster_events import other_event
from longshore.engine.queue.scheduling_queue import Entry, Place, Queue
from longshore.engine.request import Instruction
from longshore.framework import Handle, Status
from longshore.framework.controllers import Controller
from longshore.framework.effects import Tell
from longshore.framework.handle import PodListener
from longshore.framework.profile import Profile, TieBreak
from longshore.framework.reads import Reads, kept_of
from longshore.plugins import DEFAULT_PLUGINS, Factory

DEFAULT_SCHEDULER_NAME = "longshore"


ControllerFactory = Callable[["Engine"], Controller]


class Engine:
    """A scheduler without hands: feed it events, perform what `advance` asks for, and tell how that ended.

    Equal events at equal times give equal decisions. Made from a configuration, or else with the default
    profile under `scheduler_name`. `tie_break` chooses among equally good nodes: "random" spreads pods by a
    hash of `seed` and pod; "first" takes the first by name; "heap" does as kube-scheduler 1.36.
    `plugins` are registered beside the default ones. `epoch` is what to add to the engine's time to get the
    time of the wall, in seconds since 1970; `stopwatch` measures what has a budget of time, if not for ever.
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
        # With the names of their plugins.
        self._pod_listeners: list[tuple[PodListener, str]] = []
        self._controllers: list[Controller] = []
        self._now = 0.0
        self.epoch = epoch
        self.stopwatch = stopwatch or (lambda: self._now)
        # What was decided lately, to read from.
        self.records = Records(lambda: self._now)
        registry = {**DEFAULT_PLUGINS, **(plugins or {})}
        self._handles: dict[str, EngineHandle] = {}
        self._profiles: dict[str, Profile] = {}
        self._cycles: dict[str, Cycles] = {}
        self._calls_webhooks = bool(configuration.webhooks)
        turn = Turn()
        extended = any(each.filter_verb or each.prioritize_verb for each in configuration.webhooks)
        for settings in configuration.profiles:
            handle = EngineHandle(self)
            profile = make_profile(configuration, settings, registry, handle)
            chooser = handle.chooser = Chooser(profile, self._cluster, turn, extended=extended)
            self._handles[profile.scheduler_name] = handle
            self._profiles[profile.scheduler_name] = profile
            webhooks = None
            if configuration.webhooks:
                webhooks = Webhooks(configuration.webhooks, chooser, self._cluster)
            self._cycles[profile.scheduler_name] = Cycles(
                chooser, self._cluster, self.records, self.tell, webhooks
            )
        self._queue = Queue(
            Profiles(self._profiles, self._tell_failure),
            initial_backoff=float(configuration.pod_initial_backoff_seconds),
            max_backoff=float(configuration.pod_max_backoff_seconds),
        )
        self._intake = Intake(self._cluster, self._queue, now=lambda: self._now, is_ours=self._is_ours)
        self._underway = self._intake.underway = Underway(
            self._cluster, self._queue, now=lambda: self._now, land=self._land, released=self._intake.released
        )
        # What happens while a cycle asks extenders about its decision is taken in afterwards.
        self._held_back: deque[Change[Any] | Measurements] = deque()
        self._errands = Errands(self._underway.ask, now=lambda: self._now)
        for make in controllers:
            self.add_controller(make(self))
        self._kept = kept_of(self.reads)
        self._observer: Observer = Unobserved()

    @property
    def scheduler_name(self) -> str:
        """Of the first profile."""
        return next(iter(self._profiles))

    @property
    def profiles(self) -> Mapping[str, Profile]:
        return self._profiles

    @property
    def cluster(self) -> ClusterState:
        """The cluster as the engine sees it, to read from."""
        return self._cluster

    @property
    def queue(self) -> Queue:
        """The pods that wait, to read from."""
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
        """Seconds since 1970, if the driver has said how its clock and the wall's differ."""
        return self._now + self.epoch

    def handle(self, scheduler_name: str) -> Handle:
        """Return what the plugins of the profile see of the engine."""
        return self._handles[scheduler_name]

    def chooser(self, scheduler_name: str) -> Chooser:
        """What decides in the profile: to ask what it would do."""
        return self._handles[scheduler_name].chooser

    @property
    def binds_in_flight(self) -> int:
        return self._underway.binds_in_flight

    def observe(self, observer: Observer) -> None:
        """Tell it from now on what happens here."""
        self._observer = self._underway.observer = observer
        self._queue.observe = observer.queued
        for cycles in self._cycles.values():
            cycles.observer = observer

    @property
    def observer(self) -> Observer:
        return self._observer

    @property
    def deadline(self) -> float | None:
        """When `advance` is due if no event comes before: at once if not in the future, never if None."""
        underway = self._underway
        if underway.outbox or (self._queue.has_active and self._may_decide):
            return self._now
        times = [underway.deadline, self._queue.next_due, self._errands.deadline]
        times += [controller.deadline for controller in self._controllers]
        return min((time for time in times if time is not None), default=None)

    @property
    def _may_decide(self) -> bool:
        """Not while extenders are asked, nor before controllers know what they need."""
        if self._underway.consulting is not None:
            return False
        return not any(each.unready for each in self._controllers)

    @property
    def settled(self) -> bool:
        """Nothing is under way: without an event all that can come is another try of pods set aside."""
        counts = self._queue.counts()
        busy = self._underway or self._errands or any(c.deadline is not None for c in self._controllers)
        return not busy and not counts["active"] and not counts["backoff"]

    def receive(self, event: Event, *, now: float) -> None:
        """Take in what happened. Anything may come late, twice, or about an object never heard of."""
        self._now = now
        match event:
            case Done(number, outcome):
                if not self._errands.answered(number, outcome):
                    self._underway.answered(number, outcome)
                while self._held_back and self._underway.consulting is None:
                    self.receive(self._held_back.popleft(), now=now)
                return
            case Change() | Measurements() if self._underway.consulting is not None:
                self._held_back.append(event)
                return
            case Change(None | Pod() as old, None | Pod() as new):
                old, new = old and self._kept.pod(old), new and self._kept.pod(new)
                event = Change(old, new)
                self._intake.pod_changed(old, new)
                if self._pod_listeners:
                    self._tell_listeners(old, new)
            case Change(None | Node() as old, None | Node() as new):
                self._intake.node_changed(old, new)
            case Measurements():
                self._intake.measured(event, wall_time=self.wall_time)
                return
            case Change(old, new) if (changed := new or old) is not None:
                kind = kind_of(changed)
                self._cluster.put(kind, old, new)
                if (meaning := other_event(kind, event)) is not None:
                    self._queue.event(meaning, now=now)
        self._underway.look_again()
        for controller in self._controllers:
            controller.changed(event, now=now)

    def advance(self, *, now: float, max_cycles: int | None = None) -> list[Instruction]:
        """Decide about the pods whose turn it is, at most `max_cycles`, and hand out what is to be done."""
        self._now = now
        self._queue.flush(now=now)
        underway = self._underway
        underway.expire()
        self._errands.wake()
        for controller in self._controllers:
            if controller.deadline is not None and controller.deadline <= now:
                for errand in controller.advance(now=now):
                    self._errands.start(errand)
        cycles = 0
        while (max_cycles is None or cycles < max_cycles) and self._may_decide:
            if (entry := self._queue.pop()) is None:
                break
            cycles += 1
            self._begin(entry)
        requests, underway.outbox = underway.outbox, []
        return requests

    def finish(self, *, now: float) -> list[Instruction]:
        """The driver is to stop: what controllers want to have done before."""
        self._now = now
        for controller in self._controllers:
            for errand in controller.finish(now=now):
                self._errands.start(errand)
        requests, self._underway.outbox = self._underway.outbox, []
        return requests

    def _begin(self, entry: Entry) -> None:
        pod = entry.pod
        if self._cluster.is_assumed(pod):
            # Held since a bind whose answer was a failure.
            self._intake.forget(pod)
        name = pod.spec.scheduler_name
        if entry.info is None:
            entry.info = shape_key(pod)
        info = self._handles[name].chooser.info(pod, entry.info)
        steps = self._cycles[name].run(entry, info, entry.info)
        measured = self._observer.attempt_begins(entry)
        self._underway.resume(Flight(entry, steps, measured=measured is not None))
        if measured is not None:
            measured()

    def _is_ours(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self._profiles and pod.metadata.deletion_timestamp is None

    def _land(self, entry: Entry, fate: Fate) -> None:
        self._observer.attempt_ended(entry, fate.result, now=self._now)
        match fate.ending:
            case Ending.BOUND | Ending.DROPPED:
                self._queue.settle(entry)
            case Ending.RETRIED:
                self._queue.fail(entry, now=self._now)
            case Ending.SET_ASIDE:
                self._queue.fail(entry, now=self._now, rejectors=fate.rejectors, pending=fate.pending)
            case Ending.ACTIVATED:
                self._queue.fail(entry, now=self._now)
                self._queue.activate([entry.pod], now=self._now)

    def _tell_listeners(self, old: Pod | None, new: Pod | None) -> None:
        for listener, plugin in self._pod_listeners:
            try:
                listener(old, new)
            except PLUGIN_ERRORS as error:  # whatever a plugin does, the scheduler goes on
                if new is not None and self._queue.find(new) is not None:
                    failure = PluginFailure(plugin, "PodChange", repr(error))
                    self.tell(warning(new, str(failure)))

    def _tell_failure(self, pod: Pod, status: Status) -> None:
        """A plugin failed while the queue asked it: there is no attempt that could tell."""
        report_failed(self.tell, pod, status)

    # What plugins may do, through their handle.

    def waiting_pods(self) -> Mapping[str, str]:
        return self._underway.waiting_pods()

    def allow(self, uid: str, plugin: str) -> None:
        self._underway.allow(uid, plugin)

    def reject(self, uid: str, plugin: str, message: str) -> None:
        self._underway.reject(uid, plugin, message)

    def tell(self, effect: Tell) -> None:
        self._underway.tell(effect)

    def activate(self, pods: Any) -> None:
        self._queue.activate(pods, now=self._now)

    def hold(self, pods: Iterable[Pod]) -> None:
        pods = list(pods)
        self._queue.hold(pods)
        for pod in pods:
            # A bind of it may have failed, and its room was kept for the next try. Who has left the queue is
            # bound, even if the watch has not told yet.
            if self._queue.find(pod) is not None and not self.in_flight(pod):
                self._intake.forget(pod)

    def take_back_nomination(self, pod: Pod) -> None:
        self._intake.take_back_nomination(pod)

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
        """Kinds that controllers need to hear of, besides those of Kubernetes itself."""
        kinds = (kind for each in self._controllers for kind in each.watches)
        return tuple(dict.fromkeys(kinds))
