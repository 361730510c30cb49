"""Counts what the engine does, for metrics that have the same meaning as in kube-scheduler.

The scheduler's thread only adds numbers; `scheduler_metrics` renders them for Prometheus in another thread.
"""

import random
import time
from collections.abc import Callable

from longshore.engine import Engine
from longshore.engine.answers.observer import Result
from longshore.engine.decision.chooser import Placement, Unplaced
from longshore.engine.queue.entry import QueueEntry
from longshore.framework import Code, Status
from longshore.serve.metrics.histogram import Histogram, exponential
from longshore.serve.metrics.plugin_timing import ERROR, SUCCESS, Sampler

# The label of a set that no planner service has planned, without a fallback.
NOBODY = "nobody"
# Pods with this many attempts or more are counted together.
MOST_ATTEMPTS = 15
_RESULTS: tuple[Result, ...] = ("scheduled", "unschedulable", "error")
_SECONDS = exponential(0.001, 2, 15)
PLAN_SECONDS = _SECONDS
_SLI_SECONDS = exponential(0.01, 2, 20)
_PREEMPTION = "DefaultPreemption"
# Plugins are measured in one attempt out of ten, as in kube-scheduler, but at least this far apart.
_ONE_IN = 10
_SECONDS_BETWEEN = 0.01


class Metrics:
    """An `Observer` of one engine: `engine.observe(Metrics(engine))`."""

    def __init__(self, engine: Engine, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self.engine = engine
        self._clock = clock
        # By plugin, point and status, for all profiles together.
        self.plugins: dict[tuple[str, str, str], Histogram] = {}
        self.samplers = {
            name: Sampler(profile, self.plugins, clock) for name, profile in engine.profiles.items()
        }
        # By result and profile.
        self.attempts = {
            result: {name: Histogram(_SECONDS) for name in engine.profiles} for result in _RESULTS
        }
        self.algorithm = Histogram(_SECONDS)
        self.attempts_needed = Histogram(exponential(1, 2, 5))
        self.sli = [Histogram(_SLI_SECONDS) for _ in range(MOST_ATTEMPTS)]
        self.permit_waits: dict[str, Histogram] = {}
        self.preemption_attempts = 0
        self.victims = Histogram(exponential(1, 2, 7))
        # Plans of pod sets: their number by planner and outcome, and their durations by planner.
        self.plans: dict[tuple[str, str], int] = {}
        self.planning: dict[str, Histogram] = {}
        # By place in the queue and the event that brought the pod there.
        self.incoming: dict[tuple[str, str], int] = {}
        self._measured: QueueEntry | None = None
        # Attempts since the last measured one, and when to measure again.
        self._begun = 0
        self._next_after = 0
        self._next_time = 0.0

    def attempt_begins(self, entry: QueueEntry) -> Callable[[], None] | None:
        now = entry.began = self._clock()
        self._begun += 1
        if self._begun < self._next_after or now < self._next_time:
            return None
        return self._measure(entry)

    def _measure(self, entry: QueueEntry) -> Callable[[], None]:
        begun, self._begun = self._begun, 0
        # Not every tenth attempt: pods may be created in a pattern.
        self._next_after = random.randint(1, 2 * _ONE_IN - 1)
        self._next_time = entry.began + _SECONDS_BETWEEN
        self._measured = entry
        durations = (histogram for found in self.attempts.values() for histogram in found.values())
        for histogram in (self.algorithm, self.attempts_needed, *self.sli, *durations):
            histogram.tidy()
        return self.samplers[entry.pod.spec.scheduler_name].begin(begun)

    def decided(self, entry: QueueEntry, decision: Placement | Unplaced | Status) -> None:
        self.algorithm.observe(self._clock() - entry.began)
        if entry is self._measured:
            self._measured = None
            self.samplers[entry.pod.spec.scheduler_name].decided(decision)

    def attempt_ended(self, entry: QueueEntry, result: Result, *, now: float) -> None:
        self.attempts[result][entry.pod.spec.scheduler_name].observe(self._clock() - entry.began)
        if result == "scheduled":
            attempts = entry.attempts
            self.attempts_needed.observe(attempts)
            self.sli[attempts - 1 if attempts < MOST_ATTEMPTS else -1].observe(now - entry.added)

    def bind_answered(self, profile: str, seconds: float, *, bound: bool) -> None:
        self.samplers[profile].observe("Bind", SUCCESS if bound else ERROR, seconds)

    def permit_waited(self, seconds: float, code: Code) -> None:
        self.permit_waits.setdefault(code.value, Histogram(_SECONDS)).observe(seconds)

    def post_filtered(self, plugin: str) -> None:
        self.preemption_attempts += plugin == _PREEMPTION

    def preempted(self, victims: int) -> None:
        self.victims.observe(victims)

    def queued(self, place: str, why: str) -> None:
        key = place, why
        self.incoming[key] = self.incoming.get(key, 0) + 1

    def planned(self, planner: str, seconds: float, *, placed: int, left_out: int) -> None:
        key = planner or NOBODY, outcome_of(placed=placed, left_out=left_out)
        self.plans[key] = self.plans.get(key, 0) + 1
        durations = self.planning.setdefault(key[0], Histogram(PLAN_SECONDS))
        durations.observe(seconds)
        durations.tidy()


def outcome_of(*, placed: int, left_out: int) -> str:
    """Return the outcome of a plan."""
    return "complete" if not left_out else "partial" if placed else "none"
