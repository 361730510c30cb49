"""Learns rewards from the outcomes of pods, and stores them in a ConfigMap so that they survive a restart.

The ConfigMap is read once, when the controller may act for the first time. Until then, outcomes are buffered
and no pod is tried. The ConfigMap says up to which time its values include outcomes, and only later ones are
added, so that nothing counts twice. It is written after changes, but not too often, and at the end. Without
permission to read or write it, the controller still learns, but forgets everything at its end.
"""

import math
from collections import deque
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

import structlog

from longshore.agents.reward.arguments import RewardArgs
from longshore.agents.reward.columns import RewardColumns
from longshore.agents.reward.outcomes import Outcomes, PodOutcome
from longshore.agents.reward.store import REWARDS, decoded, encoded
from longshore.agents.reward.table import Rewards
from longshore.api import Change
from longshore.api.config_map import ConfigMap
from longshore.api.pod_run import PodRun
from longshore.cluster import ClusterState
from longshore.cluster.arrays import Floats
from longshore.framework import Handle
from longshore.framework.controllers import Controller, Errand
from longshore.framework.effects import (
    Answered,
    CreateObject,
    Failed,
    GetObject,
    Gone,
    Outcome,
    PatchObject,
    Succeeded,
)

log = structlog.get_logger()

# Seconds between two writes, and until a read that failed is repeated.
BETWEEN_WRITES = 10.0
_RETRY = 5.0
# The most outcomes that are buffered until the ConfigMap is read; beyond the limit the oldest are dropped.
_MOST_ASIDE = 200_000


class RewardController(Controller):
    watches = (PodRun,)

    def __init__(self, args: RewardArgs, handle: Handle) -> None:
        self.args = args
        self.rewards = Rewards(half_life=args.half_life_seconds, most=args.entries)
        # By cluster, because an extender also has clusters with the nodes of one request.
        self._columns: WeakKeyDictionary[ClusterState, RewardColumns] = WeakKeyDictionary()
        self._handle = handle
        self._outcomes = Outcomes(long_enough=args.mttf_seconds)
        # The outcomes from before the ConfigMap was read; None afterwards.
        self._aside: deque[PodOutcome] | None = deque(maxlen=_MOST_ASIDE)
        self._stores = self.unready = bool(args.config_map)
        # When to read and when to write; None means not now.
        self._read_at: float | None = -math.inf
        self._write_at: float | None = None
        self._last_write = -math.inf
        self._written = ""
        self._warned: set[str] = set()

    def expected(self, type_: str, cluster: ClusterState) -> Floats:
        """Return the reward that a pod of the type can expect now on each row."""
        columns = self._columns.setdefault(cluster, RewardColumns(self.rewards))
        return columns.expected(type_, cluster, time=self._handle.wall_time)

    @property
    def deadline(self) -> float | None:
        due = self._outcomes.deadline
        times = [self._read_at, self._write_at, None if due is None else due - self._epoch]
        return min((time for time in times if time is not None), default=None)

    def changed(self, change: Change[Any], *, now: float) -> None:
        run = change.object
        if not isinstance(run, PodRun):
            return
        if self.args.namespaces and run.metadata.namespace not in self.args.namespaces:
            return
        if change.new is None:
            self._outcomes.gone(run)
            return
        for outcome in self._outcomes.reported(run, found=change.old is None, time=now + self._epoch):
            self._count(outcome, now)

    def advance(self, *, now: float) -> Iterable[Errand]:
        if self._read_at is not None and self._read_at <= now:
            self._read_at = None
            if self._stores:
                yield self._read()
            else:
                self._begin(-math.inf)
        for outcome in self._outcomes.due(now + self._epoch):
            self._count(outcome, now)
        if self._write_at is not None and self._write_at <= now:
            yield self._write()

    def finish(self, *, now: float) -> Iterable[Errand]:
        if self._write_at is not None:
            yield self._write()

    def _count(self, outcome: PodOutcome, now: float) -> None:
        if self._aside is not None:
            self._aside.append(outcome)
            return
        self.rewards.reward(outcome.type, outcome.node, outcome.reward, time=outcome.time)
        log.debug("rewarded", type=outcome.type, node=outcome.node, reward=outcome.reward)
        if self._stores and self._write_at is None:
            self._write_at = max(now, self._last_write + BETWEEN_WRITES)

    def _read(self) -> Errand:
        namespace, name = self.args.config_map_namespace, self.args.config_map
        outcome = yield GetObject(ConfigMap, namespace, name)
        # Even if it could not be read, pods need not wait any longer.
        self.unready = False
        until = -math.inf
        match outcome:
            case Answered(value=ConfigMap() as found):
                try:
                    values, until = decoded(found.data)
                    self.rewards.load(values)
                    self._written = found.data.get(REWARDS, "")
                except ValueError as error:
                    self._warn("the ConfigMap has invalid content; starting without rewards", str(error))
            case Failed(status=403, message=message):
                self._do_without("read", message)
            case Failed(message=message):
                self._warn("the ConfigMap cannot be read; outcomes are buffered until it can", message)
                self._read_at = self._handle.now() + _RETRY
                return
        self._begin(until)

    def _begin(self, until: float) -> None:
        """Count the buffered outcomes that the values do not include yet."""
        aside, self._aside = self._aside or (), None
        for outcome in aside:
            if outcome.time > until:
                self._count(outcome, self._handle.now())

    def _write(self) -> Errand:
        namespace, name = self.args.config_map_namespace, self.args.config_map
        self._write_at = None
        self._last_write = self._handle.now()
        data = encoded(self.rewards, now=self._handle.wall_time)
        if data[REWARDS] == self._written:
            # Pods did well where this was expected. Counting them again after a restart changes nothing.
            return
        body = {"data": data}
        outcome: Outcome = yield PatchObject(ConfigMap, namespace, name, body)
        if isinstance(outcome, Gone):
            outcome = yield CreateObject(ConfigMap, namespace, name, body)
        if isinstance(outcome, Succeeded):
            self._written = data[REWARDS]
            return
        message = outcome.message
        if isinstance(outcome, Failed) and outcome.status == 403:
            self._do_without("write", message)
        else:
            self._warn("the ConfigMap was not written; it will be tried again", message)
            self._write_at = self._write_at or self._last_write + BETWEEN_WRITES

    def _do_without(self, what: str, message: str) -> None:
        self._stores = False
        self._write_at = None
        self._warn(
            f"no permission to {what} the ConfigMap: rewards are lost at the end; grant it and restart",
            message,
        )

    def _warn(self, what: str, reason: str) -> None:
        """Log a warning, once for each kind of failure."""
        if what not in self._warned:
            self._warned.add(what)
            where = f"{self.args.config_map_namespace}/{self.args.config_map}"
            log.warning(f"rewards: {what}", configmap=where, reason=reason)

    @property
    def _epoch(self) -> float:
        return self._handle.wall_time - self._handle.now()
