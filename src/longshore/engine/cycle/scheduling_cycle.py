"""One attempt to schedule one pod, from the decision to the bind.

It is a generator that yields an effect when something outside has to happen, and is resumed with the outcome.
It returns the pod's fate. As soon as a node is chosen, the pod is assumed to be there, so later pods find the
room taken. If anything fails after that, it is undone.
"""

import enum
from collections.abc import Callable, Generator, Sequence
from functools import partial
from math import isfinite

import msgspec

from longshore.cluster import ClusterState, PodInfo
from longshore.engine.answers.observer import Observer, Result, Unobserved
from longshore.engine.answers.records import Records
from longshore.engine.cycle.evictions import evict
from longshore.engine.cycle.plugin_answers import (
    Asking,
    as_error,
    ask,
    awaited,
    called,
    checked,
    failure,
    reason,
)
from longshore.engine.cycle.post_filter import way_out
from longshore.engine.cycle.reporting import report_bound, report_failed
from longshore.engine.cycle.waiting import MayGiveWay, WaitingPods, WaitOnPermit
from longshore.engine.cycle.webhooks import Webhooks
from longshore.engine.decision.chooser import Chooser, Placement, Unplaced
from longshore.engine.plugin_failure import PLUGIN_ERRORS
from longshore.engine.profiles import UNREADABLE, WITHOUT_NODES
from longshore.engine.queue.scheduling_queue import QueueEntry, SchedulingQueue
from longshore.engine.runner import Runner, Step
from longshore.framework import Code, CycleState, Status, Wait
from longshore.framework.effects import (
    Answered,
    Bind,
    Conflict,
    Failed,
    Gone,
    Nominate,
    Outcome,
    Succeeded,
)
from longshore.framework.extension_points import BIND, POST_BIND, POST_FILTER
from longshore.framework.points import MAX_PERMIT_WAIT, Permit, PreBind, PreBindPreFlight, Reserve


class Ending(enum.Enum):
    """Where an attempt leaves the pod."""

    BOUND = enum.auto()
    # The pod is gone.
    DROPPED = enum.auto()
    # Tried again after a while.
    RETRIED = enum.auto()
    # Tried again when something happens that may help, or when the pod itself changes.
    UNSCHEDULABLE = enum.auto()
    # Tried again at once.
    ACTIVATED = enum.auto()


class Fate(msgspec.Struct, frozen=True):
    ending: Ending
    # The plugins that rejected the pod, and those that said Pending.
    rejectors: frozenset[str] = frozenset()
    pending: frozenset[str] = frozenset()
    # The name in metrics.
    result: Result = "unschedulable"
    # The node that the pod gave up, if other pods may have found its room taken.
    released: str = ""


_BOUND = Fate(Ending.BOUND, result="scheduled")
_RETRIED = Fate(Ending.RETRIED, result="error")
# There are no nodes at all.
_NO_NODES = Fate(Ending.UNSCHEDULABLE, frozenset({WITHOUT_NODES}))

_LOOK_AHEAD = "PreBindPreFlight"

Cycle = Generator[Step, Outcome, Fate]


