"""`longshore explain` for people: the pod, the best nodes with every plugin's score, why not the others."""

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
# Plugins that everybody has: so that their scores fit beside each other on a line.
_SHORT = {
    "TaintToleration": "Taints",
    "NodeResourcesFit": "Fit",
    "NodeResourcesBalancedAllocation": "Balanced",
    "PodTopologySpread": "Spread",
    "InterPodAffinity": "PodAffinity",
    "ImageLocality": "Images",
    "VolumeBinding": "Volumes",
}


# What was decided.


def decision_lines(decisions: Sequence[Decision]) -> Iterator[str]:
    """The newest in full, and the ones before it in a line each."""
    if not decisions:
        yield "the scheduler has no decision about it on record"
        return
    newest, *earlier = decisions
    yield f"when it was decided at {_clock(newest)} by {newest.profile}:"
    yield f"  {_outcome(newest)}"
    for refused in newest.refused:
        yield f"  {refused.nodes} refused by {_named(refused.plugin, refused.reason)}"
    if newest.scores:
        own = [_OWN, newest.node, str(newest.total), *map(str, newest.scores.values())]
        heading = _heading(newest.weights)
        if newest.extenders:
            heading, own = [*heading, "Extenders"], [*own, str(newest.extenders)]
        yield ""
        yield from _table([heading, own])
        yield ""
    for decision in earlier[:_EARLIER]:
        yield f"  before, at {_clock(decision)}: {_outcome(decision)}"


def _clock(decision: Decision) -> str:
    return datetime.fromtimestamp(decision.time).astimezone().strftime("%H:%M:%S")


def _outcome(decision: Decision) -> str:
    if decision.message:
        said = f"{decision.node}: {decision.message}" if decision.node else decision.message
        if decision.nominated_node:
            victims = ", ".join(decision.victims)
            said += f" Room was made on {decision.nominated_node} by evicting {victims}."
        return said
    if decision.feasible == 1:
        return f"{decision.node}, the only one of {decision.nodes} nodes that would do"
    said = f"{decision.node}, the best of {decision.feasible} that would do out of {decision.nodes} nodes"
    if decision.ties > 1:
        said += f"; {decision.ties} were equally good, and the tie-break was {decision.tie_break}"
    return said


# What would be decided now.


def outlook_lines(outlook: Outlook, *, everything: bool) -> Iterator[str]:
    """`everything`: all nodes rather than the best, and all names."""
    explanation, pod = outlook.explanation, outlook.pod
    count = len(explanation.feasible) + len(explanation.rejected)
    yield "as the cluster is now" + (", with the pod taken out:" if pod.node else ":")
    if outlook.gated_by:
        yield f"  kept out of the queue by {outlook.gated_by}"
    if outlook.pod_set is not None:
        yield from _plan(outlook.pod_set)
    if explanation.error:
        yield f"  error: {explanation.error}"
    elif explanation.pre_filter is not None:
        yield f"  the pod itself is refused by {_reason(explanation.pre_filter)}"
    else:
        yield f"  {len(explanation.feasible)} of {count} nodes will do"
    if pod.node and not explanation.error:
        yield f"  {_own_node(outlook)}"
    if outlook.preemption is not None:
        found = outlook.preemption
        if found.node:
            yield f"  preemption would evict from {found.node}: {', '.join(found.victims)}"
        elif found.message:
            yield f"  {found.message}"
    yield from _best(outlook, most=len(explanation.feasible) if everything else _BEST_NODES)
    yield from _refused(explanation.rejected, names=len(explanation.rejected) if everything else _SOME_NAMES)


def _plan(joined: Membership) -> Iterator[str]:
    if joined.planned_node:
        yield f"  planned for {joined.planned_node} by plan {joined.plan}"
    elif joined.unplaced:
        yield f"  plan {joined.plan} has no node for it: {joined.unplaced}"


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
            return f"{node} is number {outlook.rank} of them, {behind} points behind the best"
        equals = totals.count(max(totals)) - 1
        return f"{node} is the best of them" + (f", and {equals} more are as good" if equals else "")
    if node in explanation.rejected:
        return f"{node} would be refused by {_reason(explanation.rejected[node])}"
    return f"{node} would not be looked at"


def _best(outlook: Outlook, *, most: int) -> Iterator[str]:
    totals, scores = outlook.explanation.totals, outlook.explanation.scores
    ranked = sorted(totals, key=lambda name: (-totals[name], name))
    if not ranked:
        return
    shown = ranked[:most]
    own = outlook.pod.node
    if own in totals and own not in shown:
        shown.append(own)
    # The plugins that had something to say, in the order of the profile.
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


def _refused(rejected: Mapping[str, Rejected], *, names: int) -> Iterator[str]:
    if not rejected:
        return
    groups: dict[str, list[str]] = {}
    for node, why in rejected.items():
        groups.setdefault(_reason(why), []).append(node)
    yield ""
    yield "refused:"
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
    """Columns as wide as they have to be, whatever the terminal: the first two to the left, numbers right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
