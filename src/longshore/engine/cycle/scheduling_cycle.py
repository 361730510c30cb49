"""One attempt to schedule one pod, from the decision to the bind.

A generator: it yields an effect wherever something outside has to happen, and is resumed with the outcome.
What it returns is the pod's fate. From the moment it has a node the pod is assumed to be there, so the pods
after it find that room taken; whatever fails from then on is undone.
"""

import enum
import inspect
from collections.abc import Awaitable, Callable, Generator, Sequence
from functools import partial
from math import isfinite
from typing import Any

import msgspec

from longshore.cluster import ClusterState, PodInfo
from longshore.engine.answers.observer import Observer, Result, Unobserved
from longshore.engine.answers.records import Records
from longshore.engine.cycle.evictions import evict
from longshore.engine.cycle.post_filter import way_out
from longshore.engine.cycle.reporting import report_bound, report_failed
from longshore.engine.cycle.waiting import BindingBegins, BindThrough, Consult, MayGiveWay, WaitOnPermit
from longshore.engine.cycle.webhooks import Webhooks
from longshore.engine.decision.chooser import Chooser, Placement, Unplaced
from longshore.engine.plugin_failure import PLUGIN_ERRORS
from longshore.engine.profiles import UNREADABLE, WITHOUT_NODES
from longshore.engine.queue.scheduling_queue import Entry
from longshore.framework import Code, CycleState, Status, Wait
from longshore.framework.effects import (
    Answered,
    Ask,
    Bind,
    Conflict,
    Failed,
    Gone,
    Nominate,
    Outcome,
    Run,
    Succeeded,
    Tell,
)
from longshore.framework.extension_points import BIND, POST_BIND, POST_FILTER
from longshore.framework.points import MAX_PERMIT_WAIT, Answer, Permit, PreBind, Reserve
from longshore.plugins import DefaultBinder


class Ending(enum.Enum):
    """Where an attempt leaves the pod."""

    BOUND = enum.auto()
    # Gone: nothing is left to schedule.
    DROPPED = enum.auto()
    # To be tried again after a while.
    RETRIED = enum.auto()
    # To be tried again when something happens that may help, or when the pod itself changes.
    SET_ASIDE = enum.auto()
    # To be tried again at once.
    ACTIVATED = enum.auto()


class Fate(msgspec.Struct, frozen=True):
    ending: Ending
    # The plugins that refused the pod, and those of them that wait for something in particular.
    rejectors: frozenset[str] = frozenset()
    pending: frozenset[str] = frozenset()
    # What metrics call it.
    result: Result = "unschedulable"


_BOUND = Fate(Ending.BOUND, result="scheduled")
_DROPPED = Fate(Ending.DROPPED, result="error")
_RETRIED = Fate(Ending.RETRIED, result="error")
# Nothing is wrong but that there are no nodes.
_NO_NODES = Fate(Ending.SET_ASIDE, frozenset({WITHOUT_NODES}))

_LOOK_AHEAD = "PreBindPreFlight"
_DEFAULT_BINDER = f'running Bind plugin "{DefaultBinder.name}": '

Step = Ask | WaitOnPermit | BindingBegins | MayGiveWay | Consult | BindThrough
Cycle = Generator[Step, Outcome, Fate]
_Steps = Generator[Step, Outcome, Status | None]


