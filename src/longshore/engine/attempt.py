"""One attempt to find a node for one pod: PreFilter, Filter, PreScore and Score.

The quick way uses what the shape knows and asks only the plugins that look at more than one node. The
thorough way asks every plugin in its order, for whoever wants to know why: `diagnose` and `score_table`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from longshore.cluster import ClusterState, Nodes, OneNode, PodInfo
from longshore.cluster.arrays import Bools, Ints
from longshore.cluster.nodes import SelectedNodes
from longshore.engine.asking import filter_one, final_scores, raw_scores, refused, rejections
from longshore.engine.diagnosis import Diagnosis, Refusal
from longshore.engine.failure import PluginFailure
from longshore.engine.shapes import Shape
from longshore.framework import Code, CycleState, Status
from longshore.framework.profile import Profile, Slot

# So few nodes are looked at one by one, rather than all of them together.
_FEW = 16


class Attempt:
    def __init__(self, shape: Shape, pod: PodInfo) -> None:
        self.shape = shape
        self.pod = pod
        self.profile: Profile = shape.profile
        self.cluster: ClusterState = shape.cluster
        self.state = CycleState(shape.memo)
        self.state.update(shape.state)
        self.state.skip_filter = shape.state.skip_filter
        self.state.skip_score = shape.state.skip_score
        # The rows that PreFilters narrowed the nodes down to, and the names of those that did.
        self.narrowed: Bools | None = None
        self.narrowed_by: list[str] = []

    # PreFilter.

    def pre_filter(self) -> Status | None:
        """Run the PreFilters; a status if the pod is refused."""
        refusal: Status | None = None
        names: set[str] | None = None
        for plugin, known in self.shape.pre_filters:
            outcome = known
            if outcome is None:
                outcome = self._ask_pre_filter(plugin)
            if outcome is None:
                continue
            if not isinstance(outcome, Status):
                names = set(outcome) if names is None else names & set(outcome)
                self.narrowed_by.append(plugin.name)
                if not names:
                    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (self._unsatisfied(),))
            elif outcome.code is Code.SKIP:
                # The shape's own set is shared by its attempts.
                self.state.skip_filter = self.state.skip_filter | {plugin.name}
            elif outcome.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return Status(outcome.code, outcome.reasons, plugin.name)
            elif outcome.rejected:
                refusal = Status(outcome.code, outcome.reasons, plugin.name)
            elif outcome.code is not Code.SUCCESS:
                raise PluginFailure(plugin.name, "PreFilter", outcome.message)
        if names is not None:
            rows = (self.cluster.row(name) for name in names)
            self.narrowed = np.zeros(len(self.cluster.known), np.bool_)
            self.narrowed[[row for row in rows if row is not None]] = True
        return refusal

    def _ask_pre_filter(self, plugin: Any) -> Any:
        try:
            outcome = plugin.pre_filter(self.state, self.pod, self.cluster)
            if outcome is not None and not isinstance(outcome, Status):
                outcome = frozenset(outcome)
        except Exception as error:  # whatever a plugin does, only this attempt fails
            raise PluginFailure(plugin.name, "PreFilter", repr(error)) from error
        return outcome

    def _unsatisfied(self) -> str:
        by = sorted(self.narrowed_by)
        if len(by) == 1:
            return f"node(s) didn't satisfy plugin {by[0]}"
        return f"node(s) didn't satisfy plugin(s) [{' '.join(by)}] simultaneously"

    # Filter, the quick way.

    def feasible(self) -> Bools:
        """The rows where the pod can go."""
        shape = self.shape
        if self.narrowed is not None and not shape.is_built:
            rows = np.flatnonzero(self.narrowed & self.cluster.known)
            if len(rows) <= _FEW:
                return self._feasible_of(rows)
        shape.refresh()
        left = shape.feasible
        if self.narrowed is not None:
            left = left & self.narrowed
        others = [slot for slot in shape.other_filters if slot.name not in self.state.skip_filter]
        if not others:
            return left
        nodes = self.cluster.all_nodes()
        for slot in others:
            left = left & ~refused(rejections(slot, self.state, self.pod, nodes, left), len(left))
        if self.cluster.nominations:
            left = left.copy()
            for name in self.cluster.nominations.nodes():
                row = self.cluster.row(name)
                if row is not None and left[row]:
                    left[row] = self.filter_with_nominated(self.state, self.cluster.one_node(row)) is None
        return left

    def _feasible_of(self, rows: Ints) -> Bools:
        """Among few rows, as a pod of a DaemonSet has: most likely no other pod will be of its shape."""
        left = np.zeros(len(self.cluster.known), np.bool_)
        for row in rows.tolist():
            left[row] = self.filter_with_nominated(self.state, self.cluster.one_node(row)) is None
        return left

    # Filter on one node, with pods imagined on it or away from it.

    def filter_with_nominated(self, state: CycleState, node: OneNode) -> Status | None:
        """First beside the pods that were promised the node and come before this one, then without them."""
        spec, uid = self.pod.pod.spec, self.pod.pod.metadata.uid
        nominated = [
            info
            for info in self.cluster.nominations.on(node.name)
            if info.pod.spec.priority >= spec.priority and info.pod.metadata.uid != uid
        ]
        if nominated:
            crowded, imagined = node.copy(), state.clone()
            for info in nominated:
                self.add_pod(imagined, info, crowded)
            status = self.filter_node(imagined, crowded)
            if status is not None:
                return status
        return self.filter_node(state, node)

    def filter_node(self, state: CycleState, node: OneNode) -> Status | None:
        for slot in self.profile.filters:
            if slot.name not in state.skip_filter:
                status = filter_one(slot, state, self.pod, node)
                if status is not None:
                    return status
        return None

    def add_pod(self, state: CycleState, added: PodInfo, node: OneNode) -> None:
        node.add(added)
        self._extend("add_pod", state, added, node)

    def remove_pod(self, state: CycleState, removed: PodInfo, node: OneNode) -> None:
        node.remove(removed)
        self._extend("remove_pod", state, removed, node)

    def _extend(self, method: str, state: CycleState, other: PodInfo, node: OneNode) -> None:
        for plugin in self.profile.extensions:
            if plugin.name in state.skip_filter:
                continue
            try:
                status = getattr(plugin, method)(state, self.pod, other, node)
            except Exception as error:  # as above
                raise PluginFailure(plugin.name, "PreFilter", repr(error)) from error
            if status is not None and status.code is not Code.SUCCESS:
                raise PluginFailure(plugin.name, "PreFilter", status.message)

    # Filter, the thorough way.

    def diagnose(self, refusal: Status | None = None) -> Diagnosis:
        """Why each node is refused, by the first plugin that does; `refusal` is that of PreFilter, if any."""
        diagnosis = Diagnosis(self.cluster)
        diagnosis.rejectors.update(self.narrowed_by)
        if refusal is not None:
            diagnosis.pre_filter = refusal
            if refusal.plugin:
                (diagnosis.pending if refusal.code is Code.PENDING else diagnosis.rejectors).add(
                    refusal.plugin
                )
            return diagnosis
        left = self.cluster.known.copy()
        if self.narrowed is not None:
            reason = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(self.narrowed_by))}]"
            diagnosis.leave_out(left & ~self.narrowed, Status.unresolvable(reason))
            left &= self.narrowed
        self._refuse_beside_nominated(diagnosis, left)
        nodes = self.cluster.all_nodes()
        for slot in self.profile.filters:
            if slot.name not in self.state.skip_filter and left.any():
                self._refuse(diagnosis, slot, nodes, left)
        return diagnosis

    def _refuse(self, diagnosis: Diagnosis, slot: Slot, nodes: Nodes, left: Bools) -> None:
        found = rejections(slot, self.state, self.pod, nodes, left)
        bad = refused(found, len(left)) & left
        if not bad.any():
            return
        unresolvable = np.zeros(len(left), np.bool_)
        for rejection in found:
            unresolvable |= rejection.where & np.asarray(rejection.unresolvable)
        reasons = tuple((r.reason, bad & r.where) for r in found)
        diagnosis.refuse(Refusal(slot.name, bad, reasons, unresolvable & bad))
        left &= ~bad

    def _refuse_beside_nominated(self, diagnosis: Diagnosis, left: Bools) -> None:
        for name in self.cluster.nominations.nodes():
            row = self.cluster.row(name)
            if row is None or not left[row]:
                continue
            status = self.filter_with_nominated(self.state, self.cluster.one_node(row))
            if status is not None:
                only = np.zeros(len(left), np.bool_)
                only[row] = True
                unresolvable = only & (status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
                reasons = tuple((reason, only) for reason in status.reasons)
                diagnosis.refuse(Refusal(status.plugin, only, reasons, unresolvable))
                left[row] = False

    # Score.

    def pre_score(self, nodes: Nodes) -> None:
        for plugin in self.shape.pre_scores:
            try:
                status = plugin.pre_score(self.state, self.pod, nodes)
            except Exception as error:  # as above
                raise PluginFailure(plugin.name, "PreScore", repr(error)) from error
            if status is None or status.code is Code.SUCCESS:
                continue
            if status.code is not Code.SKIP:
                raise PluginFailure(plugin.name, "PreScore", status.message)
            self.state.skip_score = self.state.skip_score | {plugin.name}

    def totals(self, left: Bools) -> tuple[Ints, Ints | None]:
        """The total score by row, REFUSED or less where the pod cannot go, the quick way.

        With it the rows that the totals are for, or None if they are for all rows.
        """
        shape, state, pod = self.shape, self.state, self.pod
        shape.refresh()
        nodes = SelectedNodes(self.cluster, left)
        self.pre_score(nodes)
        more: list[Ints] = []
        size = -1
        for slot in shape.other_scores:
            if slot.name in state.skip_score:
                continue
            raw = raw_scores(slot, state, pod, nodes)
            if isinstance(raw, int) and not slot.normalizes:
                final_scores(slot, state, pod, raw, nodes, 0)
                continue
            size = len(nodes)
            scores = final_scores(slot, state, pod, raw, nodes, size)
            if not isinstance(scores, int):
                more.append(scores * slot.weight)
        if not more and shape.raw_is_even:
            return (shape.ranked if left is shape.feasible else np.where(left, shape.base, -1)), None
        rows = np.asarray(nodes.rows)
        totals = shape.base[rows]
        for scores in more:
            totals += scores
        if not shape.raw_is_even:
            for slot in shape.normalized_scores:
                raw = shape.raw[slot.name][rows]
                totals += final_scores(slot, state, pod, raw, nodes, len(rows)) * slot.weight
        return totals, rows

    def score_table(self, left: Bools) -> Mapping[str, Ints]:
        """Every plugin's weighted score of the rows in `left`, in their order, less those that skip."""
        nodes = SelectedNodes(self.cluster, left)
        self.pre_score(nodes)
        size = len(nodes)
        table: dict[str, Ints] = {}
        for slot in self.profile.scores:
            if slot.name not in self.state.skip_score:
                raw = raw_scores(slot, self.state, self.pod, nodes)
                scores = final_scores(slot, self.state, self.pod, raw, nodes, size)
                table[slot.name] = np.zeros(size, np.int64) + scores * slot.weight
        return table
