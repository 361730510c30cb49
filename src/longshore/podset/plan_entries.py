"""The entries of a set's plan: the stored ones, the wanted ones, and how they are written.

The plan belongs to the controllers of its pods, so that it is deleted with the last of them even while no
scheduler runs.
"""

from collections.abc import Collection, Generator, Iterable, Mapping
from hashlib import sha256
from typing import Any

import msgspec

from longshore.api import Pod
from longshore.api.pod_set import POD_SET_LABEL, SchedulePlan
from longshore.framework.effects import Ask, CreateObject, DeleteObject, Outcome, PatchObject
from longshore.podset.conditions import seconds_of
from longshore.podset.sets import PodSet

# Annotations of a stored plan: the entries of other clients for pods to come; and a digest of all
# entries at that time. If it no longer matches, any entry without a pod may be one for a pod to come.
AWAITED = "longshore.dev/awaited-pods"
DIGEST = "longshore.dev/plan-digest"
# Characters of names in the annotation: the API server takes 256 KiB of annotations altogether. Above that,
# `*` says that any entry may await its pod.
_MOST_NAMES = 200_000
_ANY = "*"
# With more owners than this the list is left out, and only the scheduler deletes the plan.
_MOST_OWNERS = 50

# Seconds after its creation during which entries of other clients may be for pods to come.
GRACE = 600.0
# Seconds by which the watch may be behind the answer to a write.
_WATCH_LAG = 5.0


class PlanEntries:
    """`current` is the stored plan: names of pods with their nodes, in the order in which they are placed."""

    def __init__(self, podset: PodSet, scheduler_name: str, *, enters_all: bool = True) -> None:
        """`enters_all`: pods that got a node without having been planned are entered as well."""
        self.podset = podset
        self._scheduler_name = scheduler_name
        self._enters_all = enters_all
        self.current: dict[str, str] = {}
        # Names of pods that were in the set and left it, as far as they may have entries.
        self.gone: set[str] = set()
        # What is on its way to the API server.
        self.writing: dict[str, str] | None = None
        self._looked_at: SchedulePlan | None = None
        self._awaited: frozenset[str] | None = None
        self._expected: dict[str, str] | None = None
        self._expected_until = 0.0

    @property
    def version(self) -> str:
        stored = self.podset.plan
        return "" if stored is None else stored.metadata.resource_version

    def awaits(self, name: str) -> bool:
        """Whether the stored plan says that this pod has yet to come."""
        if self.podset.plan is None or name not in self.current:
            return False
        awaited = self._awaited_by_the_stored()
        return awaited is None or name in awaited

    def revised(
        self, more: Mapping[str, str] | None = None, *, without: Collection[str] = ()
    ) -> dict[str, str]:
        """Return the wanted entries, with `more`. A bound pod's entry is the node that it has."""
        bound = self.podset.bound.values()
        there = {pod.metadata.name: pod.spec.node_name for pod in bound}
        entered = (
            pod for pod in bound if self._enters_all and pod.spec.scheduler_name == self._scheduler_name
        )
        ours = {pod.metadata.name: pod.spec.node_name for pod in entered}
        gone = self.gone - self._present()
        entries = {name: node for name, node in self.current.items() if name not in without}
        return {
            name: there.get(name, node)
            for name, node in {**entries, **(more or {}), **ours}.items()
            if name not in gone
        }

    def note_left_behind(self, *, wall: float) -> None:
        """Find entries that Pallet left behind: it does not see every pod go.

        They look like entries by hand for pods to come. Those are kept if the plan is young, if the scheduler
        has written it since, or as long as none of its pods is bound and the set is held.
        """
        stored, present = self.podset.plan, self._present()
        if stored is None or AWAITED in stored.metadata.annotations:
            return
        created = seconds_of(stored.metadata.creation_timestamp)
        if created is None or wall - created < GRACE:
            return
        bound = {pod.metadata.name for pod in self.podset.bound.values()}
        if not bound.isdisjoint(self.current) or (self.podset.released and not present):
            self.gone.update(self.current.keys() - present)

    def is_adopted(self, entries: Mapping[str, str]) -> bool:
        """Whether the annotations of the stored plan say which of its entries await their pods."""
        stored, awaited = self.podset.plan, self._awaited_of(entries)
        if stored is None or awaited == entries.keys():
            # No pod has come yet.
            return True
        return annotations(entries, awaited).items() <= stored.metadata.annotations.items()

    def wrote(self, entries: dict[str, str], *, now: float) -> None:
        """Note that the plan was stored. The watch may report an older version for a moment."""
        self.current = entries
        self.gone &= entries.keys()
        self._expected, self._expected_until = None, now + _WATCH_LAG
        if entries != self._stored():
            self._expected = entries

    def watched(self, *, now: float) -> bool:
        """Take over what the watch reports. Return whether another client has changed the entries."""
        entries, awaited = self._stored(), self._awaited_by_the_stored()
        if awaited is not None:
            # Written by a scheduler: there has been a pod for each of the others.
            self.gone.update(entries.keys() - awaited)
        if entries == self.writing:
            # The errand that writes them goes on from there.
            self.current = entries
            return False
        if self._expected is not None:
            if entries != self._expected and now < self._expected_until:
                return False
            self._expected = None
        different = entries != self.current
        self.current = entries
        return different

    @property
    def watch_due(self) -> float | None:
        """Return from when on the watch is believed in any case, or None if it already is."""
        return None if self._expected is None else self._expected_until

    def store(self, entries: dict[str, str]) -> Generator[Ask, Outcome, Outcome]:
        """Create, replace or delete the plan, so that it has these entries."""
        podset = self.podset
        stored, name = podset.plan, podset.plan_name
        if not entries:
            if stored is None:
                raise ValueError("there is nothing to store")
            return (yield DeleteObject(SchedulePlan, podset.namespace, name, stored.metadata.uid))
        meta: dict[str, Any] = {
            "labels": {POD_SET_LABEL: podset.name},
            "annotations": annotations(entries, self._awaited_of(entries)),
            "ownerReferences": _owners([*podset.pending.values(), *podset.bound.values()]),
        }
        plan = [{"pod": pod, "node": node} for pod, node in entries.items()]
        body = {"metadata": meta, "spec": {"plan": plan}}
        if stored is None:
            return (yield CreateObject(SchedulePlan, podset.namespace, name, body))
        meta["resourceVersion"] = stored.metadata.resource_version
        return (yield PatchObject(SchedulePlan, podset.namespace, name, body))

    def _stored(self) -> dict[str, str]:
        return entries_of(self.podset.plan)

    def _awaited_by_the_stored(self) -> frozenset[str] | None:
        """Computed once for each version: it takes a while for a large plan."""
        stored = self.podset.plan
        if stored is not self._looked_at:
            self._looked_at = stored
            self._awaited = None if stored is None else awaited_pods(stored)
        return self._awaited

    def _awaited_of(self, entries: Mapping[str, str]) -> frozenset[str]:
        """Return the names of pods to come."""
        return frozenset(entries.keys() - self._present())

    def _present(self) -> set[str]:
        podset = self.podset
        return {pod.metadata.name for pods in (podset.pending, podset.bound) for pod in pods.values()}


