"""One attempt to find a node for one pod: PreFilter, Filter, PreScore and Score.

The quick way uses what the shape keeps, and calls only the plugins that look at more than one node. The
thorough way calls every plugin in order, to explain the result: `diagnose` and `score_table`.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from longshore.cluster import ClusterState, Nodes, OneNode, PodInfo
from longshore.cluster.arrays import Bools, Ints
from longshore.cluster.nodes import SelectedNodes
from longshore.cluster.nominated_nodes import NominatedNodes
from longshore.engine.decision.diagnosis import Diagnosis, Refusal
from longshore.engine.decision.plugin_calls import (
    declines_to_score,
    filter_one,
    final_scores,
    pre_filter,
    raw_scores,
    refused,
    rejections,
)
from longshore.engine.decision.shapes import REFUSED, Shape
from longshore.engine.plugin_failure import PLUGIN_ERRORS, PluginFailure
from longshore.framework import Code, CycleState, Forced, Status
from longshore.framework.profile import Profile, Slot

# At most this many nodes are looked at one by one rather than all together.
_FEW = 16


class Attempt:
    # What `totals` got from plugins besides what the shape keeps: scores that are the same for all nodes,
    # other scores, and the rows that the latter are for.
    constant: Sequence[tuple[Slot, int]] = ()
    varied: Sequence[tuple[Slot, Ints]] = ()
    rows: Ints | None = None

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
        # Whether a PreFilter returned `Forced`.
        self._forced = False

    # PreFilter.

    def pre_filter(self) -> Status | None:
        """Run the PreFilters, and return the status of a refusal of the pod."""
        refusal: Status | None = None
        names: set[str] | None = None
        for plugin, known in self.shape.pre_filters:
            outcome = known
            if outcome is None:
                outcome = pre_filter(plugin, self.state, self.pod, self.cluster)
            if outcome is None:
                continue
            if isinstance(outcome, Forced):
                self._force(plugin.name, outcome.node)
                return None
            if not isinstance(outcome, Status):
                names = set(outcome) if names is None else names & set(outcome)
                self.narrowed_by.append(plugin.name)
                if not names:
                    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (self._unsatisfied(),))
            elif outcome.code is Code.SKIP:
                # Not in place: all attempts of the shape share the set.
                self.state.skip_filter = self.state.skip_filter | {plugin.name}
            elif outcome.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return Status(outcome.code, outcome.reasons, plugin.name)
            elif outcome.rejected:
                refusal = Status(outcome.code, outcome.reasons, plugin.name)
            elif outcome.code is not Code.SUCCESS:
                raise PluginFailure(plugin.name, "PreFilter", outcome.message or outcome.code.value)
        if names is not None:
            rows = (self.cluster.row(name) for name in names)
            self.narrowed = np.zeros(len(self.cluster.known), np.bool_)
            self.narrowed[[row for row in rows if row is not None]] = True
        return refusal

    def _force(self, plugin: str, node: str) -> None:
        """Narrow the nodes to this one. The other PreFilters still run, because binding needs their state."""
        self._forced = True
        self.narrowed_by = [plugin]
        self.narrowed = np.zeros(len(self.cluster.known), np.bool_)
        if (row := self.cluster.row(node)) is not None:
            self.narrowed[row] = True
        for other, known in self.shape.pre_filters:
            if known is None and other.name != plugin:
                pre_filter(other, self.state, self.pod, self.cluster)
        self.state.skip_filter = {slot.name for slot in self.profile.filters}

    def _unsatisfied(self) -> str:
        by = sorted(self.narrowed_by)
        if len(by) == 1:
            return f"node(s) didn't satisfy plugin {by[0]}"
        return f"node(s) didn't satisfy plugin(s) [{' '.join(by)}] simultaneously"

    # Filter, the quick way.

    def feasible(self) -> Bools:
        """Return the rows of the nodes that fit."""
        shape = self.shape
        if self.narrowed is not None and self._forced:
            return self.narrowed & self.cluster.known
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
        """Filter a few rows, as for a pod of a DaemonSet: most likely no other pod has its shape."""
        left = np.zeros(len(self.cluster.known), np.bool_)
        for row in rows.tolist():
            left[row] = self.filter_with_nominated(self.state, self.cluster.one_node(row)) is None
        return left

    # Filter on one node, with pods imagined on it or away from it.

    def filter_with_nominated(self, state: CycleState, node: OneNode) -> Status | None:
        """Filter the node twice: with the nominated pods of equal or higher priority on it, and without."""
        spec, uid = self.pod.pod.spec, self.pod.pod.metadata.uid
        nominated = [
            info
            for info in self.cluster.nominations.on(node.name)
            if info.pod.spec.priority >= spec.priority and info.pod.metadata.uid != uid
        ]
        if nominated:
            with_nominated, imagined = node.copy(), state.clone()
            for info in nominated:
                self.add_pod(imagined, info, with_nominated)
            status = self.filter_node(imagined, with_nominated)
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
            except PLUGIN_ERRORS as error:  # a plugin's mistake fails only this attempt
                raise PluginFailure(plugin.name, "PreFilter", repr(error)) from error
            if status is not None and status.code is not Code.SUCCESS:
                raise PluginFailure(plugin.name, "PreFilter", status.message)

    # Filter, the thorough way.

    def diagnose(self, refusal: Status | None = None) -> Diagnosis:
        """Return for each node why the first plugin refuses it; `refusal` is that of PreFilter, if any."""
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
        """Call one filter for the nodes, and remove those that it refuses from `left`."""
        asked = left[nodes.rows]
        found = rejections(slot, self.state, self.pod, nodes, asked)
        bad = refused(found, len(asked)) & asked
        if not bad.any():
            return
        unresolvable = np.zeros(len(asked), np.bool_)
        pending: Bools | None = None
        for rejection in found:
            unresolvable |= rejection.where & np.asarray(rejection.unresolvable)
            if rejection.pending is not False:
                waits = bad & rejection.where & np.asarray(rejection.pending)
                pending = waits if pending is None else pending | waits

        def spread(mask: Bools) -> Bools:
            """Extend the mask to all rows."""
            if isinstance(nodes.rows, slice):
                return mask
            full = np.zeros(len(left), np.bool_)
            full[nodes.rows] = mask
            return full

        reasons = tuple((r.reason, spread(bad & r.where)) for r in found)
        unresolvable = spread(unresolvable & bad)
        pending = None if pending is None else spread(pending)
        diagnosis.refuse(Refusal(slot.name, spread(bad), reasons, unresolvable, pending))
        left[nodes.rows] &= ~bad

    def _refuse_beside_nominated(self, diagnosis: Diagnosis, left: Bools) -> None:
        """Refuse the nodes that are too full with their nominated pods: this check comes first."""
        if not self.cluster.nominations:
            return
        if self.looks_at_one_node:
            with_nominated = NominatedNodes(self.cluster, self.pod)
            for slot in self.profile.filters:
                if slot.name not in self.state.skip_filter and len(with_nominated):
                    self._refuse(diagnosis, slot, with_nominated, left)
            return
        for name in self.cluster.nominations.nodes():
            row = self.cluster.row(name)
            if row is None or not left[row]:
                continue
            status = self.filter_with_nominated(self.state, self.cluster.one_node(row))
            if status is not None:
                only = np.zeros(len(left), np.bool_)
                only[row] = True
                unresolvable = only & (status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
                pending = only & (status.code is Code.PENDING)
                reasons = tuple((reason, only) for reason in status.reasons)
                diagnosis.refuse(Refusal(status.plugin, only, reasons, unresolvable, pending))
                left[row] = False

    @property
    def looks_at_one_node(self) -> bool:
        """Whether all filters that do not skip look at one node at a time."""
        return all(slot.name in self.state.skip_filter for slot in self.shape.other_filters)

    # Score.

    def pre_score(self, nodes: Nodes) -> None:
        for plugin in self.shape.pre_scores:
            if declines_to_score(plugin, self.state, self.pod, nodes):
                self.state.skip_score = self.state.skip_score | {plugin.name}

    def totals(self, left: Bools) -> tuple[Ints, Ints | None]:
        """Return total scores the quick way; REFUSED or less marks nodes that do not fit.

        The second value is the rows that the totals are for, or None if they are for all rows.
        """
        shape, state, pod = self.shape, self.state, self.pod
        shape.refresh()
        if shape.even is None:
            # Needed for the record. It also makes a plugin that fails here fail the attempt.
            shape.find_even()
        nodes = SelectedNodes(self.cluster, left)
        self.pre_score(nodes)
        constant: list[tuple[Slot, int]] = []
        varied: list[tuple[Slot, Ints]] = []
        self.constant, self.varied = constant, varied
        for slot in shape.other_scores:
            if slot.name in state.skip_score:
                continue
            raw = raw_scores(slot, state, pod, nodes)
            size = len(nodes) if slot.normalizes or not isinstance(raw, int) else 0
            scores = final_scores(slot, state, pod, raw, nodes, size)
            if isinstance(scores, int):
                constant.append((slot, scores))
            else:
                varied.append((slot, scores))
        if not varied and shape.raw_is_even:
            return (shape.ranked if left is shape.feasible else np.where(left, shape.ranked, REFUSED)), None
        rows = self.rows = np.asarray(nodes.rows)
        for kept in shape.raw:
            if not kept.even:
                scores = final_scores(kept.slot, state, pod, kept.of(rows), nodes, len(rows))
                if isinstance(scores, int):
                    constant.append((kept.slot, scores))
                else:
                    varied.append((kept.slot, scores))
        totals = shape.ranked[rows]
        for slot, numbers in varied:
            totals += numbers if slot.weight == 1 else numbers * slot.weight
        return totals, rows

    def score_table(self, left: Bools) -> Mapping[str, Ints]:
        """Return the weighted scores of the rows in `left`, by plugin; plugins that skip are absent."""
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