class Cycles:
    """Makes the cycles of one profile."""

    def __init__(
        self,
        chooser: Chooser,
        cluster: ClusterState,
        records: Records,
        tell: Callable[[Tell], None],
        webhooks: Webhooks | None = None,
    ) -> None:
        self._tell = tell
        self._chooser = chooser
        self._records = records
        self._profile = chooser.profile
        self._cluster = cluster
        self._webhooks = webhooks
        self.observer: Observer = Unobserved()
        self._post_filters = self._profile.at(POST_FILTER)
        self._binds, self._post_binds = self._profile.at(BIND), self._profile.at(POST_BIND)
        self._binds_itself = isinstance(next(iter(self._binds), None), DefaultBinder)

    def run(self, entry: Entry, pod: PodInfo, key: bytes) -> Cycle:
        """Decide, bind, and tell people. `entry` holds the newest version of the pod throughout."""
        if pod.problem:
            # Nothing but another version of the pod can cure it.
            self._records.failed(entry.pod, self._profile, pod.problem)
            report_failed(self._tell, entry.pod, Status.error(pod.problem))
            return Fate(Ending.SET_ASIDE, frozenset({UNREADABLE}), result="error")
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

    # No node will do.

    def _look_further(self, entry: Entry, pod: PodInfo, unplaced: Unplaced) -> Cycle:
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
        fate = Fate(Ending.SET_ASIDE, frozenset(diagnosis.rejectors), frozenset(diagnosis.pending))
        if nominated and result.victims:
            self.observer.preempted(len(result.victims))
            evicted = yield from evict(
                result.victims,
                pod,
                nominated,
                self._cluster,
                self._profile.scheduler_name,
                self._tell,
            )
            if not evicted:
                return Fate(Ending.ACTIVATED)
        return fate

    # The node is chosen.

    def _place(self, entry: Entry, pod: PodInfo, placement: Placement) -> Cycle:
        node, state = placement.node, placement.attempt.state
        self._cluster.assume(pod, node)
        self._cluster.nominations.remove(pod.pod.metadata.uid)
        plugins = placement.attempt.shape.concerned
        status = self._reserve(plugins.reserves, state, pod, node)
        waits: dict[str, float] = {}
        if status is None and plugins.permits:
            status = self._permit(plugins.permits, state, pod, node, waits)
        if status is None and (waits or plugins.pre_binds):
            status = yield from self._prepare(entry, pod, placement, waits)
        if status is not None:
            return self._give_up(entry, pod, placement, status)
        return (yield from self._bind(entry, pod, placement))

    def _reserve(
        self, plugins: Sequence[Reserve], state: CycleState, pod: PodInfo, node: str
    ) -> Status | None:
        for plugin in plugins:
            status = _told(plugin.name, "Reserve", lambda p=plugin: p.reserve(state, pod, node))
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
            except PLUGIN_ERRORS as error:  # whatever a plugin does, only this attempt fails
                return Status.error(f'running Permit plugin "{plugin.name}": {error!r}')
            if (status := _checked(plugin.name, "Permit", answer)) is not None:
                return status
        return None

    def _prepare(self, entry: Entry, pod: PodInfo, placement: Placement, waits: dict[str, float]) -> _Steps:
        """Wait for permissions, then let PreBind do its work."""
        node, state = placement.node, placement.attempt.state
        at_work: list[PreBind] = []
        for plugin in placement.attempt.shape.concerned.pre_binds:
            look_ahead = getattr(plugin, "pre_bind_pre_flight", None)
            status = None
            if look_ahead is not None:
                status = _told(plugin.name, _LOOK_AHEAD, lambda look=look_ahead: look(state, pod, node))
            if status is None:
                at_work.append(plugin)
            elif status.rejected:
                return Status.error(f'running {_LOOK_AHEAD} plugin "{plugin.name}": {status.message}')
            elif status.code is not Code.SKIP:
                return status
        if waits or at_work:
            self._tell(Nominate.of(entry.pod, node))
        if waits:
            outcome = yield WaitOnPermit(waits)
            if isinstance(outcome, Answered) and isinstance(outcome.value, Status):
                return outcome.value
        yield BindingBegins()
        for plugin in at_work:
            preempted = Status.error(f'running PreBind plugin "{plugin.name}": preempted')
            yield MayGiveWay(partial(self._give_up, entry, pod, placement, preempted))
            status = yield from _answer(plugin.name, "PreBind", plugin.pre_bind, state, pod, node)
            yield MayGiveWay(None)
            if status is not None:
                return _broken(status)
        return None

    # It is made so.

    def _bind(self, entry: Entry, pod: PodInfo, placement: Placement) -> Cycle:
        node, state = placement.node, placement.attempt.state
        outcome: Outcome | None = None
        who = ""
        if self._webhooks is not None:
            outcome = yield from self._webhooks.bind(pod.pod, node)
        if outcome is None and self._binds_itself:
            who = _DEFAULT_BINDER
            outcome = yield Bind.of(pod.pod, node)
        if outcome is None:
            status = yield from self._ask_binders(state, pod, node)
            if status is not None:
                return self._give_up(entry, pod, placement, _broken(status))
        elif not isinstance(outcome, Succeeded):
            return self._not_bound(entry, pod, placement, outcome, who)
        report_bound(self._tell, pod.pod, node)
        for plugin in self._post_binds:
            # What it says changes nothing any more.
            yield from _answer(plugin.name, "PostBind", plugin.post_bind, state, pod, node)
        return _BOUND

    def _ask_binders(self, state: CycleState, pod: PodInfo, node: str) -> _Steps:
        for plugin in self._binds:
            status = yield from _answer(plugin.name, "Bind", plugin.bind, state, pod, node)
            if status is None or status.code is not Code.SKIP:
                return status
        return Status.error("no Bind plugin took the pod")

    def _not_bound(
        self, entry: Entry, pod: PodInfo, placement: Placement, outcome: Outcome, who: str
    ) -> Fate:
        if isinstance(outcome, Gone):
            self._undo(pod, placement)
            return _DROPPED
        if isinstance(outcome, Conflict):
            # Most likely bound by someone else, and the watch is about to say so; else it is tried again.
            self._undo(pod, placement)
            return _RETRIED
        # The bind may have landed after all, with only its answer lost. So the room stays taken until the
        # next attempt begins, by when the watch has had its time to tell.
        self._unreserve(pod, placement)
        message = who + (outcome.message if isinstance(outcome, Failed) else repr(outcome))
        self._records.failed(entry.pod, self._profile, message, placement.node)
        report_failed(self._tell, entry.pod, Status.error(message), nominated_node="")
        return _RETRIED

    def _give_up(self, entry: Entry, pod: PodInfo, placement: Placement, status: Status) -> Fate:
        """The pod had its node already, so nothing was wrong with the other ones."""
        self._undo(pod, placement)
        self._records.failed(entry.pod, self._profile, status.message, placement.node)
        if not status.rejected:
            report_failed(self._tell, entry.pod, status, nominated_node="")
            return _RETRIED
        reasons = ", ".join(f"1 {reason}" for reason in sorted(status.reasons))
        told = Status.unschedulable(f"0/1 nodes are available: {reasons}.")
        report_failed(self._tell, entry.pod, told, nominated_node="")
        plugins = frozenset({status.plugin})
        if status.code is Code.PENDING:
            return Fate(Ending.SET_ASIDE, pending=plugins)
        return Fate(Ending.SET_ASIDE, plugins)

    def _undo(self, pod: PodInfo, placement: Placement) -> None:
        self._unreserve(pod, placement)
        self._cluster.forget(pod.pod)

    def _unreserve(self, pod: PodInfo, placement: Placement) -> None:
        attempt = placement.attempt
        for plugin in reversed(attempt.shape.concerned.reserves):
            _told(plugin.name, "Unreserve", partial(plugin.unreserve, attempt.state, pod, placement.node))


