"""The nodes that requests are about, as rows of a cluster, and what one agent says about them.

Only the nodes of a request count. An agent whose answers about a node depend on that node alone is asked
through the kept answers of the pod's shape; one that looks at the nodes together gets exactly those asked
about, each time.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import compress

import msgspec
import numpy as np

from longshore.api import Node, Pod
from longshore.cluster import ClusterState, PodInfo
from longshore.cluster.arrays import Bools, Ints
from longshore.cluster.measures import Measured
from longshore.engine.decision.chooser import Chooser
from longshore.engine.decision.plugin_calls import final_scores, raw_scores
from longshore.engine.decision.shapes import LARGEST_KEPT, Shape, shape_key
from longshore.engine.plugin_failure import PluginFailure
from longshore.framework import MAX_SCORE, Code
from longshore.framework.profile import Profile
from longshore.serve.extender import wire
from longshore.serve.extender.refusals import UNKNOWN_NODE, Reasons, Refused, thorough, together
from longshore.serve.extender.sent_pods import SentPods

# Scores are out of 100 here, and out of 10 there; what ends in 5 goes up.
_TENTH, _HALF = 10, 5
# Lists of nodes remembered: of the pods that are being scheduled.
_LISTS = 16
# Shapes of pods that were refused, likewise.
_SHAPES = 64
# Nodes that were sent once may never come again: there are this many more than twice those of a request.
_SPARE = 1000


class Question(msgspec.Struct, frozen=True):
    """A pod, as agents are asked about it."""

    pod: PodInfo
    shape: bytes

    @classmethod
    def about(cls, raw: bytes, kept: Callable[[Pod], Pod]) -> "Question":
        """`kept` gives the pod as agents see it."""
        pod = kept(wire.read_pod(raw))
        return cls(PodInfo.of(pod), shape_key(pod))


class Asked(msgspec.Struct, frozen=True):
    """Nodes of a request: those that are known, in their order, and the names of the others."""

    rows: Ints
    names: Sequence[str]
    unknown: Sequence[str] = ()

    def only(self, left: Bools) -> "Asked":
        return Asked(self.rows[left], tuple(compress(self.names, left.tolist())))


class _Foreseen(msgspec.Struct, frozen=True):
    """An answer of Prioritize, for when it is asked; the pod and the nodes are the very same things then."""

    profile: str
    question: Question
    nodes: Asked
    position: int
    answer: bytes


class View:
    """One cluster, seen by agents. `profiles` have one plugin each.

    `fine_scores`: what Prioritize answers is out of 100.
    """

    def __init__(
        self, cluster: ClusterState, choosers: Callable[[str], Chooser], *, fine_scores: bool = False
    ) -> None:
        self.cluster = cluster
        self._chooser = choosers
        self._fine_scores = fine_scores
        # How many scores there are for Prioritize.
        self._scores = MAX_SCORE + 1 if fine_scores else MAX_SCORE // _TENTH + 1
        # Of the version of the nodes: rows by name, and lists of names that were looked up.
        self._version = -1
        self._rows_of: dict[str, int] = {}
        self._lists: OrderedDict[bytes, Asked] = OrderedDict()
        # By row, the name, how it begins what is said of it, and elements of what Prioritize answers, one for
        # each score.
        self._names: list[str] = []
        self._keys: list[bytes] = []
        self._elements: list[bytes] = []
        self._foreseen: _Foreseen | None = None
        self._reasons: Callable[[Shape], Reasons] = lru_cache(_SHAPES)(Reasons)

    def named(self, names: bytes) -> Asked:
        """The nodes of a list in JSON. Raises Malformed."""
        self._catch_up()
        found = self._lists.get(names)
        if found is None:
            found = self._look_up(wire.read_names(names))
            self.remember(names, found)
        return found

    def _look_up(self, names: Sequence[str]) -> Asked:
        rows_of = self._rows_of
        try:
            return Asked(np.fromiter(map(rows_of.__getitem__, names), np.int64, len(names)), names)
        except KeyError:
            known = [name for name in names if name in rows_of]
            unknown = [name for name in names if name not in rows_of]
            return Asked(np.array([rows_of[name] for name in known], np.int64), known, unknown)

    def remember(self, names: bytes, asked: Asked) -> None:
        """The list is most likely asked about next, unless it is too large to be one of kube-scheduler's."""
        if len(names) > LARGEST_KEPT:
            return
        self._lists[names] = asked
        if len(self._lists) > _LISTS:
            self._lists.popitem(last=False)

    def _catch_up(self) -> None:
        version = self.cluster.version(Node)
        if version == self._version:
            return
        self._version = version
        self._lists.clear()
        before, self._names = self._names, self.cluster.all_nodes().names
        known = self.cluster.known.tolist()
        self._rows_of = {name: row for row, name in enumerate(self._names) if known[row]}
        if before != self._names:
            self._keys = list(map(wire.key, self._names))
            del self._elements[len(self._names) * self._scores :]
            for row, name in enumerate(self._names):
                if row >= len(before) or name != before[row]:
                    place = row * self._scores
                    self._elements[place : place + self._scores] = wire.priorities_of(name, self._scores)

    def filter(self, profile: str, question: Question, rows: Ints) -> Refused:
        """Raises PluginFailure."""
        attempt = self._chooser(profile).attempt(question.pod, question.shape)
        refusal = attempt.pre_filter()
        if refusal is not None or attempt.narrowed is not None:
            return thorough(attempt, refusal, rows)
        [slot] = attempt.profile.filters
        if slot.name in attempt.state.skip_filter:
            return Refused(np.ones(len(rows), np.bool_))
        if not slot.local:
            return together(attempt, rows)
        left = attempt.feasible()[rows]
        if left.all():
            return Refused(left)
        reasons = self._reasons if len(question.shape) <= LARGEST_KEPT else Reasons
        return Refused(left, reasons(attempt.shape).about(rows[~left]))

    def told(self, found: Refused, unknown: Sequence[str] = ()) -> tuple[msgspec.Raw, msgspec.Raw]:
        """Why nodes are refused, as Filter answers: where preemption may help, and where it cannot."""
        self._catch_up()
        failed: list[tuple[str, Iterable[bytes]]] = []
        unresolvable = failed.copy()
        for status, rows in found.reasons:
            hopeless = status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
            keys = map(self._keys.__getitem__, rows.tolist())
            words = status.message or f"node(s) were refused by {status.plugin}"
            (unresolvable if hopeless else failed).append((words, keys))
        if unknown:
            unresolvable.append((UNKNOWN_NODE, map(wire.key, unknown)))
        return wire.reasons(failed), wire.reasons(unresolvable)

    def score(self, profile: str, question: Question, rows: Ints) -> Ints:
        """Out of 100, in the order of the rows. Raises PluginFailure."""
        attempt = self._chooser(profile).attempt(question.pod, question.shape)
        attempt.pre_filter()
        nodes = self.cluster.some_nodes(rows)
        attempt.pre_score(nodes)
        [slot] = attempt.profile.scores
        if slot.name in attempt.state.skip_score:
            return np.zeros(len(rows), np.int64)
        if not slot.local or slot.normalizes:
            raw = raw_scores(slot, attempt.state, attempt.pod, nodes)
            return _full(final_scores(slot, attempt.state, attempt.pod, raw, nodes, len(rows)), rows)
        shape = attempt.shape
        shape.refresh()
        scores = shape.ranked[rows]
        # Its own filter would refuse these, but whoever asks has not asked for that.
        if (unranked := scores < 0).any():
            others = rows[unranked]
            nodes = self.cluster.some_nodes(others)
            raw = raw_scores(slot, attempt.state, attempt.pod, nodes)
            scores[unranked] = final_scores(slot, attempt.state, attempt.pod, raw, nodes, len(others))
        return scores

    def priorities(self, profile: str, question: Question, nodes: Asked) -> bytes:
        """What Prioritize answers. Raises PluginFailure."""
        self._catch_up()
        foreseen = self._foreseen
        if (
            foreseen is not None
            and foreseen.nodes is nodes
            and foreseen.question is question
            and foreseen.profile == profile
            and foreseen.position == self.cluster.journal.position
        ):
            return foreseen.answer
        scores = self.score(profile, question, nodes.rows)
        said = scores if self._fine_scores else (scores + _HALF) // _TENTH
        places = nodes.rows * self._scores + said
        return wire.priorities(map(self._elements.__getitem__, places.tolist()))

    def foresee(self, profile: str, question: Question, names: bytes) -> None:
        """Have ready what Prioritize will answer about these nodes, unless the cluster changes meanwhile."""
        [slot] = self._chooser(profile).profile.scores
        if not slot.local or slot.normalizes:
            # To be asked may mean something to it.
            return
        nodes = self.named(names)
        try:
            answer = self.priorities(profile, question, nodes)
        except PluginFailure:
            return  # it fails again when it is asked
        self._foreseen = _Foreseen(profile, question, nodes, self.cluster.journal.position, answer)


