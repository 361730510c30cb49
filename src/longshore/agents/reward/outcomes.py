"""The outcomes of pods, as rewards. Each outcome counts once, however often the pod is reported.

A pod that fails earns nothing. A container that ends with an error earns half the first time, or if it has
run without an error for long enough since; otherwise it earns nothing either. A pod that completes, or whose
containers have all been up for long enough since they last started, has done well. The end of a pod that is
being deleted says nothing about its node.
"""

import heapq
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from longshore.api.pod_run import ContainerRun, PodRun, TerminatedState
from longshore.api.timestamps import parse_timestamp

WELL = 1.0
HALF = 0.5
FAILED = 0.0

_TYPE_LABELS = ("podtype", "app", "name")


class PodOutcome(NamedTuple):
    type: str
    node: str
    reward: float
    # The time of the outcome, in seconds since 1970.
    time: float


class _Fate:
    """What is known about a pod, so that nothing counts twice."""

    __slots__ = ("counted", "ends", "failed", "node", "type", "up_since")

    def __init__(self, run: PodRun) -> None:
        self.type = pod_type(run.metadata.labels, run.metadata.name)
        self.node = run.spec.node_name
        self.failed = False
        # Since when all of its containers have been up, and the last such time that was rewarded.
        self.up_since: float | None = None
        self.counted: float | None = None
        # The last end with an error, and its time, by container.
        self.ends: dict[str, tuple[str, float]] = {}


class Outcomes:
    """The outcomes of all pods. After `long_enough` seconds without an error, a container did well."""

    def __init__(self, *, long_enough: float) -> None:
        self._long_enough = long_enough
        # By the UID of the pod.
        self._fates: dict[str, _Fate] = {}
        # When pods will have been up for long enough; it may contain pods that no longer are up.
        self._due: list[tuple[float, str]] = []

    @property
    def deadline(self) -> float | None:
        """When `due` has an outcome, in seconds since 1970."""
        return self._due[0][0] if self._due else None

    def due(self, time: float) -> Iterator[PodOutcome]:
        """Yield the outcomes of pods that have been up for long enough by now."""
        while self._due and self._due[0][0] <= time:
            at, uid = heapq.heappop(self._due)
            fate = self._fates.get(uid)
            if fate is None or fate.up_since is None or fate.up_since == fate.counted:
                continue
            if fate.up_since + self._long_enough == at:
                fate.counted = fate.up_since
                yield PodOutcome(fate.type, fate.node, WELL, at)

    def reported(self, run: PodRun, *, found: bool, time: float) -> Iterator[PodOutcome]:
        """Yield the new outcomes of a pod. `found`: it is new to us, but may have existed for a long time."""
        meta, status = run.metadata, run.status
        if not run.spec.node_name:
            return
        fate = self._fates.get(meta.uid)
        if fate is None:
            fate = self._fates[meta.uid] = _Fate(run)
        # For outcomes that have no time of their own.
        seen_at = (_past(meta.creation_timestamp, time) or time) if found else time
        up_since = None
        if meta.deletion_timestamp is not None:
            pass
        elif status.phase == "Running":
            for container in status.container_statuses:
                yield from self._ends(fate, container, seen_at, time)
            up_since = _up_since(run, fate.up_since or seen_at, time)
        elif status.phase == "Succeeded" and fate.counted is None:
            fate.counted = _over_since(run, time) or seen_at
            yield PodOutcome(fate.type, fate.node, WELL, fate.counted)
        elif status.phase in ("Failed", "Unknown") and not fate.failed:
            fate.failed = True
            yield PodOutcome(fate.type, fate.node, FAILED, _over_since(run, time) or seen_at)
        if up_since != fate.up_since:
            fate.up_since = up_since
            if up_since is not None and up_since != fate.counted:
                heapq.heappush(self._due, (up_since + self._long_enough, meta.uid))

    def gone(self, run: PodRun) -> None:
        self._fates.pop(run.metadata.uid, None)

    def _ends(self, fate: _Fate, container: ContainerRun, seen_at: float, now: float) -> Iterator[PodOutcome]:
        """Yield the outcomes of runs of the container that ended with an error and are not counted yet."""
        for number, end in _ended(container):
            if not end.exit_code:
                continue
            which, time = end.finished_at or f"#{number}", _past(end.finished_at, now) or seen_at
            before = fate.ends.get(container.name)
            if before is not None and (which == before[0] or time < before[1]):
                continue
            fate.ends[container.name] = which, time
            once_in_a_while = before is None or time - before[1] > self._long_enough
            yield PodOutcome(fate.type, fate.node, HALF if once_in_a_while else FAILED, time)


def pod_type(labels: Mapping[str, str], name: str) -> str:
    """Return the value of a label, or else the pod's name. Pods of a type should behave alike."""
    return next((labels[key] for key in _TYPE_LABELS if labels.get(key)), name)


def _up_since(run: PodRun, seen_at: float, now: float) -> float | None:
    """Return since when all containers have been up, or None if one is not up."""
    states = [container.state.running for container in run.status.container_statuses]
    if not all(states):
        return None
    return max((_past(s.started_at, now) or seen_at for s in states if s is not None), default=seen_at)


def _over_since(run: PodRun, now: float) -> float | None:
    ends = [end for container in run.status.container_statuses for _, end in _ended(container)]
    return max((at for end in ends if (at := _past(end.finished_at, now)) is not None), default=None)


def _ended(container: ContainerRun) -> Iterator[tuple[int, TerminatedState]]:
    """Yield the runs of the container that have ended, with their numbers, the earlier one first."""
    for back, state in ((1, container.last_state), (0, container.state)):
        if state.terminated is not None:
            yield container.restart_count - back, state.terminated


def _past(text: str | None, now: float) -> float | None:
    """Return the time, or None if it is invalid or in the future, because a node's clock is ahead of ours."""
    at = parse_timestamp(text)
    return at if at <= now else None
