"""What `longshore explain` prints: the pod, the best nodes with each score, and why others are rejected."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from longshore.ask.membership import Membership
from longshore.ask.outlook import Outlook, Subject
from longshore.engine.answers.explanation import Rejected
from longshore.engine.answers.records import Decision

_BEST_NODES = 10
_SOME_NAMES = 5
_EARLIER = 5
_OWN = ">"
# Short names of default plugins, so that their scores fit on one line.
_SHORT = {
    "TaintToleration": "Taints",
    "NodeResourcesFit": "Fit",
    "NodeResourcesBalancedAllocation": "Balanced",
    "PodTopologySpread": "Spread",
    "InterPodAffinity": "PodAffinity",
    "ImageLocality": "Images",
    "VolumeBinding": "Volumes",
}


# What the scheduler decided.


def decision_lines(decisions: Sequence[Decision]) -> Iterator[str]:
    """Yield the newest decision in full, and a line for each earlier one."""
    if not decisions:
        yield "the scheduler has no recorded decision about this pod"
        return
    newest, *earlier = decisions
    yield f"as decided at {_clock(newest)} by {newest.profile}:"
    yield f"  {_outcome(newest)}"
    for refused in newest.refused:
        yield f"  {refused.nodes} rejected by {_named(refused.plugin, refused.reason)}"
    if newest.scores:
        own = [_OWN, newest.node, str(newest.total), *map(str, newest.scores.values())]
        heading = _heading(newest.weights)
        if newest.extenders:
            heading, own = [*heading, "Extenders"], [*own, str(newest.extenders)]
        yield ""
        yield from _table([heading, own])
        yield ""
    for decision in earlier[:_EARLIER]:
        yield f"  earlier, at {_clock(decision)}: {_outcome(decision)}"


def _clock(decision: Decision) -> str:
    return datetime.fromtimestamp(decision.time).astimezone().strftime("%H:%M:%S")


def _outcome(decision: Decision) -> str:
    if decision.message:
        text = f"{decision.node}: {decision.message}" if decision.node else decision.message
        if decision.nominated_node:
            victims = ", ".join(decision.victims)
            text += f" To make room on {decision.nominated_node}, these pods were evicted: {victims}."
        return text
    if decision.feasible == 1:
        return f"{decision.node}, the only feasible one of {decision.nodes} nodes"
    text = f"{decision.node}, the best of {decision.feasible} feasible nodes out of {decision.nodes}"
    if decision.ties > 1:
        text += f"; {decision.ties} had the same score, and the tie-break was {decision.tie_break}"
    return text


# What the scheduler would decide now.


def outlook_lines(outlook: Outlook, *, everything: bool) -> Iterator[str]:
    """Yield what would be decided. With `everything`, show all nodes and names, not only the best nodes."""
    explanation, pod = outlook.explanation, outlook.pod
    count = len(explanation.feasible) + len(explanation.rejected)
    yield "as the cluster is now" + (", without this pod:" if pod.node else ":")
    if outlook.gated_by:
        yield f"  kept out of the queue by {outlook.gated_by}"
    if outlook.pod_set is not None:
        yield from _plan(outlook.pod_set)
    if explanation.error:
        yield f"  error: {explanation.error}"
    elif explanation.pre_filter is not None:
        yield f"  the pod itself is rejected by {_reason(explanation.pre_filter)}"
    else:
        yield f"  {len(explanation.feasible)} of {count} nodes are feasible"
    if pod.node and not explanation.error:
        yield f"  {_own_node(outlook)}"
    if outlook.preemption is not None:
        found = outlook.preemption
        if found.node:
            yield f"  preemption would evict from {found.node}: {', '.join(found.victims)}"
        elif found.message:
            yield f"  {found.message}"
    yield from _best(outlook, most=len(explanation.feasible) if everything else _BEST_NODES)
    yield from _rejected(explanation.rejected, names=len(explanation.rejected) if everything else _SOME_NAMES)


def _plan(joined: Membership) -> Iterator[str]:
    if joined.planned_node:
        yield f"  planned for {joined.planned_node} by plan {joined.plan}"
    elif joined.unplaced:
        yield f"  plan {joined.plan} has no node for this pod: {joined.unplaced}"


def headline(pod: Subject) -> Iterator[str]:
    state = f"on {pod.node}, {pod.phase}" if pod.node else "pending"
    if pod.ending:
        state += ", being deleted"
    yield f"pod {pod.namespace}/{pod.name}: {state}; scheduler {pod.scheduler_name}"
    if pod.nominated_node:
        yield f"  nominated to {pod.nominated_node}"
    if pod.message:
        yield f"  {pod.reason}: {pod.message}"


def _own_node(outlook: Outlook) -> str:
    node, explanation = outlook.pod.node, outlook.explanation
    if outlook.rank:
        totals = list(explanation.totals.values())
        behind = max(totals) - explanation.totals[node]
        if behind:
            return f"{node} ranks number {outlook.rank}, {behind} points behind the best"
        equals = totals.count(max(totals)) - 1
        return f"{node} is the best node" + (f", and {equals} more have the same score" if equals else "")
    if node in explanation.rejected:
        return f"{node} would be rejected by {_reason(explanation.rejected[node])}"
    return f"{node} would not be considered"


def _best(outlook: Outlook, *, most: int) -> Iterator[str]:
    totals, scores = outlook.explanation.totals, outlook.explanation.scores
    ranked = sorted(totals, key=lambda name: (-totals[name], name))
    if not ranked:
        return
    shown = ranked[:most]
    own = outlook.pod.node
    if own in totals and own not in shown:
        shown.append(own)
    # The plugins that scored, in the order of the profile.
    weights = {name: weight for name, weight in outlook.weights.items() if name in scores[ranked[0]]}
    yield ""
    yield from _table(
        [
            _heading(weights),
            *(
                [
                    _OWN if name == own else "",
                    name,
                    str(totals[name]),
                    *(str(scores[name][plugin]) for plugin in weights),
                ]
                for name in shown
            ),
        ]
    )
    if len(shown) < len(ranked):
        yield f"   and {len(ranked) - len(shown)} more: --all shows them"


def _rejected(rejected: Mapping[str, Rejected], *, names: int) -> Iterator[str]:
    if not rejected:
        return
    groups: dict[str, list[str]] = {}
    for node, why in rejected.items():
        groups.setdefault(_reason(why), []).append(node)
    yield ""
    yield "rejected:"
    for reason, nodes in sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])):
        more = f" and {len(nodes) - names} more" if len(nodes) > names else ""
        yield f"  {len(nodes)} by {reason} ({', '.join(nodes[:names])}{more})"


def _reason(why: Rejected) -> str:
    return _named(why.plugin, ", ".join(why.reasons))


def _named(plugin: str, reason: str) -> str:
    return f"{plugin}: {reason}" if plugin else reason


def _heading(weights: Mapping[str, int]) -> list[str]:
    return ["", "node", "total", *(f"{_SHORT.get(name, name)} x{w}" for name, w in weights.items())]


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield aligned rows, without regard to the width of the terminal. All but two columns are numbers."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
