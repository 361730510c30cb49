"""Calls of HTTP extenders during an attempt, at the points where kube-scheduler calls them.

- Filter: one after the other, each with the nodes that the one before left.
- Prioritize: all at once. Scores from 0 to 10 count as 0 to 100, multiplied by the extender's weight.
- Preempt: with all candidates of PostFilter.
- Bind: instead of the Bind plugins.

An extender with managed resources is called only for pods that request one of them. If an ignorable extender
fails, the attempt goes on without it.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np

from longshore.api import Pod
from longshore.cluster import ClusterState, PodInfo
from longshore.cluster.arrays import Bools, Ints
from longshore.config import Webhook
from longshore.engine.cycle import webhook_wire as wire
from longshore.engine.cycle.webhook_wire import NoAnswer
from longshore.engine.decision.attempt import Attempt
from longshore.engine.decision.chooser import Chooser, Placement, Unplaced
from longshore.engine.decision.diagnosis import Refusal
from longshore.engine.plugin_failure import PluginFailure
from longshore.framework import MAX_SCORE, PostFilterResult, Status
from longshore.framework.effects import Answered, Ask, CallWebhook, Failed, Outcome, Succeeded, Together
from longshore.framework.points import Candidate
from longshore.framework.preemption import best, candidate

# Named as the rejector of nodes that extenders remove. It is not a plugin, so any event may help the pod.
NAME = "Extender"
REASON_NO_CANDIDATE = "no candidate node for preemption"
_MAX_WEBHOOK_SCORE = 10
# A limit for an extender's score, far below the point where sums would overflow.
_MOST = 2**52

T = TypeVar("T")
_Asking = Generator[Ask, Outcome, T]


class Consultation:
    """Whether a decision waits for extenders. Until they answer, no other pod is tried.

    Changes of the cluster wait as well, so the decision is made on the cluster that it began with.
    """

    __slots__ = ("is_open",)

    def __init__(self) -> None:
        self.is_open = False


class Webhooks:
    """The extenders of a configuration, for the cycles of one profile."""

    def __init__(
        self,
        settings: Sequence[Webhook],
        chooser: Chooser,
        cluster: ClusterState,
        consultation: Consultation,
    ) -> None:
        self._settings = settings
        self._chooser = chooser
        self._cluster = cluster
        self._consultation = consultation
        self._managed = [frozenset(r.name for r in webhook.managed_resources) for webhook in settings]

    def decide(self, pod: PodInfo, key: bytes) -> _Asking[Placement | Unplaced | Status]:
        """Decide as `Chooser.decide` does, and let the extenders rule out and rank nodes."""
        chooser = self._chooser
        try:
            attempt = chooser.pre_filtered(pod, key)
            if not isinstance(attempt, Attempt):
                return attempt
            nominated = chooser.nominated(attempt)
            if nominated is not None and (yield from self._keep(attempt, nominated)):
                return Placement(attempt, nominated, self._cluster.node_name(nominated), 1)
            # A copy, because the shape's answers may change while the extenders are asked.
            left = chooser.examined(attempt, attempt.feasible()).copy()
            refusals: list[Refusal] = []
            left = yield from self._filter(attempt, left, refusals)
            if not left.any():
                diagnosis = attempt.diagnose()
                for dropped in refusals:
                    diagnosis.refuse(dropped)
                return Unplaced(attempt, diagnosis)
            return (yield from self._best(attempt, left))
        except PluginFailure as failure:
            return failure.status
        except NoAnswer as error:
            return Status.error(str(error))

    def _keep(self, attempt: Attempt, row: int) -> _Asking[bool]:
        """Whether the extenders accept the node that the pod is nominated to."""
        alone = np.zeros(len(attempt.cluster.known), np.bool_)
        alone[row] = True
        try:
            return bool((yield from self._filter(attempt, alone, []))[row])
        except NoAnswer:
            return False

    def _filter(self, attempt: Attempt, left: Bools, refusals: list[Refusal]) -> _Asking[Bools]:
        """Return the nodes that the extenders keep, and add the others to `refusals`. Raises NoAnswer."""
        pod = attempt.pod.pod
        for number, webhook in self._interested(pod):
            if not webhook.filter_verb or not left.any():
                continue
            rows = self._in_order(left)
            try:
                body = self._about_nodes(pod, rows, webhook)
                [outcome] = yield from self._ask(CallWebhook(number, webhook.filter_verb, body))
                answer = wire.filtered(_body(outcome))
                kept = self._kept(rows, answer.left(by_name=webhook.node_cache_capable), webhook)
            except NoAnswer:
                if webhook.ignorable:
                    continue
                raise
            if (dropped := left & ~kept).any():
                refusals.append(self._refusal(dropped, answer))
            left = left & kept
        return left

    def _kept(self, rows: Ints, names: Sequence[str], webhook: Webhook) -> Bools:
        cluster = self._cluster
        asked = {cluster.node_name(row): row for row in rows.tolist()}
        kept = np.zeros(len(cluster.known), np.bool_)
        for name in names:
            if name not in asked:
                raise NoAnswer(
                    f'extender "{webhook.url_prefix}" claims a filtered node "{name}" '
                    "which is not found in the input node list"
                )
            kept[asked[name]] = True
        return kept

    def _refusal(self, dropped: Bools, answer: wire.Filtered) -> Refusal:
        """Return the nodes that the extender removed: unresolvable and without a reason if it gave none."""
        unresolvable = dropped.copy()
        masks: dict[str, Bools] = {}
        hopeless = answer.failedandunresolvablenodes or {}
        for name, reason in {**(answer.failednodes or {}), **hopeless}.items():
            row = self._cluster.row(name)
            if row is not None and dropped[row]:
                unresolvable[row] = name in hopeless
                masks.setdefault(reason, np.zeros(len(dropped), np.bool_))[row] = True
        return Refusal(NAME, dropped, tuple(masks.items()), unresolvable)

    def _best(self, attempt: Attempt, left: Bools) -> _Asking[Placement | Unplaced]:
        count = int(np.count_nonzero(left))
        if count == 1:
            return self._chooser.choose(attempt, left)
        totals, rows = attempt.totals(left)
        if rows is None:
            rows = np.flatnonzero(left)
            totals = totals[rows]
        more = yield from self._priorities(attempt, left)
        names = map(self._cluster.node_name, rows.tolist())
        added = [min(max(more.get(name, 0), -_MOST), _MOST) for name in names]
        totals = totals + np.array(added, np.int64)
        # An extender may return negative scores, but totals must not be below 0.
        return self._chooser.best(attempt, totals - min(totals.min(), 0), rows, count)

    def _priorities(self, attempt: Attempt, left: Bools) -> _Asking[Mapping[str, int]]:
        """Return what the extenders add to the score of each node. One that fails adds nothing."""
        pod = attempt.pod.pod
        rows = self._in_order(left)
        asked = [(n, webhook) for n, webhook in self._interested(pod) if webhook.prioritize_verb]
        outcomes = yield from self._ask(
            *(
                CallWebhook(number, webhook.prioritize_verb, self._about_nodes(pod, rows, webhook))
                for number, webhook in asked
            )
        )
        scores: dict[str, int] = {}
        for (_, webhook), outcome in zip(asked, outcomes, strict=True):
            try:
                found = wire.priorities(_body(outcome))
            except NoAnswer:
                continue
            factor = webhook.weight * (MAX_SCORE // _MAX_WEBHOOK_SCORE)
            for host in found:
                scores[host.host] = scores.get(host.host, 0) + host.score * factor
        return scores

    def preempt(self, pod: PodInfo, result: PostFilterResult) -> _Asking[PostFilterResult]:
        """Return the best candidate that the extenders leave. They may also change its victims."""
        left: Sequence[Candidate] = result.candidates
        asked = False
        for number, webhook in self._interested(pod.pod):
            if not webhook.preempt_verb or not left:
                continue
            asked = True
            body = wire.about_victims(pod.pod, left, by_name=webhook.node_cache_capable)
            [outcome] = yield from self._ask(CallWebhook(number, webhook.preempt_verb, body))
            try:
                left = self._candidates(wire.victims_by_node(_body(outcome)), webhook)
            except NoAnswer as error:
                if not webhook.ignorable:
                    return PostFilterResult(Status.error(f"preemption: {error}"))
        if not asked:
            return result
        if not left:
            return PostFilterResult(Status.unschedulable(f"preemption: {REASON_NO_CANDIDATE}"))
        chosen = best(left)
        return PostFilterResult(nominated=chosen.node, victims=chosen.victims)

    def _candidates(
        self, by_node: Mapping[str, wire.MetaVictims | None], webhook: Webhook
    ) -> list[Candidate]:
        cluster = self._cluster
        found = []
        for name, named in by_node.items():
            row = cluster.row(name)
            if row is None or not cluster.known[row]:
                raise NoAnswer(f'nodeinfo not found for node name "{name}"')
            there = {info.pod.metadata.uid: info for info in cluster.pods_on(row)}
            uids = [meta.uid for meta in (named and named.pods) or ()]
            for uid in uids:
                if uid not in there:
                    raise NoAnswer(
                        f"extender: {webhook.url_prefix} claims to preempt pod (UID: {uid}) "
                        f"on node: {name}, but the pod is not found on that node"
                    )
            if uids and named is not None:
                found.append(candidate(name, [there[uid] for uid in uids], named.numpdbviolations))
            elif not webhook.ignorable:
                raise NoAnswer(f'expected at least one victim pod on node "{name}"')
        return found

    def bind(self, pod: Pod, node: str, seen: Callable[[], Outcome | None]) -> _Asking[Outcome | None]:
        """Return how the bind by an extender ended; None if it is left to the plugins.

        `seen` returns the outcome that the watch has shown already, whatever an extender answers.
        """
        for number, webhook in self._interested(pod):
            if not webhook.bind_verb:
                continue
            outcome = yield CallWebhook(number, webhook.bind_verb, wire.about_binding(pod, node))
            if (shown := seen()) is not None:
                return shown
            try:
                wire.require_bound(_body(outcome))
            except NoAnswer as error:
                if not webhook.ignorable:
                    return Failed(str(error))
            else:
                return Succeeded()
        return None

    def _ask(self, *calls: CallWebhook) -> _Asking[list[Outcome]]:
        if not calls:
            return []
        self._consultation.is_open = True
        try:
            outcome = yield Together(calls)
        finally:
            self._consultation.is_open = False
        outcomes: list[Outcome] = outcome.value if isinstance(outcome, Answered) else [outcome] * len(calls)
        return outcomes

    def _interested(self, pod: Pod) -> Iterator[tuple[int, Webhook]]:
        for number, webhook in enumerate(self._settings):
            managed = self._managed[number]
            if not managed or _requests(pod, managed):
                yield number, webhook

    def _in_order(self, left: Bools) -> Ints:
        order = self._cluster.tree.order
        found: Ints = order[left[order]]
        return found

    def _about_nodes(self, pod: Pod, rows: Ints, webhook: Webhook) -> bytes:
        known = map(self._cluster.node, rows.tolist())
        nodes = [node for node in known if node is not None]
        return wire.about_nodes(pod, nodes, by_name=webhook.node_cache_capable)


def _body(outcome: Outcome) -> bytes:
    """Return the extender's answer. Raises NoAnswer."""
    if isinstance(outcome, Answered) and isinstance(outcome.value, bytes):
        return outcome.value
    raise NoAnswer(outcome.message or repr(outcome))


def _requests(pod: Pod, managed: frozenset[str]) -> bool:
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    return any(
        not managed.isdisjoint(container.resources.requests)
        or not managed.isdisjoint(container.resources.limits)
        for container in containers
    )
