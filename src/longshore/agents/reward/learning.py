"""Learns rewards from what becomes of pods, and keeps them in a ConfigMap so that they survive a restart.

The ConfigMap is read once, when we may act for the first time; until then what is told is put aside, and no
pod is tried before the answer is there. It says until when outcomes are in its values: of what was found or
put aside only the later ones count, so that nothing counts twice. It is written when something has changed,
but not too often, and at the end. Whoever may not read or write it learns all the same, and forgets at its
end.
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
# Outcomes put aside until the ConfigMap was read; the oldest go.
_MOST_ASIDE = 200_000


class RewardController(Controller):
    watches = (PodRun,)

    def __init__(self, args: RewardArgs, handle: Handle) -> None:
        self.args = args
        self.rewards = Rewards(half_life=args.half_life_seconds, most=args.entries)
        # By cluster: an extender asks about nodes that came with a request as well.
        self._columns: WeakKeyDictionary[ClusterState, RewardColumns] = WeakKeyDictionary()
        self._handle = handle
        self._outcomes = Outcomes(long_enough=args.mttf_seconds)
        # What was told before the ConfigMap was read; None since then.
        self._aside: deque[PodOutcome] | None = deque(maxlen=_MOST_ASIDE)
        self._stores = self.unready = bool(args.config_map)
        # When to read and when to write; None: not now.
        self._read_at: float | None = -math.inf
        self._write_at: float | None = None
        self._last_write = -math.inf
        self._written = ""
        self._told: set[str] = set()

    def expected(self, type_: str, cluster: ClusterState) -> Floats:
        """The reward that a pod of the type can expect now, on each row."""
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
        for outcome in self._outcomes.told(run, found=change.old is None, time=now + self._epoch):
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
        # Even if it could not be read: pods are not to wait any longer.
        self.unready = False
        until = -math.inf
        match outcome:
            case Answered(value=ConfigMap() as found):
                try:
                    values, until = decoded(found.data)
                    self.rewards.load(values)
                    self._written = found.data.get(REWARDS, "")
                except ValueError as error:
                    self._tell("what it holds is not ours, so we begin anew", str(error))
            case Failed(status=403, message=message):
                self._do_without("read", message)
            case Failed(message=message):
                self._tell("it cannot be read now; what becomes of pods is put aside", message)
                self._read_at = self._handle.now() + _RETRY
                return
        self._begin(until)

    def _begin(self, until: float) -> None:
        """Count what was put aside, unless it is in the values already."""
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
            # Pods did well where nothing else was expected. Counted again, that would still say nothing.
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
            self._tell("it was not written; we try again", message)
            self._write_at = self._write_at or self._last_write + BETWEEN_WRITES

    def _do_without(self, what: str, message: str) -> None:
        self._stores = False
        self._write_at = None
        self._tell(f"we may not {what} it: rewards are forgotten at the end; grant it and restart", message)

    def _tell(self, what: str, reason: str) -> None:
        """Once for each thing that can go wrong."""
        if what not in self._told:
            self._told.add(what)
            where = f"{self.args.config_map_namespace}/{self.args.config_map}"
            log.warning(f"rewards: {what}", configmap=where, reason=reason)

    @property
    def _epoch(self) -> float:
        return self._handle.wall_time - self._handle.now()
