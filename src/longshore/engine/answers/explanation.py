"""Why a pod fits here and not there: what every plugin says about every node for one pod, as a value.

It calls all plugins again, in order, on the cluster as it is now. It changes nothing.
"""

from collections.abc import Mapping

import msgspec
import numpy as np

from longshore.cluster import PodInfo
from longshore.engine.cycle.post_filter import way_out
from longshore.engine.decision.chooser import Chooser, Unplaced
from longshore.engine.decision.diagnosis import Diagnosis
from longshore.engine.plugin_failure import PluginFailure
from longshore.framework import Status
from longshore.framework.extension_points import POST_FILTER


class Rejected(msgspec.Struct, frozen=True):
    """Why a node does not fit. Without a plugin, a PreFilter narrowed the choice to other nodes."""

    plugin: str
    code: str
    reasons: tuple[str, ...]


class Explanation(msgspec.Struct, frozen=True, rename="camel"):
    """What the plugins of a profile say about a pod.

    `pre_filter` is set if the pod itself was refused; then no node was looked at. `scores` are weighted and
    normalized, by node and plugin; a plugin that skipped is absent.
    """

    feasible: tuple[str, ...] = ()
    rejected: Mapping[str, Rejected] = {}
    pre_filter: Rejected | None = None
    scores: Mapping[str, Mapping[str, int]] = {}
    totals: Mapping[str, int] = {}
    # What failed, if anything did.
    error: str = ""


class WayOut(msgspec.Struct, frozen=True):
    """What the scheduler would do for a pod that fits nowhere. Victims are named `namespace/name`."""

    node: str = ""
    victims: tuple[str, ...] = ()
    message: str = ""


NARROWED = "PreFilterResult"


def explain(chooser: Chooser, pod: PodInfo) -> Explanation:
    try:
        return _explain(chooser, pod)
    except PluginFailure as failure:
        return Explanation(error=str(failure))


def _explain(chooser: Chooser, pod: PodInfo) -> Explanation:
    attempt = chooser.attempt(pod)
    cluster = attempt.cluster
    refusal = attempt.pre_filter()
    diagnosis = attempt.diagnose(refusal)
    if refusal is not None:
        return Explanation(pre_filter=_rejected(refusal))
    left = cluster.known.copy()
    rejected = {}
    for row in np.flatnonzero(cluster.known).tolist():
        status = diagnosis.status(row)
        if status is not None:
            left[row] = False
            rejected[cluster.node_name(row)] = _why(diagnosis, row, status)
    rows = np.flatnonzero(left).tolist()
    names = [cluster.node_name(row) for row in rows]
    table = attempt.score_table(left) if rows else {}
    scores = {
        name: {plugin: int(column[place]) for plugin, column in sorted(table.items())}
        for place, name in enumerate(names)
    }
    return Explanation(
        tuple(sorted(names)),
        dict(sorted(rejected.items())),
        scores=dict(sorted(scores.items())),
        totals={name: sum(by_plugin.values()) for name, by_plugin in sorted(scores.items())},
    )


def explain_way_out(chooser: Chooser, pod: PodInfo) -> WayOut:
    """Return what the PostFilters say about a pod that fits nowhere, without doing it."""
    try:
        attempt = chooser.attempt(pod)
        unplaced = Unplaced(attempt, attempt.diagnose(attempt.pre_filter()))
    except PluginFailure as failure:
        return WayOut(message=str(failure))
    result = way_out(chooser.profile.at(POST_FILTER), unplaced, pod)
    return WayOut(
        result.nominated or "",
        tuple(victim.pod.key for victim in result.victims),
        "" if result.status is None else result.status.message,
    )


def _why(diagnosis: Diagnosis, row: int, status: Status) -> Rejected:
    absent = diagnosis.absent_rows
    if absent is not None and absent[row]:
        return Rejected("", NARROWED, status.reasons)
    return _rejected(status)


def _rejected(status: Status) -> Rejected:
    return Rejected(status.plugin, status.code.value, status.reasons)


def agrees_with_decision(chooser: Chooser, pod: PodInfo, explanation: Explanation) -> str:
    """Return how a decision, made the quick way, differs from the explanation; empty if it does not."""
    try:
        attempt = chooser.attempt(pod)
        refusal = attempt.pre_filter()
        if refusal is not None or explanation.pre_filter is not None:
            same = refusal is not None and _rejected(refusal) == explanation.pre_filter
            return "" if same else f"PreFilter said {refusal}"
        left = attempt.feasible()
        cluster = attempt.cluster
        names = tuple(sorted(cluster.node_name(row) for row in np.flatnonzero(left).tolist()))
        if names != explanation.feasible:
            return f"feasible {names}"
        if len(names) < 2:
            return ""
        totals, rows = attempt.totals(left)
        if rows is None:
            rows = np.flatnonzero(left)
            totals = totals[rows]
        # A decision may leave out scores that are the same for all nodes.
        quick = {
            cluster.node_name(row): total for row, total in zip(rows.tolist(), totals.tolist(), strict=True)
        }
        offsets = {explanation.totals[name] - total for name, total in quick.items()}
    except PluginFailure as failure:
        return str(failure)
    return "" if len(offsets) == 1 else f"totals {quick}"
