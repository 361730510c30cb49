"""The pods of a set that have no node yet, each in one stage.

Everything that reports where a pod stands (the queue, its condition, the status of the plan, `explain`, `plan
--preview`) reads its stage. transitions.py says how it changes.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from longshore.api import Pod
from longshore.podset.stages import ADMITTED, Stage

# A pod with this scheduling gate is held by the API server too. It is removed when the pod is in the plan.
GATE = "longshore.dev/pod-set"


class Why(NamedTuple):
    """Why a pod waits: the reason and the message of its condition."""

    reason: str
    message: str


class Member(msgspec.Struct, frozen=True):
    pod: Pod
    stage: Stage = Stage.HELD
    # Why the plan has no node for the pod.
    why: Why | None = None
    # The node that a pod found by itself.
    found: str = ""
    # Nodes that were planned for the pod and did not fit when it was tried.
    refused: frozenset[str] = frozenset()
    # How often binding the pod to its planned node has failed.
    failures: int = 0

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid

    @property
    def name(self) -> str:
        return self.pod.metadata.name

    @property
    def is_admitted(self) -> bool:
        """Whether the pod may be in the queue."""
        return self.stage in ADMITTED

    def planned_node(self, entries: Mapping[str, str]) -> str | None:
        """The node that the plan has for the pod, unless it did not fit."""
        node = entries.get(self.name)
        return None if node in self.refused else node


class Facts(NamedTuple):
    """The facts that apply to all members. `entries` is the stored plan: names of pods with their nodes."""

    released: bool
    all_or_nothing: bool
    entries: Mapping[str, str]


class Members:
    """The members by UID and by stage."""

    def __init__(self) -> None:
        self._members: dict[str, Member] = {}
        self._stages: dict[Stage, dict[str, Member]] = {stage: {} for stage in Stage}
        self._spread: set[str] = set()

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    def get(self, uid: str) -> Member | None:
        return self._members.get(uid)

    def of(self, *stages: Stage) -> list[Member]:
        return [member for stage in stages for member in self._stages[stage].values()]

    def count(self, *stages: Stage) -> int:
        return sum(len(self._stages[stage]) for stage in stages)

    @property
    def are_spread(self) -> bool:
        """Whether any of them has topology spread constraints."""
        return bool(self._spread)

    def update(self, changed: Mapping[str, Member | None]) -> None:
        for uid, member in changed.items():
            old = self._members.get(uid)
            if old is not None and (member is None or member.stage is not old.stage):
                del self._stages[old.stage][uid]
            if member is None:
                self._members.pop(uid, None)
                self._spread.discard(uid)
                continue
            self._members[uid] = self._stages[member.stage][uid] = member
            if member.pod.spec.topology_spread_constraints:
                self._spread.add(uid)
