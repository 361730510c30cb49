"""DefaultPreemption: if a pod fits on no node, finds a node to make room on by evicting less important pods.

Nodes are examined in turn, starting at a different one each time, until there are enough candidates to choose
from. For most pods, the outcome on a node depends only on that node. It is then cached with the pod's shape
until the node changes, so that most of the work is already done for the next pod of the shape.
"""

from collections.abc import Iterable, Sequence

from longshore.api import Pod, PodDisruptionBudget
from longshore.api.kept import kept_condition
from longshore.api.selectors import InvalidSelector, selects
from longshore.cluster import OneNode, PodInfo
from longshore.framework import (
    Action,
    Code,
    CycleState,
    Handle,
    NodeStatuses,
    PostFilterResult,
    Resource,
    Status,
    WakeOn,
)
from longshore.framework.points import Candidate
from longshore.framework.preemption import NOT_STARTED, best, candidate

NAME = "DefaultPreemption"
REASON_NO_VICTIMS = "No preemption victims found for incoming pod"
REASON_NOT_HELPFUL = "Preemption is not helpful for scheduling"
REASON_NEVER = "not eligible due to preemptionPolicy=Never."
REASON_TERMINATING = "not eligible due to a terminating pod on the nominated node."


class _Examined:
    """The cached outcomes by row, and the state of the cluster for which they are valid."""

    def __init__(self) -> None:
        self.outcomes: dict[int, Candidate | Status] = {}
        self.position = -1
        self.budgets = -1


