"""One cluster and two schedulers, which decide about the same pod in turn.

The pod is created for kube-scheduler, the result is read from the API server, and the pod is deleted. Then
the same is done for Longshore. If several nodes are equally good, each scheduler can choose any of them. So
the choices are checked against the totals, and the scores in kube-scheduler's log are compared one by one.
"""

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from msgspec.structs import replace
from tests.compare.api import CREATION_ORDER, Api, Document, address, manifest, priority_classes, resource_of
from tests.compare.sides import KubeScheduler, Longshore, Profiles
from tests.compare.twin import Twin

from longshore.api import Node, PersistentVolume, PersistentVolumeClaim, Pod
from longshore.api.meta import ApiObject
from longshore.dev import ControlPlane
from longshore.engine.answers.explanation import Explanation
from longshore.testing import namespace, pod

T = TypeVar("T")
Side = Literal["kube", "longshore"]
SIDES: tuple[Side, Side] = ("kube", "longshore")

_LOWEST = -(1 << 31)
_PRIORITIES = (_LOWEST, 1, 5, 10, 20, 50, 100, 200)
# Besides "default". They stay, because no controller would remove them.
_NAMESPACES = (namespace("probe"), namespace("other", team="other"), namespace("third", team="third"))
_WATCHES_DIFFER_BY = 0.15
_POLL = 0.01
# Of pods that only show how far a scheduler has come.
_MARKER_PROFILE = "least"
_EVENT = ("type", "reason", "action", "message")


@dataclass(frozen=True)
class Answer:
    """The result for a pod: its node, or its condition and event."""

    node: str = ""
    message: str = ""
    nominated: str = ""
    # Type, reason, action and text of the first event about it.
    event: tuple[str, ...] = ()
    # The PodScheduled condition without its time, if it is not met.
    condition: Document = field(default_factory=dict)
    document: Document = field(default_factory=dict, compare=False, repr=False)

    @property
    def comparable(self) -> tuple[str | tuple[str, ...] | Document, ...]:
        """Everything that must be equal if the pod has no node."""
        return (self.condition, self.nominated, self.event)


@dataclass(frozen=True)
class Answers:
    kube: Answer
    longshore: Answer
    # The scores of kube-scheduler's plugins. Empty if fewer than two nodes passed the filters.
    scores: dict[str, dict[str, int]]
    explanation: Explanation


