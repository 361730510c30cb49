"""The nodes of requests as rows of a cluster, and the agents' answers about them.

Only the nodes of a request count. If an agent's answer about a node depends only on that node, the cached
answers for the pod's shape are used. An agent that considers nodes together is called each time, with exactly
the requested nodes.
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
from longshore.serve.extender.refusals import (
    UNKNOWN_NODE,
    Reasons,
    Refused,
    refused_by_pre_filter,
    refused_together,
)
from longshore.serve.extender.sent_pods import SentPods

# Scores go up to 100 here and up to 10 in kube-scheduler; a last digit of 5 is rounded up.
_TENTH, _HALF = 10, 5
# Lists of node names that are kept, for the pods that are being scheduled.
_LISTS = 16
# Shapes of pods whose rejected nodes are kept.
_SHAPES = 64
# Sent nodes that are kept, besides twice the number in the largest request: they may not be sent again.
_SPARE = 1000


class Question(msgspec.Struct, frozen=True):
    """The pod of a request and the key of its shape."""

    pod: PodInfo
    shape: bytes

    @classmethod
    def about(cls, raw: bytes, kept: Callable[[Pod], Pod]) -> "Question":
        """`kept` gives the pod as agents see it."""
        pod = kept(wire.read_pod(raw))
        return cls(PodInfo.of(pod), shape_key(pod))


class NodeRows(msgspec.Struct, frozen=True):
    """The nodes of a request: the known ones in their order, and the names of unknown ones."""

    rows: Ints
    names: Sequence[str]
    unknown: Sequence[str] = ()

    def only(self, left: Bools) -> "NodeRows":
        return NodeRows(self.rows[left], tuple(compress(self.names, left.tolist())))


class _Prepared(msgspec.Struct, frozen=True):
    """An answer that is ready before Prioritize is called, for these same objects."""

    profile: str
    question: Question
    nodes: NodeRows
    position: int
    answer: bytes


class NodeView:
    """Evaluates agents on the nodes of one cluster. Each profile has one plugin.

    With `fine_scores`, the scores that Prioritize returns go up to 100.
    """

    def __init__(
        self, cluster: ClusterState, choosers: Callable[[str], Chooser], *, fine_scores: bool = False
    ) -> None:
        self.cluster = cluster
        self._chooser = choosers
        self._fine_scores = fine_scores
        # The number of different scores that Prioritize can return.
        self._scores = MAX_SCORE + 1 if fine_scores else MAX_SCORE // _TENTH + 1
        # For this version of the nodes: rows by name, and the lists of names that were looked up.
        self._version = -1
        self._rows_of: dict[str, int] = {}
        self._lists: OrderedDict[bytes, NodeRows] = OrderedDict()
        # By row: the name, the name as a JSON key, and the elements of a Prioritize answer, one for each
        # score.
        self._names: list[str] = []
        self._keys: list[bytes] = []
        self._elements: list[bytes] = []
        self._prepared: _Prepared | None = None
        self._reasons: Callable[[Shape], Reasons] = lru_cache(_SHAPES)(Reasons)

    def named(self, names: bytes) -> NodeRows:
        """Return the nodes in a JSON list of names. Raises Malformed."""
        self._catch_up()
        found = self._lists.get(names)
        if found is None:
            found = self._look_up(wire.read_names(names))
            self.remember(names, found)
        return found

    def _look_up(self, names: Sequence[str]) -> NodeRows:
        rows_of = self._rows_of
        try:
            return NodeRows(np.fromiter(map(rows_of.__getitem__, names), np.int64, len(names)), names)
        except KeyError:
            known = [name for name in names if name in rows_of]
            unknown = [name for name in names if name not in rows_of]
            return NodeRows(np.array([rows_of[name] for name in known], np.int64), known, unknown)

    def remember(self, names: bytes, nodes: NodeRows) -> None:
        """Keep the nodes of this list, which is likely in the next request, unless it is too large."""
        if len(names) > LARGEST_KEPT:
            return
        self._lists[names] = nodes
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
        """Run the filter of the profile's plugin for these rows. Raises PluginFailure."""
        attempt = self._chooser(profile).attempt(question.pod, question.shape)
        refusal = attempt.pre_filter()
        if refusal is not None or attempt.narrowed is not None:
            return refused_by_pre_filter(attempt, refusal, rows)
        [slot] = attempt.profile.filters
        if slot.name in attempt.state.skip_filter:
            return Refused(np.ones(len(rows), np.bool_))
        if not slot.local:
            return refused_together(attempt, rows)
        left = attempt.feasible()[rows]
        if left.all():
            return Refused(left)
        reasons = self._reasons if len(question.shape) <= LARGEST_KEPT else Reasons
        return Refused(left, reasons(attempt.shape).about(rows[~left]))

    def failed_nodes(self, found: Refused, unknown: Sequence[str] = ()) -> tuple[msgspec.Raw, msgspec.Raw]:
        """Return FailedNodes and FailedAndUnresolvableNodes: preemption may help only on the former."""
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
        """Return scores up to 100, in the order of the rows. Raises PluginFailure."""
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
        # The plugin's own filter rejects these, but the request did not ask it to filter.
        if (unranked := scores < 0).any():
            others = rows[unranked]
            nodes = self.cluster.some_nodes(others)
            raw = raw_scores(slot, attempt.state, attempt.pod, nodes)
            scores[unranked] = final_scores(slot, attempt.state, attempt.pod, raw, nodes, len(others))
        return scores

    def priorities(self, profile: str, question: Question, nodes: NodeRows) -> bytes:
        """Return the answer to Prioritize. Raises PluginFailure."""
        self._catch_up()
        prepared = self._prepared
        if (
            prepared is not None
            and prepared.nodes is nodes
            and prepared.question is question
            and prepared.profile == profile
            and prepared.position == self.cluster.journal.position
        ):
            return prepared.answer
        scores = self.score(profile, question, nodes.rows)
        returned = scores if self._fine_scores else (scores + _HALF) // _TENTH
        places = nodes.rows * self._scores + returned
        return wire.priorities(map(self._elements.__getitem__, places.tolist()))

    def prepare(self, profile: str, question: Question, names: bytes) -> None:
        """Prepare the answer to Prioritize for these nodes. It is dropped if the cluster changes first."""
        [slot] = self._chooser(profile).profile.scores
        if not slot.local or slot.normalizes:
            # The plugin may learn from each call.
            return
        nodes = self.named(names)
        try:
            answer = self.priorities(profile, question, nodes)
        except PluginFailure:
            return  # it fails again when Prioritize is called
        self._prepared = _Prepared(profile, question, nodes, self.cluster.journal.position, answer)