class Cycles:
    """Runs the cycles of one profile. `land` is called when one ends."""

    def __init__(
        self,
        chooser: Chooser,
        cluster: ClusterState,
        queue: SchedulingQueue,
        records: Records,
        runner: Runner,
        waiting: WaitingPods,
        *,
        now: Callable[[], float],
        land: Callable[[QueueEntry, Fate], None],
        webhooks: Webhooks | None = None,
    ) -> None:
        self._chooser = chooser
        self._records = records
        self._profile = chooser.profile
        self._cluster = cluster
        self._queue = queue
        self._runner = runner
        self._tell = runner.tell
        self._waiting = waiting
        self._now = now
        self._land = land
        self._webhooks = webhooks
        self.observer: Observer = Unobserved()
        self.binds_in_flight = 0
        self._post_filters = self._profile.at(POST_FILTER)
        self._binds, self._post_binds = self._profile.at(BIND), self._profile.at(POST_BIND)

    def start(self, entry: QueueEntry, pod: PodInfo, key: bytes) -> None:
        self._runner.start(
            self._run(entry, pod, key), partial(self._land, entry), partial(self._engine_failed, entry)
        )

    def _engine_failed(self, entry: QueueEntry, error: BaseException) -> None:
        """The engine itself raised an error: like a plugin's, it fails only this attempt."""
        pod, message = entry.pod, f"the scheduler failed: {error!r}"
        released = (self._cluster.node_of(pod) or "") if self._cluster.is_assumed(pod) else ""
        self._cluster.forget(pod)
        self._records.failed(pod, self._profile, message)
        report_failed(self._tell, pod, Status.error(message), nominated_node="")
        self._land(entry, Fate(Ending.RETRIED, result="error", released=released))

    def _run(self, entry: QueueEntry, pod: PodInfo, key: bytes) -> Cycle:
        """Decide, bind, and report. `entry` always holds the newest version of the pod."""
        if pod.problem:
            # Only a change of the pod can help.
            self._records.failed(entry.pod, self._profile, pod.problem)
            report_failed(self._tell, entry.pod, Status.error(pod.problem))
            return Fate(Ending.UNSCHEDULABLE, frozenset({UNREADABLE}), result="error")
        if self._webhooks is None:
            decision = self._chooser.decide(pod, key)
        else:
            decision = yield from self._webhooks.decide(pod, key)
        if isinstance(decision, Placement):
            self.observer.decided(entry, decision)
            self._records.placed(entry.pod, decision)
            return (yield from self._place(entry, pod, decision))
        if isinstance(decision, Unplaced):
            return (yield from self._look_further(entry, pod, decision))
        self.observer.decided(entry, decision)
        self._records.failed(entry.pod, self._profile, decision.message)
        report_failed(self._tell, entry.pod, decision, nominated_node="")
        self._cluster.nominations.remove(pod.pod.metadata.uid)
        return _NO_NODES if decision.rejected else _RETRIED

    # No node fits.

    def _look_further(self, entry: QueueEntry, pod: PodInfo, unplaced: Unplaced) -> Cycle:
        diagnosis = unplaced.diagnosis
        result = way_out(self._post_filters, unplaced, pod, asked=self.observer.post_filtered)
        if self._webhooks is not None and result.candidates:
            result = yield from self._webhooks.preempt(pod, result)
        self.observer.decided(entry, unplaced)
        message = diagnosis.message
        if result.status is not None and result.status.message:
            message += f" {result.status.message}"
        self._records.unplaced(entry.pod, unplaced, message, result)
        nominated = result.nominated
        if nominated:
            self._cluster.nominations.add(pod, nominated)
        elif nominated == "":
            self._cluster.nominations.remove(pod.pod.metadata.uid)
        report_failed(self._tell, entry.pod, Status.unschedulable(message), nominated_node=nominated)
        fate = Fate(Ending.UNSCHEDULABLE, frozenset(diagnosis.rejectors), frozenset(diagnosis.pending))
        if nominated and result.victims:
            self.observer.preempted(len(result.victims))
            evicted = yield from evict(
                result.victims,
                pod,
                nominated,
                self._cluster,
                self._profile.scheduler_name,
                self._waiting.give_way,
                self._tell,
            )
            if not evicted:
                return Fate(Ending.ACTIVATED)
        return fate

    # The node is chosen.

    def _place(self, entry: QueueEntry, pod: PodInfo, placement: Placement) -> Cycle:
        node, state = placement.node, placement.attempt.state
        self._cluster.assume(pod, node)
        self._cluster.nominations.remove(pod.pod.metadata.uid)
        plugins = placement.attempt.shape.concerned
        status = self._reserve(plugins.reserves, state, pod, node)
        waits: dict[str, float] = {}
        if status is None and plugins.permits:
            status = self._permit(plugins.permits, state, pod, node, waits)
        if status is not None:
            # No other pod has seen the room taken.
            return msgspec.structs.replace(self._give_up(entry, pod, placement, status), released="")
        if waits or plugins.pre_binds:
            status = yield from self._prepare(entry, pod, placement, waits)
            if status is not None:
                return self._give_up(entry, pod, placement, status)
        return (yield from self._bind(entry, pod, placement))

    def _reserve(
        self, plugins: Sequence[Reserve], state: CycleState, pod: PodInfo, node: str
    ) -> Status | None:
        for plugin in plugins:
            status = called(plugin.name, "Reserve", lambda p=plugin: p.reserve(state, pod, node))
            if status is not None:
                return status
        return None

    def _permit(
        self,
        plugins: Sequence[Permit],
        state: CycleState,
        pod: PodInfo,
        node: str,
        waits: dict[str, float],
    ) -> Status | None:
        for plugin in plugins:
            try:
                answer = plugin.permit(state, pod, node)
                if isinstance(answer, Wait):
                    waits[plugin.name] = _patience(answer)
                    continue
            except PLUGIN_ERRORS as error:  # a plugin's mistake fails only this attempt
                return Status.error(f'running Permit plugin "{plugin.name}": {error!r}')
            if (status := checked(plugin.name, "Permit", answer)) is not None:
                return status
        return None

    def _prepare(
        self, entry: QueueEntry, pod: PodInfo, placement: Placement, waits: dict[str, float]
    ) -> Asking:
        """Wait until Permit plugins allow the pod, then run the PreBind plugins."""
        node, state = placement.node, placement.attempt.state
        at_work: list[PreBind] = []
        for plugin in placement.attempt.shape.concerned.pre_binds:
            status = None
            if isinstance(plugin, PreBindPreFlight):
                look_ahead = partial(plugin.pre_bind_pre_flight, state, pod, node)
                status = called(plugin.name, _LOOK_AHEAD, look_ahead)
            if status is None:
                at_work.append(plugin)
            elif status.rejected:
                return Status.error(f'running {_LOOK_AHEAD} plugin "{plugin.name}": {status.message}')
            elif status.code is not Code.SKIP:
                return status
        if waits or at_work:
            self._tell(Nominate.of(entry.pod, node))
        if waits:
            outcome = yield WaitOnPermit(self._waiting, entry.pod, waits)
            if isinstance(outcome, Answered) and isinstance(outcome.value, Status):
                return outcome.value
        # From here on, no event makes another attempt useful.
        self._queue.done_scheduling(entry)
        for plugin in at_work:
            preempted = Status.error(f'running PreBind plugin "{plugin.name}": preempted')
            give_up = partial(self._give_up, entry, pod, placement, preempted)
            yield MayGiveWay(self._waiting, entry.pod, give_up)
            status = yield from ask(plugin.name, "PreBind", plugin.pre_bind, state, pod, node)
            # A cycle that gave way ends here at the latest, even if the plugin's generator did not end.
            yield MayGiveWay(self._waiting, entry.pod, None)
            if status is not None:
                return as_error(status)
        return None

    # The pod is bound.

    def _bind(self, entry: QueueEntry, pod: PodInfo, placement: Placement) -> Cycle:
        node, state = placement.node, placement.attempt.state
        since = self._now() if entry.measured else 0.0
        answer: Outcome | Status | None = None
        self.binds_in_flight += 1
        try:
            if self._webhooks is not None:
                answer = yield from self._webhooks.bind(pod.pod, node, partial(self._shown, entry, node))
            if answer is None:
                answer = yield from self._ask_binders(state, pod, node)
        finally:
            self.binds_in_flight -= 1
        if not isinstance(answer, Succeeded):
            answer = self._shown(entry, node) or answer
        bound = isinstance(answer, Succeeded)
        if entry.measured:
            self.observer.bind_answered(self._profile.scheduler_name, self._now() - since, bound=bound)
        if not bound:
            return self._not_bound(entry, pod, placement, answer)
        report_bound(self._tell, pod.pod, node)
        for plugin in self._post_binds:
            # Its answer changes nothing anymore.
            yield from ask(plugin.name, "PostBind", plugin.post_bind, state, pod, node)
        return _BOUND

    def _ask_binders(
        self, state: CycleState, pod: PodInfo, node: str
    ) -> Generator[Step, Outcome, Outcome | Status]:
        for plugin in self._binds:
            try:
                answer = plugin.bind(state, pod, node)
            except PLUGIN_ERRORS as error:  # as above
                return failure(plugin.name, "Bind", repr(error))
            if isinstance(answer, Bind):
                outcome = yield answer
                if isinstance(outcome, Failed):
                    return Failed(f'running Bind plugin "{plugin.name}": {reason(outcome)}')
                return outcome
            status = yield from awaited(plugin.name, "Bind", answer)
            if status is None:
                return Succeeded()
            if status.code is not Code.SKIP:
                return status
        return Status.error("no Bind plugin bound the pod")

    def _shown(self, entry: QueueEntry, node: str) -> Outcome | None:
        """Return the outcome of the bind if the watch has shown it. It overrides any answer."""
        pod = entry.pod
        if self._queue.find(pod) is entry:
            return None
        if self._cluster.node_of(pod) == node and not self._cluster.is_assumed(pod):
            return Succeeded()
        return Gone("the pod no longer needs a node from this scheduler")

    def _not_bound(
        self, entry: QueueEntry, pod: PodInfo, placement: Placement, answer: Outcome | Status | None
    ) -> Fate:
        match answer:
            case Status():
                return self._give_up(entry, pod, placement, as_error(answer))
            case Gone():
                return Fate(Ending.DROPPED, result="error", released=self._undo(pod, placement))
            case Conflict():
                # Most likely someone else bound it, and the watch is about to show that.
                return Fate(Ending.RETRIED, result="error", released=self._undo(pod, placement))
        # The bind may have landed after all, with only its answer lost. So the room stays taken until the
        # next attempt begins; by then the watch has had time to show it.
        self._unreserve(pod, placement)
        message = answer.message if isinstance(answer, Failed) else repr(answer)
        self._records.failed(entry.pod, self._profile, message, placement.node)
        report_failed(self._tell, entry.pod, Status.error(message), nominated_node="")
        return _RETRIED

    def _give_up(self, entry: QueueEntry, pod: PodInfo, placement: Placement, status: Status) -> Fate:
        """Undo the placement, and report why. Only the chosen node is in the message."""
        released = self._undo(pod, placement)
        self._records.failed(entry.pod, self._profile, status.message, placement.node)
        if not status.rejected:
            report_failed(self._tell, entry.pod, status, nominated_node="")
            return Fate(Ending.RETRIED, result="error", released=released)
        reasons = ", ".join(f"1 {reason}" for reason in sorted(status.reasons))
        report = Status.unschedulable(f"0/1 nodes are available: {reasons}.")
        report_failed(self._tell, entry.pod, report, nominated_node="")
        plugins = frozenset({status.plugin})
        if status.code is Code.PENDING:
            return Fate(Ending.UNSCHEDULABLE, pending=plugins, released=released)
        return Fate(Ending.UNSCHEDULABLE, plugins, released=released)

    def _undo(self, pod: PodInfo, placement: Placement) -> str:
        """Return the node that the pod gave up; empty if it was not assumed there anymore."""
        self._unreserve(pod, placement)
        if not self._cluster.is_assumed(pod.pod):
            return ""
        self._cluster.forget(pod.pod)
        return placement.node

    def _unreserve(self, pod: PodInfo, placement: Placement) -> None:
        attempt = placement.attempt
        for plugin in reversed(attempt.shape.concerned.reserves):
            called(plugin.name, "Unreserve", partial(plugin.unreserve, attempt.state, pod, placement.node))


def _patience(wait: Wait) -> float:
    if not isfinite(wait.seconds):
        raise ValueError(f"{wait!r} never ends")
    return min(max(wait.seconds, 0.0), MAX_PERMIT_WAIT)
