"""The engine itself: it keeps state and queue in step with the cluster and runs the cycles.

State changes only while an event is received or a cycle runs; both are told the time. Effects gather in an
outbox until the driver fetches them with `advance`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import msgspec

from longshore.api import Change, Node, Pod
from longshore.cluster import ClusterState, PodInfo
from longshore.engine.clusterevents import assigned_pod_events, node_events, other_event
from longshore.engine.cycle import Cycle, Cycles, Ending, Fate, Step
from longshore.engine.decision import Chooser
from longshore.engine.events import Done, Event
from longshore.engine.handle import EngineHandle
from longshore.engine.profiles import Profiles, make_profile
from longshore.engine.queue import Entry, Queue
from longshore.engine.request import Request
from longshore.engine.shapes import shape_key
from longshore.engine.waiting import BindingBegins, Together, WaitingPod, WaitOnPermit
from longshore.framework import Action, ClusterEvent, Code, Resource, Status
from longshore.framework.configuration import Configuration, LongshoreSettings, default_configuration
from longshore.framework.effects import (
    Answered,
    Bind,
    CallExtender,
    Evict,
    Failed,
    Gone,
    Outcome,
    PatchObject,
    Run,
    Succeeded,
    Until,
)
from longshore.framework.profile import Profile, TieBreak
from longshore.plugins import DEFAULT_PLUGINS, Factory

DEFAULT_SCHEDULER_NAME = "longshore"
# What the driver answers; all else only informs people.
_ANSWERED = (Bind, Evict, PatchObject, Run, CallExtender)


@dataclass(slots=True)
class _Flight:
    """A cycle that waits for an outcome."""

    entry: Entry
    steps: Cycle
    # The node it is being bound to, once that is under way.
    node: str = ""


@dataclass(slots=True)
class _Group:
    """Outcomes of effects that are done together."""

    flight: _Flight
    outcomes: list[Outcome | None]


@dataclass(slots=True)
class _Watcher:
    """A cycle that waits for the cluster to become what it needs."""

    flight: _Flight
    until: Until
    deadline: float


class Engine:
    """A scheduler without hands: feed it events, perform what `advance` asks for, and tell how that ended.

    Equal events at equal times give equal decisions. Made from a configuration, or else with the default
    profile under `scheduler_name`. `tie_break` chooses among equally good nodes: "random" spreads pods by a
    hash of `seed`, pod and node; "first" takes the first by name; "heap" does as kube-scheduler 1.36.
    `plugins` are registered beside the default ones.
    """

    def __init__(
        self,
        configuration: Configuration | None = None,
        *,
        scheduler_name: str = DEFAULT_SCHEDULER_NAME,
        tie_break: TieBreak = "random",
        seed: int = 0,
        plugins: Mapping[str, Factory] | None = None,
    ) -> None:
        if configuration is None:
            configuration = msgspec.structs.replace(
                default_configuration(scheduler_name),
                longshore=LongshoreSettings(tie_break=tie_break, seed=seed),
            )
        self._cluster = ClusterState()
        registry = {**DEFAULT_PLUGINS, **(plugins or {})}
        self._handles: dict[str, EngineHandle] = {}
        self._profiles: dict[str, Profile] = {}
        self._cycles: dict[str, Cycles] = {}
        for settings in configuration.profiles:
            handle = EngineHandle(self)
            profile = make_profile(configuration, settings, registry, handle)
            chooser = handle.chooser = Chooser(profile, self._cluster)
            self._handles[profile.scheduler_name] = handle
            self._profiles[profile.scheduler_name] = profile
            self._cycles[profile.scheduler_name] = Cycles(chooser, self._cluster)
        self._queue = Queue(
            Profiles(self._profiles),
            initial_backoff=float(configuration.pod_initial_backoff_seconds),
            max_backoff=float(configuration.pod_max_backoff_seconds),
        )
        self._flights: dict[int, _Flight | tuple[_Group, int]] = {}
        self._waiting: dict[str, tuple[WaitingPod, _Flight]] = {}
        self._watchers: list[_Watcher] = []
        self._outbox: list[Request] = []
        self._ids = count(1)
        self._now = 0.0

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
    def now(self) -> float:
        return self._now

    def chooser(self, scheduler_name: str) -> Chooser:
        """What decides in the profile: to ask what it would do."""
        return self._handles[scheduler_name].chooser

    @property
    def deadline(self) -> float | None:
        """When `advance` is due if no event comes before: at once if not in the future, never if None."""
        if self._outbox or self._queue.has_active:
            return self._now
        times = [waiting.deadline for waiting, _ in self._waiting.values()]
        times += [watcher.deadline for watcher in self._watchers]
        if self._queue.next_due is not None:
            times.append(self._queue.next_due)
        return min(times, default=None)

    @property
    def settled(self) -> bool:
        """Nothing is under way: without an event all that can come is another try of pods set aside."""
        counts = self._queue.counts()
        busy = self._outbox or self._flights or self._waiting or self._watchers
        return not busy and not counts["active"] and not counts["backoff"]

    def receive(self, event: Event, *, now: float) -> None:
        """Take in what happened. Anything may come late, twice, or about an object never heard of."""
        self._now = now
        match event:
            case Done(number, outcome):
                self._answered(number, outcome)
                return
            case Change(None | Pod() as old, None | Pod() as new):
                self._pod_changed(old, new)
            case Change(None | Node() as old, None | Node() as new):
                self._node_changed(old, new)
            case Change(old, new) if (changed := new or old) is not None:
                self._cluster.put(type(changed), old, new)
                if (meaning := other_event(type(changed), event)) is not None:
                    self._queue.event(meaning, now=now)
        if self._watchers:
            self._look_at_watchers()

    def advance(self, *, now: float, max_cycles: int | None = None) -> list[Request]:
        """Decide about the pods whose turn it is, at most `max_cycles`, and hand out what is to be done."""
        self._now = now
        self._queue.flush(now=now)
        if self._waiting:
            self._reject_expired()
        if self._watchers:
            self._look_at_watchers()
        cycles = 0
        while (max_cycles is None or cycles < max_cycles) and (entry := self._queue.pop()) is not None:
            cycles += 1
            self._begin(entry)
        requests, self._outbox = self._outbox, []
        return requests

    def _begin(self, entry: Entry) -> None:
        pod = entry.pod
        if self._cluster.is_assumed(pod):
            # Held since a bind whose answer was a failure.
            self._forget(pod)
        if entry.info is None:
            entry.info = (PodInfo.of(pod), shape_key(pod))
        info, key = entry.info
        if info.pod is not pod:
            info = info.about(pod)
        steps = self._cycles[pod.spec.scheduler_name].run(entry, info, key)
        self._resume(_Flight(entry, steps), None)

    # What happens in the cluster.

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is not None:
            row = self._cluster.row(new.metadata.name)
            known = None if row is None else self._cluster.node(row)
            self._cluster.add_node(new)
            events = node_events(known, new)
        elif old is not None:
            self._cluster.remove_node(old.metadata.name)
            events = node_events(old, None)
        for event in events:
            self._queue.event(event, now=self._now)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and (new is None or old.metadata.uid != new.metadata.uid):
            self._gone(old)
        if new is None:
            return
        self._queue.remove_predecessor(new)
        predecessor = self._cluster.pod(new.key)
        if predecessor is not None and predecessor.metadata.uid != new.metadata.uid:
            self._remove(predecessor)
        if new.spec.node_name or new.terminal:
            self._assigned(new)
            return
        if not self._cluster.is_assumed(new):
            self._remove(new)
        if not self._is_ours(new):
            self._queue.withdraw(new)
            self._cluster.nominations.remove(new.metadata.uid)
            if not self._queue.holds(new):
                self._forget(new)
        elif self._queue.holds(new) or not self._cluster.is_assumed(new):
            self._queue.put(new, now=self._now)
            self._note_nomination(new)
        # Else we have bound it, and this is a last word from before.

    def _assigned(self, new: Pod) -> None:
        """The pod has a node, or has ended."""
        before = self._cluster.pod(new.key)
        was_assumed = before is not None and self._cluster.is_assumed(before)
        self._queue.withdraw(new)
        self._cluster.nominations.remove(new.metadata.uid)
        self._cluster.add_pod(new)
        if new.terminal:
            if before is not None:
                self._wake(before, None)
        else:
            self._wake(None if was_assumed else before, new)

    def _gone(self, pod: Pod) -> None:
        self._queue.withdraw(pod)
        if self._cluster.nominations.node_of(pod.metadata.uid) is not None:
            self._cluster.nominations.remove(pod.metadata.uid)
            # Room that was kept for it is to be had.
            self._wake(pod, None)
        waiting = self._waiting.get(pod.metadata.uid)
        if waiting is not None:
            self._permitted(pod.metadata.uid, Status.error("the pod was deleted"))
        self._remove(pod)

    def _remove(self, pod: Pod) -> None:
        if self._cluster.node_of(pod) is not None:
            self._cluster.remove_pod(pod)
            self._wake(pod, None)

    def _forget(self, pod: Pod) -> None:
        """An assumed pod will not come to its node."""
        if self._cluster.is_assumed(pod):
            self._cluster.forget(pod)
            self._wake(pod, None)

    def _wake(self, old: Pod | None, new: Pod | None) -> None:
        for event in assigned_pod_events(old, new):
            self._queue.event(event, now=self._now)

    def _note_nomination(self, pod: Pod) -> None:
        """The API server, or someone else, says where the pod is expected."""
        node = pod.status.nominated_node_name
        uid = pod.metadata.uid
        if node and self._cluster.nominations.node_of(uid) is None and not self._cluster.is_assumed(pod):
            self._cluster.nominations.add(PodInfo.of(pod), node)

    def _is_ours(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self._profiles and pod.metadata.deletion_timestamp is None

    # Cycles under way.

    def _resume(self, flight: _Flight, outcome: Outcome | None) -> None:
        """Run the cycle until it waits for something or ends; what only informs people is not waited for."""
        try:
            step: Step = next(flight.steps) if outcome is None else flight.steps.send(outcome)
            while True:
                if isinstance(step, Bind):
                    flight.node = step.node
                if self._waits_for(step, flight):
                    return
                step = flight.steps.send(Succeeded())
        except StopIteration as end:
            self._land(flight.entry, end.value)

    def _waits_for(self, step: Step, flight: _Flight) -> bool:
        """Set the step going; whether the cycle waits for it."""
        match step:
            case BindingBegins():
                self._queue.done_scheduling(flight.entry)
                return False
            case WaitOnPermit(seconds):
                self._hold(flight, seconds)
                return True
            case Until():
                self._watchers.append(_Watcher(flight, step, self._now + step.seconds))
                self._look_at_watchers()
                return True
            case Together(effects):
                group = _Group(flight, [None] * len(effects))
                for place, effect in enumerate(effects):
                    self._request(effect, (group, place))
                return bool(effects)
        number = next(self._ids)
        self._outbox.append(Request(number, step))
        if isinstance(step, _ANSWERED):
            self._flights[number] = flight
            return True
        return False

    def _request(self, effect: Any, waiter: tuple[_Group, int]) -> None:
        if isinstance(effect, Evict) and effect.uid in self._waiting:
            # It is on no node yet: it need not be deleted, only to give way.
            self._permitted(effect.uid, Status.error("preempted by a pod of higher priority"))
            self._joined(*waiter, Succeeded())
            return
        number = next(self._ids)
        self._flights[number] = waiter
        self._outbox.append(Request(number, effect))

    def _answered(self, number: int, outcome: Outcome) -> None:
        flight = self._flights.pop(number, None)
        if isinstance(flight, _Flight):
            self._resume(flight, self._in_truth(flight, outcome))
        elif flight is not None:
            self._joined(*flight, outcome)

    def _joined(self, group: _Group, place: int, outcome: Outcome) -> None:
        group.outcomes[place] = outcome
        if all(other is not None for other in group.outcomes):
            self._resume(group.flight, Answered(group.outcomes))

    def _in_truth(self, flight: _Flight, outcome: Outcome) -> Outcome:
        """The outcome in the light of the watch, which outranks an answer that the bind came to nothing."""
        pod = flight.entry.pod
        if not flight.node or isinstance(outcome, Succeeded) or self._queue.find(pod) is flight.entry:
            return outcome
        if self._cluster.node_of(pod) == flight.node and not self._cluster.is_assumed(pod):
            return Succeeded()
        return Gone("no longer to be scheduled here")

    def _land(self, entry: Entry, fate: Fate) -> None:
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

    # Pods that wait for a permission, and cycles that wait for the cluster.

    def _hold(self, flight: _Flight, seconds: Mapping[str, float]) -> None:
        pod = flight.entry.pod
        until = {plugin: self._now + wait for plugin, wait in seconds.items()}
        node = self._cluster.node_of(pod) or ""
        self._waiting[pod.metadata.uid] = (WaitingPod(pod, node, self._now, until), flight)

    def waiting_pods(self) -> Mapping[str, str]:
        return {uid: waiting.node for uid, (waiting, _) in self._waiting.items()}

    def allow(self, uid: str, plugin: str) -> None:
        held = self._waiting.get(uid)
        if held is not None and held[0].allow(plugin):
            self._permitted(uid, None)

    def reject(self, uid: str, plugin: str, message: str) -> None:
        if uid in self._waiting:
            self._permitted(uid, Status(Code.UNSCHEDULABLE, (message,), plugin))

    def _permitted(self, uid: str, refusal: Status | None) -> None:
        _, flight = self._waiting.pop(uid)
        self._resume(flight, Succeeded() if refusal is None else Answered(refusal))

    def _reject_expired(self) -> None:
        for uid, (waiting, _) in list(self._waiting.items()):
            if uid in self._waiting and (refusal := waiting.expired(self._now)) is not None:
                self._permitted(uid, refusal)

    def _look_at_watchers(self) -> None:
        for watcher in list(self._watchers):
            outcome = watcher.until.check()
            if outcome is None and watcher.deadline <= self._now:
                outcome = Failed(watcher.until.timeout)
            if outcome is not None and watcher in self._watchers:
                self._watchers.remove(watcher)
                self._resume(watcher.flight, outcome)

    def activate(self, pods: Any) -> None:
        self._queue.activate(pods, now=self._now)

    def wake_all(self, label: str) -> None:
        """Try every waiting pod again: something happened that no event tells."""
        event = ClusterEvent(Resource.WILDCARD, Action.ALL, custom_label=label)
        self._queue.event(event, now=self._now)