class SentNodes(View):
    """Nodes as they come with requests. One that comes again as it was is not read again."""

    def __init__(
        self,
        profiles: Callable[[str], Profile],
        read: Callable[[ClusterState], None],
        *,
        watched: ClusterState | None = None,
        fine_scores: bool = False,
    ) -> None:
        """`read` has the cluster read what nodes say of themselves; `watched` knows their pods."""
        self._profiles = profiles
        self._read = read
        self._watched = watched
        self._fine_scores = fine_scores
        self._values: Mapping[str, Mapping[str, Measured]] = {}
        self._begin()

    def _begin(self) -> None:
        cluster = ClusterState()
        self._read(cluster)
        choosers = lru_cache(None)(lambda name: Chooser(self._profiles(name), cluster))
        super().__init__(cluster, choosers, fine_scores=self._fine_scores)
        self._pods = None if self._watched is None else SentPods(self._watched, cluster)
        self._rows: dict[bytes, int] = {}
        self._sent: dict[int, bytes] = {}
        # The nodes of the largest request.
        self._most = 0
        # Whether there is someone that the measurements have not been told of.
        self._untold = False

    def measured(self, values: Mapping[str, Mapping[str, Measured]]) -> None:
        # A round that brings nothing undoes nothing: values grow old by themselves.
        if any(values.values()):
            self._values = values
            self._untold = True

    def put(self, nodes: Sequence[bytes], *, wall_time: float) -> Asked:
        """The rows of the nodes, which count as they are here. Raises Malformed."""
        self._most = max(self._most, len(nodes))
        if len(self._sent) > 2 * self._most + _SPARE:
            self._begin()
        if self._pods is not None:
            self._pods.catch_up()
        # The time before the nodes: they are judged by it, and the last request may be long ago.
        self.cluster.measures.put({}, now=wall_time)
        rows = [row if (row := self._rows.get(node)) is not None else self._put(node) for node in nodes]
        if self._untold:
            self.cluster.measures.put(self._values, now=wall_time)
            self._untold = False
        names = [self.cluster.node_name(row) for row in rows]
        return Asked(np.array(rows, np.int64), names)

    def _put(self, sent: bytes) -> int:
        node = wire.read_node(sent)
        if self._pods is not None:
            # Before the node: what they use is in what it says of its load.
            self._pods.put(node.metadata.name)
        self.cluster.add_node(node)
        row = self.cluster.row(node.metadata.name)
        if row is None:
            raise RuntimeError(f"{node.metadata.name} has no row")
        self._rows.pop(self._sent.get(row, b""), None)
        self._untold = self._untold or row not in self._sent
        self._sent[row] = sent
        self._rows[sent] = row
        return row


def _full(scores: Ints | int, rows: Ints) -> Ints:
    return np.full(len(rows), scores, np.int64) if isinstance(scores, int) else scores