class DefaultPreemption:
    name = NAME

    def __init__(
        self,
        *,
        handle: Handle,
        min_candidate_nodes_percentage: int = 10,
        min_candidate_nodes_absolute: int = 100,
    ) -> None:
        self._handle = handle
        self._percentage = min_candidate_nodes_percentage
        self._absolute = min_candidate_nodes_absolute
        self._offset = 0
        # The plugins that rejected the pod know which other events may help it.
        self.wakes_on: tuple[WakeOn, ...] = (WakeOn(Resource.ASSIGNED_POD, Action.DELETE),)

    def post_filter(self, state: CycleState, pod: PodInfo, statuses: NodeStatuses) -> PostFilterResult:
        ineligible = self._ineligible(pod, statuses)
        if ineligible:
            return PostFilterResult(Status.unschedulable(f"preemption: {ineligible}"))
        candidates, failures = self._examine(state, pod, statuses)
        if not candidates:
            return PostFilterResult(
                Status.unschedulable(f"preemption: {self._message(failures)}"), nominated=""
            )
        chosen = best(candidates)
        return PostFilterResult(nominated=chosen.node, victims=chosen.victims, candidates=candidates)

    def _ineligible(self, pod: PodInfo, statuses: NodeStatuses) -> str:
        if pod.pod.spec.preemption_policy == "Never":
            return REASON_NEVER
        cluster = self._handle.cluster
        row = cluster.row(pod.pod.status.nominated_node_name) if pod.pod.status.nominated_node_name else None
        if row is None or statuses.code(row) is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return ""
        leaving = any(_gives_way(other, pod) and _is_preempted(other.pod) for other in cluster.pods_on(row))
        return REASON_TERMINATING if leaving else ""

    def _examine(
        self, state: CycleState, pod: PodInfo, statuses: NodeStatuses
    ) -> tuple[list[Candidate], list[Status]]:
        """Return the candidates, and why the other examined nodes are not candidates."""
        rows = statuses.rows(Code.UNSCHEDULABLE).tolist()
        enough = min(len(rows), max(len(rows) * self._percentage // 100, self._absolute))
        known = self._known(state, pod)
        budgets = list(self._handle.cluster.objects(PodDisruptionBudget))
        start = self._offset % len(rows) if rows else 0
        candidates: list[Candidate] = []
        failures: list[Status] = []
        harmless = False
        for row in (*rows[start:], *rows[:start]):
            outcome = known.get(row)
            if outcome is None:
                outcome = known[row] = self._dry_run(state, pod, row, budgets)
            if isinstance(outcome, Status):
                failures.append(outcome)
                continue
            candidates.append(outcome)
            harmless = harmless or outcome.cost[0] == 0
            if harmless and len(candidates) >= enough:
                break
        self._offset += enough
        return candidates, failures

    def _known(self, state: CycleState, pod: PodInfo) -> dict[int, Candidate | Status]:
        """Return the valid outcomes of earlier attempts; none if they do not depend on the node alone."""
        if not self._handle.looks_at_one_node(state, pod):
            return {}
        cluster = self._handle.cluster
        examined: _Examined = state.memo.setdefault(NAME, _Examined())
        changed = cluster.journal.rows_since(examined.position)
        if changed is None or examined.budgets != cluster.version(PodDisruptionBudget):
            examined.outcomes.clear()
        else:
            for row in changed:
                examined.outcomes.pop(row, None)
        examined.position = cluster.journal.position
        examined.budgets = cluster.version(PodDisruptionBudget)
        return examined.outcomes

    def _dry_run(
        self, state: CycleState, pod: PodInfo, row: int, budgets: Sequence[PodDisruptionBudget]
    ) -> Candidate | Status:
        """Find the victims on one node: remove all pods of lower priority, then put back as many as fit."""
        handle, node = self._handle, self._handle.cluster.one_node(row).copy()
        lesser = [other for other in node.pods if _gives_way(other, pod)]
        if not lesser:
            return Status.unresolvable(REASON_NO_VICTIMS)
        imagined = state.clone()
        for other in lesser:
            handle.remove_pod(imagined, pod, other, node)
        status = handle.filter_node(imagined, pod, node)
        if status is not None:
            return status
        lesser.sort(key=_importance)
        protected, others = _by_budget(lesser, budgets)
        victims = self._not_reprieved(imagined, pod, node, protected)
        violations = len(victims)
        victims += self._not_reprieved(imagined, pod, node, others)
        if not victims:
            return Status.error(f'expected at least one victim pod on node "{node.name}"')
        victims.sort(key=_importance)
        return candidate(node.name, victims, violations)

    def _not_reprieved(
        self, state: CycleState, pod: PodInfo, node: OneNode, lesser: Iterable[PodInfo]
    ) -> list[PodInfo]:
        victims = []
        for other in lesser:
            self._handle.add_pod(state, pod, other, node)
            if self._handle.filter_node(state, pod, node) is not None:
                self._handle.remove_pod(state, pod, other, node)
                victims.append(other)
        return victims

    def _message(self, failures: Sequence[Status]) -> str:
        count = self._handle.cluster.node_count
        numbers: dict[str, int] = {}
        for status in failures:
            for reason in status.reasons:
                numbers[reason] = numbers.get(reason, 0) + 1
        if len(failures) < count:
            numbers[REASON_NOT_HELPFUL] = numbers.get(REASON_NOT_HELPFUL, 0) + count - len(failures)
        histogram = ", ".join(sorted(f"{number} {reason}" for reason, number in numbers.items()))
        return f"0/{count} nodes are available: {histogram}."


def _gives_way(other: PodInfo, pod: PodInfo) -> bool:
    return other.pod.spec.priority < pod.pod.spec.priority


def _is_preempted(pod: Pod) -> bool:
    if pod.metadata.deletion_timestamp is None:
        return False
    target = kept_condition(pod.status.conditions, "DisruptionTarget")
    return target is not None and target.status == "True" and target.reason == "PreemptionByScheduler"


def _importance(info: PodInfo) -> tuple[int, str]:
    """Return a sort key that puts the most important pods first: by priority, then by start time."""
    return -info.pod.spec.priority, info.pod.status.start_time or NOT_STARTED


def _by_budget(
    pods: Iterable[PodInfo], budgets: Sequence[PodDisruptionBudget]
) -> tuple[list[PodInfo], list[PodInfo]]:
    """Return the pods whose eviction would violate a PodDisruptionBudget, and the others.

    Each pod in turn uses up its budgets.
    """
    protected: list[PodInfo] = []
    others: list[PodInfo] = []
    allowed = [budget.status.disruptions_allowed for budget in budgets]
    for info in pods:
        violated = False
        for number, budget in enumerate(budgets):
            if _covers(budget, info.pod):
                allowed[number] -= 1
                violated = violated or allowed[number] < 0
        (protected if violated else others).append(info)
    return protected, others


def _covers(budget: PodDisruptionBudget, pod: Pod) -> bool:
    selector = budget.spec.selector
    # An empty selector covers all pods for the disruption controller, but no pods for kube-scheduler.
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return False
    meta = pod.metadata
    if not meta.labels or budget.metadata.namespace != meta.namespace:
        return False
    try:
        return selects(selector, meta.labels) and meta.name not in budget.status.disrupted_pods
    except InvalidSelector:
        return False