def _patience(wait: Wait) -> float:
    if not isfinite(wait.seconds):
        raise ValueError(f"{wait!r} would never end")
    return min(max(wait.seconds, 0.0), MAX_PERMIT_WAIT)


def _told(plugin: str, point: str, call: Any) -> Status | None:
    try:
        answer = call()
    except PLUGIN_ERRORS as error:  # as above
        return Status(Code.ERROR, (f'running {point} plugin "{plugin}": {error!r}',), plugin)
    return _checked(plugin, point, answer)


def _checked(plugin: str, point: str, answer: object) -> Status | None:
    """The answer as a status of the plugin; None for success."""
    if answer is None:
        return None
    if not isinstance(answer, Status):
        return Status(Code.ERROR, (f'running {point} plugin "{plugin}": {answer!r} is no Status',), plugin)
    if answer.code is Code.SUCCESS:
        return None
    if answer.rejected or answer.code is Code.SKIP:
        return Status(answer.code, answer.reasons, plugin)
    return Status(Code.ERROR, (f'running {point} plugin "{plugin}": {answer.message}',), plugin)


def _answer(plugin: str, point: str, method: Any, state: CycleState, pod: PodInfo, node: str) -> _Steps:
    """What the plugin says, whether at once, step by step or later."""
    try:
        answer: Answer = method(state, pod, node)
        if inspect.isgenerator(answer):
            answer = yield from answer
        elif isinstance(answer, Awaitable):
            outcome = yield Run(plugin, answer)
            answer = outcome.value if isinstance(outcome, Answered) else Status.error(_words(outcome))
    except PLUGIN_ERRORS as error:  # as above
        return Status(Code.ERROR, (f'running {point} plugin "{plugin}": {error!r}',), plugin)
    return _checked(plugin, point, answer)


def _broken(status: Status) -> Status:
    """From PreBind on a refusal is a failure like any other: the attempt is repeated after a while."""
    return Status(Code.ERROR, status.reasons, status.plugin)


def _words(outcome: Outcome) -> str:
    return outcome.message or type(outcome).__name__