def annotations(entries: Mapping[str, str], awaited: Collection[str]) -> dict[str, str]:
    """Return the annotations of a plan with these entries, some of which await their pods."""
    names = ",".join(sorted(awaited))
    return {AWAITED: names if len(names) <= _MOST_NAMES else _ANY, DIGEST: _digest(entries)}


def awaited_pods(plan: SchedulePlan) -> frozenset[str] | None:
    """Return the names in the annotation, or None if the entries differ from what a scheduler wrote."""
    noted, entries = plan.metadata.annotations, entries_of(plan)
    if AWAITED not in noted or noted.get(DIGEST) != _digest(entries):
        return None
    return frozenset(entries if noted[AWAITED] == _ANY else noted[AWAITED].split(",")) - {""}


def entries_of(plan: SchedulePlan | None) -> dict[str, str]:
    """Return nodes by names of pods. If a pod has several entries, the first counts, as for Pallet."""
    found: dict[str, str] = {}
    for entry in () if plan is None else plan.spec.plan:
        found.setdefault(entry.pod, entry.node)
    return found


def _digest(entries: Mapping[str, str]) -> str:
    return sha256(msgspec.json.encode(sorted(entries.items()))).hexdigest()[:16]


def _owners(pods: Iterable[Pod]) -> list[dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for pod in pods:
        controller, meta = pod.metadata.controller, pod.metadata
        if controller is None:
            owner = {"apiVersion": "v1", "kind": "Pod", "name": meta.name, "uid": meta.uid}
        else:
            owner = {
                "apiVersion": controller.api_version,
                "kind": controller.kind,
                "name": controller.name,
                "uid": controller.uid,
            }
        found[owner["uid"]] = owner
        if len(found) > _MOST_OWNERS:
            return []
    return list(found.values())
