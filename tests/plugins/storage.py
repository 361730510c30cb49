"""A cluster with volumes for tests, and a driver of PreBind that feeds it the outcomes of its effects."""

from collections.abc import Callable, Generator
from typing import Any, cast

import msgspec
import numpy as np

from longshore.api import CSIDriver, CSIDriverSpec, CSIStorageCapacity, LabelSelector, ObjectMeta, Pod
from longshore.api.meta import ApiObject
from longshore.cluster import ClusterState, PodInfo
from longshore.framework import Code, CycleState, Handle, Rejection, Status
from longshore.framework.effects import Effect, Failed, Outcome, PatchObject, Succeeded, Until

_replace = msgspec.structs.replace


class Storage:
    """A cluster with volumes. Each object that is put gets a new version."""

    def __init__(self, *objects: ApiObject) -> None:
        self.cluster = ClusterState()
        self._version = 0
        self.put(*objects)

    @property
    def handle(self) -> Handle:
        return cast(Handle, self)

    def put(self, *objects: Any) -> None:
        for thing in objects:
            self._version += 1
            meta = _replace(thing.metadata, resource_version=str(self._version))
            kind = _kind(thing)
            new = _replace(thing, metadata=meta)
            self.cluster.put(kind, self.cluster.get(kind, new.key), new)

    def remove(self, thing: Any) -> None:
        self.cluster.put(_kind(thing), thing, None)

    def apply(self, patch: PatchObject) -> None:
        """Change the object as the API server would, and report it as the watch would."""
        key = f"{patch.namespace}/{patch.name}" if patch.namespace else patch.name
        old = self.cluster.get(patch.kind, key)
        assert old is not None
        merged = _merged(msgspec.to_builtins(old), patch.patch)
        self.put(msgspec.convert(merged, patch.kind))


def _kind(thing: Any) -> type[Any]:
    """The API struct behind a builder."""
    return next(k for k in type(thing).__mro__ if k.__module__.startswith("longshore.api"))


def _merged(old: Any, patch: Any) -> Any:
    if not isinstance(patch, dict) or not isinstance(old, dict):
        return patch
    return {**old, **{key: _merged(old.get(key), value) for key, value in patch.items()}}


def verdicts(
    plugin: Any, pod: Pod, cluster: ClusterState, state: CycleState | None = None
) -> dict[str, Status]:
    """The status of each node that the plugin rejects; under "" if PreFilter rejects the pod."""
    state = CycleState() if state is None else state
    info = PodInfo.of(pod)
    if not plugin.concerns(info):
        return {}
    answer = plugin.pre_filter(state, info, cluster)
    if answer is not None:
        return {} if answer.code is Code.SKIP else {"": answer}
    if hasattr(plugin, "filter_node"):
        return _plain_verdicts(plugin, state, info, cluster)
    nodes = cluster.all_nodes()
    found: dict[str, Status] = {}
    rejections: list[Rejection] = plugin.filter(state, info, nodes)
    for rejection in rejections:
        where = np.broadcast_to(rejection.where, len(nodes))
        for row in np.flatnonzero(where & cluster.known).tolist():
            name = cluster.node_name(row)
            code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if rejection.unresolvable else Code.UNSCHEDULABLE
            before = found.get(name, Status(code))
            found[name] = Status(code, (*before.reasons, rejection.reason))
    return found


def _plain_verdicts(plugin: Any, state: CycleState, pod: PodInfo, cluster: ClusterState) -> dict[str, Status]:
    found = {}
    for row in np.flatnonzero(cluster.known).tolist():
        answer = plugin.filter_node(state, pod, cluster.one_node(row))
        if answer is not None:
            found[cluster.node_name(row)] = (
                Status.unschedulable(answer) if isinstance(answer, str) else answer
            )
    return found


def reasons(plugin: Any, pod: Pod, cluster: ClusterState) -> dict[str, tuple[str, ...]]:
    return {node: status.reasons for node, status in verdicts(plugin, pod, cluster).items()}


class PreBindDriver:
    """Runs the generator of PreBind up to the wait for the volume controller, and then from there."""

    def __init__(self, running: Generator[Effect, Outcome, Status | None]) -> None:
        self._running = running
        self.effects: list[Effect] = []
        self.finished = False
        self.status: Status | None = None

    def run(self, answer: Callable[[PatchObject], Outcome]) -> "PreBindDriver":
        """Perform the writes, up to the wait or the end."""
        outcome: Outcome | None = None
        while True:
            try:
                effect = self._running.send(cast(Outcome, outcome))
            except StopIteration as end:
                self.finished, self.status = True, end.value
                return self
            self.effects.append(effect)
            if isinstance(effect, Until):
                return self
            assert isinstance(effect, PatchObject)
            outcome = answer(effect)

    @property
    def wait(self) -> Until:
        assert isinstance(self.effects[-1], Until)
        return self.effects[-1]

    def look(self) -> Outcome | None:
        """The outcome of the wait by now. If there is one, the generator continues to its end."""
        outcome = self.wait.check()
        if outcome is not None:
            self._end(outcome)
        return outcome

    def time_out(self) -> None:
        self._end(Failed(self.wait.timeout))

    def _end(self, outcome: Outcome) -> None:
        try:
            self._running.send(outcome)
        except StopIteration as end:
            self.finished, self.status = True, end.value


def landed(_patch: PatchObject) -> Outcome:
    """The outcome of a write that the API server accepted and the watch has not reported yet."""
    return Succeeded()


def csi_driver(name: str, *, counts: bool = True) -> CSIDriver:
    return CSIDriver(metadata=ObjectMeta(name=name), spec=CSIDriverSpec(storage_capacity=counts))


def pool(
    name: str,
    storage_class: str,
    capacity: str | None,
    *,
    largest: str | None = None,
    labels: dict[str, str] | None = None,
    reachable: bool = True,
) -> CSIStorageCapacity:
    """Storage capacity for volumes of a class, for the nodes with these labels."""
    return CSIStorageCapacity(
        metadata=ObjectMeta(name=name, namespace="kube-system"),
        node_topology=LabelSelector(match_labels=labels or {}) if reachable else None,
        storage_class_name=storage_class,
        capacity=capacity,
        maximum_volume_size=largest,
    )