class SentNodes(NodeView):
    """Nodes that are sent whole in requests. A node that is sent again unchanged is not decoded again."""

    def __init__(
        self,
        profiles: Callable[[str], Profile],
        read: Callable[[ClusterState], None],
        *,
        watched: ClusterState | None = None,
        fine_scores: bool = False,
    ) -> None:
        """`read` makes a cluster read annotations of nodes; `watched` is the cluster that has their pods."""
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
        # The number of nodes in the largest request.
        self._most = 0
        # Whether some node lacks the latest measurements.
        self._outdated = False

    def measured(self, values: Mapping[str, Mapping[str, Measured]]) -> None:
        """Use these values for sent nodes too. Empty ones change nothing, because values expire anyway."""
        if any(values.values()):
            self._values = values
            self._outdated = True

    def put(self, nodes: Sequence[bytes], *, wall_time: float) -> NodeRows:
        """Take over the nodes of a request and return their rows. Raises Malformed."""
        self._most = max(self._most, len(nodes))
        if len(self._sent) > 2 * self._most + _SPARE:
            self._begin()
        if self._pods is not None:
            self._pods.catch_up()
        # Set the time first: the age of the nodes' values depends on it.
        self.cluster.measures.put({}, now=wall_time)
        rows = [row if (row := self._rows.get(node)) is not None else self._put(node) for node in nodes]
        if self._outdated:
            self.cluster.measures.put(self._values, now=wall_time)
            self._outdated = False
        names = [self.cluster.node_name(row) for row in rows]
        return NodeRows(np.array(rows, np.int64), names)

    def _put(self, sent: bytes) -> int:
        node = wire.read_node(sent)
        if self._pods is not None:
            # Add the pods before the node, whose measured load already includes them.
            self._pods.put(node.metadata.name)
        self.cluster.add_node(node)
        row = self.cluster.row(node.metadata.name)
        if row is None:
            raise RuntimeError(f"{node.metadata.name} has no row")
        self._rows.pop(self._sent.get(row, b""), None)
        self._outdated = self._outdated or row not in self._sent
        self._sent[row] = sent
        self._rows[sent] = row
        return row


def _full(scores: Ints | int, rows: Ints) -> Ints:
    return np.full(len(rows), scores, np.int64) if isinstance(scores, int) else scores
