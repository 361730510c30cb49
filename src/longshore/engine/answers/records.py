"""Records of the latest decisions: which node and why, or why none.

A decision takes about fifty microseconds, so only what is at hand is noted: numbers, and references to what
all pods of a shape share. The record is put together when it is read.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence

import msgspec

from longshore.api import ObjectMeta, Pod
from longshore.cluster.arrays import Ints
from longshore.engine.decision.chooser import Placement, Unplaced
from longshore.framework import PostFilterResult
from longshore.framework.profile import Profile, Slot

MOST_RECORDS = 20_000

_Scores = Sequence[tuple[Slot, int]]


class RefusalCount(msgspec.Struct, frozen=True):
    """How many nodes a plugin refused for a reason. Without a plugin, a PreFilter narrowed the choice."""

    plugin: str
    reason: str
    nodes: int


class Decision(msgspec.Struct, frozen=True, rename="camel"):
    """A decision about a pod.

    `scores` are those of the chosen node, weighted and normalized; empty if it was the only one that fits.
    `extenders` is what HTTP extenders added to them. `ties` is the number of nodes as good as the chosen one.
    """

    uid: str
    # Seconds on the engine's clock.
    time: float
    profile: str
    node: str = ""
    nodes: int = 0
    feasible: int = 0
    ties: int = 0
    tie_break: str = ""
    total: int = 0
    scores: Mapping[str, int] = {}
    weights: Mapping[str, int] = {}
    extenders: int = 0
    # Why there was no node, or why the pod was not bound.
    message: str = ""
    refused: tuple[RefusalCount, ...] = ()
    nominated_node: str = ""
    victims: tuple[str, ...] = ()


class _PlacedNote(msgspec.Struct, frozen=True, gc=False):
    """Notes of a placement."""

    pod: ObjectMeta
    time: float
    profile: Profile
    node: str
    nodes: int
    feasible: int
    ties: int
    total: int
    # Scores of the chosen node that were compared: plugins and numbers from the shape, and others.
    slots: tuple[Slot, ...]
    numbers: bytes
    varied: _Scores
    # Scores that were the same for all nodes; those in `even` are already weighted.
    constant: _Scores
    even: Sequence[tuple[str, int]]

    def decision(self) -> Decision:
        compared = {s.name: score * s.weight for s, score in zip(self.slots, self.numbers, strict=False)}
        compared |= {slot.name: score * slot.weight for slot, score in self.varied}
        extenders = self.total - sum(compared.values()) if compared else self.total
        same = {slot.name: score * slot.weight for slot, score in self.constant} | dict(self.even)
        scores = compared | same
        scored = [slot for slot in self.profile.scores if slot.name in scores]
        return Decision(
            self.pod.uid,
            self.time,
            self.profile.scheduler_name,
            self.node,
            self.nodes,
            self.feasible,
            self.ties,
            self.profile.tie_break,
            sum(scores.values()) + extenders,
            {slot.name: scores[slot.name] for slot in scored},
            {slot.name: slot.weight for slot in scored},
            extenders,
        )


class _FailedNote(msgspec.Struct, frozen=True, gc=False):
    """Notes of an attempt that failed."""

    pod: ObjectMeta
    time: float
    profile: Profile
    message: str
    node: str = ""
    nodes: int = 0
    refused: tuple[tuple[str, str, int], ...] = ()
    nominated: str = ""
    victims: tuple[str, ...] = ()

    def decision(self) -> Decision:
        return Decision(
            self.pod.uid,
            self.time,
            self.profile.scheduler_name,
            self.node,
            self.nodes,
            message=self.message,
            refused=tuple(RefusalCount(*refused) for refused in self.refused),
            nominated_node=self.nominated,
            victims=self.victims,
        )


class Records:
    """The latest decisions of an engine. They can be read from any thread.

    There is no index, because notes are taken thousands of times a second and rarely read.
    """

    def __init__(self, now: Callable[[], float], *, most: int = MOST_RECORDS) -> None:
        self._now = now
        self._notes: deque[_PlacedNote | _FailedNote] = deque(maxlen=most)

    def __len__(self) -> int:
        return len(self._notes)

    def of(self, namespace: str, name: str) -> list[Decision]:
        """Return the decisions about pods with this name, the newest first."""
        return [
            note.decision()
            for note in reversed(self._notes.copy())
            if note.pod.name == name and note.pod.namespace == namespace
        ]

    def placed(self, pod: Pod, placement: Placement) -> None:
        """Note a placement. It must be called right after the decision, because shapes change."""
        attempt, row = placement.attempt, placement.row
        shape = attempt.shape
        if placement.feasible == 1:
            # No scores were needed.
            numbers = b""
            even: Sequence[tuple[str, int]] = ()
        else:
            numbers = bytes([column[row] for column in shape.parts])
            even = shape.even or ()
        constant = attempt.constant
        if constant == shape.constant:
            constant = shape.constant
        else:
            shape.constant = constant
        varied = _at(row, attempt.rows, attempt.varied) if attempt.varied else ()
        # Freed here because it is large, and the attempt lives until the pod is bound.
        attempt.varied = ()
        self._notes.append(
            _PlacedNote(
                pod.metadata,
                self._now(),
                shape.profile,
                placement.node,
                shape.cluster.node_count,
                placement.feasible,
                placement.ties,
                placement.total,
                shape.local_scores,
                numbers,
                varied,
                constant,
                even,
            )
        )

    def unplaced(self, pod: Pod, unplaced: Unplaced, message: str, way_out: PostFilterResult) -> None:
        diagnosis = unplaced.diagnosis
        self._notes.append(
            _FailedNote(
                pod.metadata,
                self._now(),
                unplaced.attempt.profile,
                message,
                nodes=diagnosis.cluster.node_count,
                refused=diagnosis.counts,
                nominated=way_out.nominated or "",
                victims=tuple(victim.pod.key for victim in way_out.victims),
            )
        )

    def failed(self, pod: Pod, profile: Profile, message: str, node: str = "") -> None:
        """Note that an attempt failed, after `node` was chosen if it is given."""
        self._notes.append(_FailedNote(pod.metadata, self._now(), profile, message, node))


def _at(row: int, rows: Ints | None, varied: Sequence[tuple[Slot, Ints]]) -> _Scores:
    place = row if rows is None else int(rows.searchsorted(row))
    return [(slot, int(scores[place])) for slot, scores in varied]


class Recorded(msgspec.Struct, frozen=True):
    """The decisions about one pod, newest first, as a scheduler serves them, with times in Unix seconds."""

    decisions: tuple[Decision, ...]


def path_of(namespace: str, name: str) -> str:
    """Return the URL path under which a running scheduler serves the decisions about a pod."""
    return f"/debug/pods/{namespace}/{name}"
