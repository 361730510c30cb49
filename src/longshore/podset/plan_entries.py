"""What is known about the plan of one set: where each pod is to go, and how far each pod has come.

A pod of a released set is `unplanned` until it has an entry. Then it is `ready`, and `going` when it was let
into the queue. One that no node would do for is `left_out` and looks for a node by itself, or it is `barred`
if it may not do that.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from hashlib import sha256
from typing import NamedTuple

import msgspec

from longshore.api import Pod
from longshore.api.pod_set import SchedulePlan
from longshore.podset.backoff import LONGEST, Backoff
from longshore.podset.conditions import seconds_of
from longshore.podset.sets import PodSet

# A pod that carries this scheduling gate is held by the API server itself; the gate goes when it is planned.
GATE = "longshore.dev/pod-set"
# Annotations of a stored plan: the entries that somebody has made for pods to come, and what entries that was
# written about. If the entries are others since, those without a pod may all be such.
AWAITED = "longshore.dev/awaited-pods"
DIGEST = "longshore.dev/plan-digest"
# Characters of names that are told: the API server takes 256 KiB of annotations altogether. Instead of more
# it is said that any entry may await its pod.
_MOST_NAMES = 200_000
_ANY = "*"

# Seconds after its creation during which entries that somebody else has made may be about pods to come.
GRACE = 600.0
# Seconds until a plan that was refused is stored, at most: its pods wait for it.
_LONGEST_STORING = 60.0
# So long a watch may be behind the answer to a write.
_WATCH_LAG = 5.0


class Barred(NamedTuple):
    """Why a pod may not look for a node: the reason of its condition, and what that says."""

    reason: str
    message: str


class SetPlan:
    """`entries` is the stored plan: names of pods with their nodes, in the order they are to be placed in."""

    def __init__(self, podset: PodSet, scheduler_name: str, *, enters_all: bool = True) -> None:
        """`enters_all`: pods that got a node without having been planned are entered as well."""
        self.podset = podset
        self._scheduler_name = scheduler_name
        self._enters_all = enters_all
        self.entries: dict[str, str] = {}
        self.released = False
        # What the triggers meant when all pods were last looked at.
        self.meaning: object = None
        # By UID.
        self.unplanned: set[str] = set()
        self.ready: set[str] = set()
        self.going: set[str] = set()
        self.left_out: dict[str, str] = {}
        self.barred: dict[str, Barred] = {}
        # Pods that are scheduled like any others, since nobody plans them.
        self.by_themselves: set[str] = set()
        # Nodes that were planned for the pod, and that would not do when it was tried.
        self.refused: dict[str, set[str]] = {}
        # How often the pod could not be bound to the node that is planned for it.
        self.failures: Counter[str] = Counter()
        # Pods that found a node by themselves and wait until their entry is stored: name and node.
        self.admitted: dict[str, tuple[str, str]] = {}
        # Of a set that goes only as a whole: pods that have their node and wait for the missing ones.
        self.gathered: set[str] = set()
        self.missing: set[str] = set()
        # Pods that are to be spread.
        self.spread: set[str] = set()
        # Pods whose gate is to be taken away, and those for which that is under way.
        self.closed: set[str] = set()
        self.opening: set[str] = set()
        # Pods that people have not been told about.
        self.untold: set[str] = set()
        # Names of pods that have been here and went, as far as they may have entries.
        self.gone: set[str] = set()
        # A plan is being made or written, and what is on its way to the API server.
        self.under_way = False
        self.writing: dict[str, str] | None = None
        # The stored plan may have to be brought in line with the pods.
        self.outdated = False
        # When the barred pods are planned again, if at all by themselves, and not before when.
        self.retry_at: float | None = None
        self.not_before = 0.0
        # While the plan was made, something has happened that may help.
        self.helped = False
        self.status_written = float("-inf")
        # Writes that were refused: of the plan, of its status, and of gates, by UID; why the plan is not
        # stored, if that lasts.
        self.storing = Backoff(longest=_LONGEST_STORING)
        self.telling = Backoff(longest=LONGEST)
        self.shut: dict[str, Backoff] = {}
        self.not_stored = ""
        self._looked_at: SchedulePlan | None = None
        self._awaited: frozenset[str] | None = None
        self._expected: dict[str, str] | None = None
        self._expected_until = 0.0

    @property
    def all_or_nothing(self) -> bool:
        trigger = self.podset.trigger
        return trigger is not None and trigger.spec.all_or_nothing

    @property
    def needs_planning(self) -> bool:
        return bool((self.released and self.unplanned) or self.admitted)

    def is_ours(self, pod: Pod) -> bool:
        """For this scheduler, and with no gate but the one that is ours to take away."""
        return self.is_for_us(pod) and all(gate.name == GATE for gate in pod.spec.scheduling_gates)

    def is_for_us(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name == self._scheduler_name

    def waiting(self) -> Iterator[Pod]:
        """The pods that are to get a node."""
        return (pod for pod in self.podset.pending.values() if self.is_ours(pod))

    def entry(self, pod: Pod) -> str | None:
        """The node that the plan has for the pod, unless it turned out that it will not do."""
        node = self.entries.get(pod.metadata.name)
        return None if node in self.refused.get(pod.metadata.uid, ()) else node

    def awaits(self, name: str) -> bool:
        """Whether the stored plan does not know yet that this pod has come."""
        if self.podset.plan is None or name not in self.entries:
            return False
        awaited = self._awaited_by_the_stored()
        return awaited is None or name in awaited

    def begin_anew(self) -> None:
        """Forget how far the pods have come, but for those that are in the queue or have a node."""
        for marks in (self.left_out, self.barred):
            marks.clear()
        for marked in (self.unplanned, self.missing, self.closed, self.untold, self.by_themselves):
            marked.clear()
        self.retry_at = None
        if not self.released:
            self.refused.clear()

    def forget(self, uid: str) -> None:
        """The pod has its node, or is no more."""
        for marks in (self.left_out, self.barred, self.refused, self.admitted, self.shut):
            marks.pop(uid, None)
        for marked in (self.unplanned, self.ready, self.going, self.gathered, self.missing, self.spread):
            marked.discard(uid)
        for marked in (self.closed, self.opening, self.untold, self.by_themselves):
            marked.discard(uid)
        del self.failures[uid]

    # The plan as it is stored.

    def revised(
        self, more: Mapping[str, str] | None = None, *, without: Collection[str] = ()
    ) -> dict[str, str]:
        """The entries as they ought to be: with these, without those; who has a node is where it is."""
        bound = self.podset.bound.values()
        there = {pod.metadata.name: pod.spec.node_name for pod in bound}
        entered = (pod for pod in bound if self._enters_all and self.is_for_us(pod))
        ours = {pod.metadata.name: pod.spec.node_name for pod in entered}
        gone = self.gone - self._present()
        entries = {name: node for name, node in self.entries.items() if name not in without}
        return {
            name: there.get(name, node)
            for name, node in {**entries, **(more or {}), **ours}.items()
            if name not in gone
        }

    def note_left_behind(self, *, wall: float) -> None:
        """Pallet may have lost sight of pods that went: their entries would stay for ever.

        They look like entries by hand for pods to come. Those are left to themselves if the plan is young, if
        the scheduler has seen it since, or as long as none of its pods is bound and the set is held.
        """
        stored, present = self.podset.plan, self._present()
        if stored is None or AWAITED in stored.metadata.annotations:
            return
        created = seconds_of(stored.metadata.creation_timestamp)
        if created is None or wall - created < GRACE:
            return
        bound = {pod.metadata.name for pod in self.podset.bound.values()}
        if not bound.isdisjoint(self.entries) or (self.podset.released and not present):
            self.gone.update(self.entries.keys() - present)

    def awaited(self, entries: Mapping[str, str]) -> frozenset[str]:
        """Those that are about pods to come."""
        return frozenset(entries.keys() - self._present())

    def is_adopted(self, entries: Mapping[str, str]) -> bool:
        """Whether the stored plan says which of its entries await their pods."""
        stored, awaited = self.podset.plan, self.awaited(entries)
        if stored is None or awaited == entries.keys():
            # Nobody has come.
            return True
        return annotations(entries, awaited).items() <= stored.metadata.annotations.items()

    def wrote(self, entries: dict[str, str], *, now: float) -> None:
        """The plan was stored; what the watch tells may be older for a moment."""
        self.entries = entries
        self.gone &= entries.keys()
        self._expected, self._expected_until = None, now + _WATCH_LAG
        if entries != self._stored():
            self._expected = entries

    def told(self, *, now: float) -> bool:
        """Take in what the watch tells of the plan. Whether the entries are different now."""
        entries, awaited = self._stored(), self._awaited_by_the_stored()
        if awaited is not None:
            # Written by us, or by one before us: there has been a pod for each of the others.
            self.gone.update(entries.keys() - awaited)
        if entries == self.writing:
            # Ours: who has written it goes on from there.
            self.entries = entries
            return False
        if self._expected is not None:
            if entries != self._expected and now < self._expected_until:
                return False
            self._expected = None
        different = entries != self.entries
        self.entries = entries
        return different

    @property
    def watch_due(self) -> float | None:
        """When the watch is to be believed, whatever it tells; None if it is already."""
        return None if self._expected is None else self._expected_until

    def _stored(self) -> dict[str, str]:
        stored = self.podset.plan
        return {} if stored is None else entries_of(stored)

    def _awaited_by_the_stored(self) -> frozenset[str] | None:
        """Worked out once for each version: it takes a while for a large plan."""
        stored = self.podset.plan
        if stored is not self._looked_at:
            self._looked_at = stored
            self._awaited = None if stored is None else awaited_pods(stored)
        return self._awaited

    def _present(self) -> set[str]:
        podset = self.podset
        return {pod.metadata.name for pods in (podset.pending, podset.bound) for pod in pods.values()}


def annotations(entries: Mapping[str, str], awaited: Collection[str]) -> dict[str, str]:
    """What a plan with these entries says about those that await their pods."""
    names = ",".join(sorted(awaited))
    return {AWAITED: names if len(names) <= _MOST_NAMES else _ANY, DIGEST: _digest(entries)}


def awaited_pods(plan: SchedulePlan) -> frozenset[str] | None:
    """The names that the annotation tells; None if the plan is not as we have written it."""
    said, entries = plan.metadata.annotations, entries_of(plan)
    if AWAITED not in said or said.get(DIGEST) != _digest(entries):
        return None
    return frozenset(entries if said[AWAITED] == _ANY else said[AWAITED].split(",")) - {""}


def entries_of(plan: SchedulePlan) -> dict[str, str]:
    """Nodes by names of pods. Of several entries of one pod the first counts, as for Pallet."""
    found: dict[str, str] = {}
    for entry in plan.spec.plan:
        found.setdefault(entry.pod, entry.node)
    return found


def _digest(entries: Mapping[str, str]) -> str:
    return sha256(msgspec.json.encode(sorted(entries.items()))).hexdigest()[:16]