class Arena:
    def __init__(
        self, plane: ControlPlane, folder: Path, profiles: Profiles, *, tie_break: str = "first"
    ) -> None:
        self.plane = plane
        self.api = Api(plane)
        for document in priority_classes(_PRIORITIES):
            self.api.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", document)
        for named in _NAMESPACES:
            plane.create_namespace(named.metadata.name)
            self.api.patch(named, {"metadata": {"labels": named.metadata.labels}})
        self.kube = KubeScheduler(plane, folder, profiles)
        self.longshore = Longshore(plane, folder, profiles, "--tie-break", tie_break)
        self._profile = next(iter(profiles))
        self._made: dict[str, ApiObject] = {}
        self._states = 0
        self._asked = 0
        self._twin: Twin | None = None

    def stop(self) -> None:
        self.longshore.stop()
        self.kube.stop()
        self.api.close()

    # The state of the cluster.

    def become(self, *things: ApiObject) -> None:
        """Replace the cluster by these objects, and wait until both schedulers know them."""
        self._clear(things)
        for kind in CREATION_ORDER:
            if kind is PersistentVolumeClaim and self.plane.controller_manager is not None:
                self.until(self._volumes_are_known, "the controller has seen all volumes")
            new = (thing for thing in things if kind_of(thing) is kind and address(thing) not in self._made)
            self.add(*new)
            if kind in (Node, Pod) and self.plane.kwok is not None:
                self.until(self._is_alive, "KWOK and the controllers have taken care of all")
        self.settle()

    def _volumes_are_known(self) -> bool:
        """Whether the controller knows all volumes. If not, a claim waits for its next round."""
        phases = [volume["status"].get("phase", "Pending") for volume in self.api.listed(PersistentVolume)]
        return "Pending" not in phases

    def _is_alive(self) -> bool:
        """Whether all nodes are ready, and the pods on them run."""
        nodes, pods = self.api.listed(Node), self.api.listed(Pod)
        taints = [taint["key"] for node in nodes for taint in node["spec"].get("taints", ())]
        waiting = [p for p in pods if "nodeName" in p["spec"] and p["status"]["phase"] == "Pending"]
        return "node.kubernetes.io/not-ready" not in taints and not waiting

    def add(self, *things: ApiObject) -> None:
        for thing in things:
            self.api.create(thing)
            self._made[address(thing)] = thing
        self._twin = None

    def remove(self, *things: ApiObject) -> None:
        self.api.delete(*things)
        for thing in things:
            self._made.pop(address(thing), None)
        self._twin = None

    def bring_back(self, names: Iterable[str]) -> None:
        """Create deleted pods again."""
        gone = [thing for thing in self._made.values() if isinstance(thing, Pod)]
        for thing in gone:
            if thing.metadata.name in names:
                self.api.delete(thing)
                self.api.create(thing)
        self.settle()

    def _clear(self, wanted: Iterable[ApiObject]) -> None:
        """Delete everything except nodes that KWOK has initialized: it is slow with one of the same name."""
        kept: dict[str, ApiObject] = {
            address(thing): thing
            for thing in wanted
            if self.plane.kwok and isinstance(thing, Node) and self._made.get(address(thing)) == thing
        }
        for kind in reversed(CREATION_ORDER):
            going = [
                thing for path, thing in self._made.items() if isinstance(thing, kind) and path not in kept
            ]
            if kind is Node and kept:
                self.api.delete(*going)
                continue
            for collection in sorted({address(thing).rpartition("/")[0] for thing in going}):
                self.api.request("DELETE", collection, {"gracePeriodSeconds": 0})
        # Controllers delay the deletion of some objects.
        protected = (PersistentVolume, PersistentVolumeClaim)
        slow = [thing for thing in self._made.values() if isinstance(thing, protected)]
        self.until(lambda: not any(self.api.find(thing) for thing in slow), "all is gone")
        self._made = kept

    def settle(self) -> None:
        """Wait until both schedulers know all that happened so far.

        Events of a watch are in order. A scheduler that places a pod by the newest label of a node knows all
        earlier changes of nodes and pods. The watches of other kinds get some more time.
        """
        self._twin = None
        node = next(thing for thing in self._made.values() if isinstance(thing, Node))
        self._states += 1
        mark = f"state-{self._states}"
        self.api.patch(node, {"metadata": {"labels": {"state": mark}}})
        for side in SIDES:
            probe = pod(f"{mark}-{side}", namespace="probe").node_selector(state=mark).tolerate()
            probe = probe.scheduler(f"{side}-{self._profile}")
            self.api.create(probe)
            self.until_bound(probe)
            self.api.delete(probe)
        time.sleep(_WATCHES_DIFFER_BY)

    def until(self, check: Callable[[], T | None], what: str, *, within: float = 20.0) -> T:
        """Wait until it is so."""
        deadline = time.monotonic() + within
        while not (found := check()):
            self.kube.require_running()
            self.longshore.require_running()
            assert time.monotonic() < deadline, f"not so after {within:g} s: {what}; found: {found!r}"
            time.sleep(_POLL)
        return found

    def until_queues_are_worked_off(self) -> None:
        """Wait until each scheduler has tried all that it had queued, without disturbing pods that wait.

        Two markers that come later show it. The first is tried before pods that back off, and the second
        after them: a scheduler with nothing else to do does not let pods back off. Markers need no room, have
        a profile of their own, and stay until the cluster changes.
        """
        for _ in range(2):
            for side in SIDES:
                self._asked += 1
                marker = pod(f"marker-{self._asked}", namespace="probe").tolerate()
                marker = marker.scheduler(f"{side}-{_MARKER_PROFILE}")
                self.add(marker)
                self.until_bound(marker)

    def until_refused(self, *pods: Pod) -> None:
        """Wait until each of the pods has been tried in vain."""

        def refused(pod: Pod) -> bool:
            conditions = self.api.get(pod)["status"].get("conditions", ())
            return any(c["type"] == "PodScheduled" and c["status"] == "False" for c in conditions)

        self.until(lambda: all(map(refused, pods)), f"{[each.metadata.name for each in pods]} are refused")

    def until_bound(self, bound: Pod) -> str:
        """Wait until the pod has a node, and return it."""
        what = f"{bound.metadata.name} is bound"
        return self.until(lambda: str(self.api.get(bound)["spec"].get("nodeName", "")), what)

    # The questions.

    def ask(self, side: Side, asked: Pod, *, profile: str = "", **spec: Any) -> Answer:
        """Return the result of the scheduler for the pod, and delete the pod. `spec` adds fields to it."""
        self._asked += 1
        renamed = replace(asked.metadata, name=f"{asked.metadata.name}-{self._asked}")
        asked = replace(asked, metadata=renamed)
        body = manifest(asked)
        body["spec"] |= {"schedulerName": f"{side}-{profile or self._profile}", **spec}
        self.api.request("POST", resource_of(asked).path(namespace=asked.metadata.namespace), body)
        answer = self.until(lambda: self._answer(asked), f"{side} answers about {asked.metadata.name}")
        self.api.delete(asked)
        return answer

    def _answer(self, asked: Pod) -> Answer | None:
        document = self.api.get(asked)
        status, node = document["status"], document["spec"].get("nodeName", "")
        conditions = [c for c in status.get("conditions", ()) if c["type"] == "PodScheduled"]
        refused = [c for c in conditions if c["status"] == "False"]
        if not node and not refused:
            return None
        gated = bool(refused) and refused[0]["reason"] == "SchedulingGated"
        events = [] if gated else self.api.events(document["metadata"]["uid"])
        if not events and not gated:
            return None
        first = min(events, key=lambda event: int(event["metadata"]["resourceVersion"]), default=None)
        return Answer(
            node=node,
            message="" if node else refused[0].get("message", ""),
            nominated=status.get("nominatedNodeName", ""),
            event=() if first is None else tuple(first[part] for part in _EVENT),
            condition={}
            if node
            else {key: refused[0][key] for key in refused[0] if not key.endswith("Time")},
            document=document,
        )

    def both(self, asked: Pod, *, profile: str = "", **spec: Any) -> Answers:
        """Return the results of both schedulers. The pod must not leave changes in the cluster."""
        kube = self.ask("kube", asked, profile=profile, **spec)
        named = kube.document["metadata"]
        scores = self.kube.scores(f"{named['namespace']}/{named['name']}")
        longshore = self.ask("longshore", asked, profile=profile, **spec)
        if self._twin is None:
            self._twin = Twin(self.api, str(self.longshore.configuration))
        pending = json.loads(json.dumps(longshore.document))
        pending["spec"].pop("nodeName", None)
        return Answers(kube, longshore, scores, self._twin.explain(pending))


def _timeless(condition: Document) -> Document:
    return {key: value for key, value in condition.items() if not key.endswith("Time")}


def kind_of(thing: ApiObject) -> type[ApiObject]:
    return next(kind for kind in CREATION_ORDER if isinstance(thing, kind))
