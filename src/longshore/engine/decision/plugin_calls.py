"""Calls of filters and scores: all of them go through here, and invalid answers go no further."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from longshore.cluster import ClusterState, Nodes, OneNode, PodInfo
from longshore.cluster.arrays import Bools, Ints
from longshore.engine.decision.diagnosis import refusal_code
from longshore.engine.plugin_failure import PLUGIN_ERRORS, PluginFailure
from longshore.framework import MAX_SCORE, Code, CycleState, Forced, Rejection, Status
from longshore.framework.profile import Slot

_NOT_BOOLS = "the answer is not one bool for each node"
OUT_OF_RANGE = f"a score is not between 0 and {MAX_SCORE}"
_NOT_INTS = "the answer is not one int64 for each node"


def pre_filter(
    plugin: Any, state: CycleState, pod: PodInfo, cluster: ClusterState
) -> Status | frozenset[str] | Forced | None:
    """Return a status, the names of the nodes that the plugin narrows the choice to, or the forced one."""
    try:
        answer = plugin.pre_filter(state, pod, cluster)
        if answer is None or isinstance(answer, Status | Forced):
            return answer
        names = frozenset(answer)
    except PLUGIN_ERRORS as error:  # a plugin's mistake fails only this attempt
        raise PluginFailure(plugin.name, "PreFilter", repr(error)) from error
    if isinstance(answer, str):
        # A string is a collection too: of its letters.
        raise PluginFailure(
            plugin.name, "PreFilter", f"{answer!r} is neither a collection of node names nor a Status"
        )
    return names


def declines_to_score(plugin: Any, state: CycleState, pod: PodInfo, nodes: Nodes) -> bool:
    """Call PreScore, and return whether the plugin skips its score."""
    try:
        status = plugin.pre_score(state, pod, nodes)
        if status is None or status.code is Code.SUCCESS:
            return False
        if status.code is Code.SKIP:
            return True
        what = status.message or status.code.value
    except PLUGIN_ERRORS as error:  # as above
        what = repr(error)
    raise PluginFailure(plugin.name, "PreScore", what)


def rejections(slot: Slot, state: CycleState, pod: PodInfo, nodes: Nodes, left: Bools) -> list[Rejection]:
    """Return the filter's reasons over the nodes; a plain filter is called only for those that are `left`."""
    if slot.plain:
        return list(_one_by_one(slot, state, pod, nodes, left))
    try:
        found = list(slot.plugin.filter(state, pod, nodes) or ())
        masks = [
            mask for r in found for mask in (r.where, r.unresolvable, r.pending) if not isinstance(mask, bool)
        ]
        sound = all(mask.dtype == np.bool_ and mask.shape in (left.shape, ()) for mask in masks)
    except PLUGIN_ERRORS as error:  # as above
        raise PluginFailure(slot.name, "filter", repr(error)) from error
    if not sound:
        raise PluginFailure(slot.name, "filter", _NOT_BOOLS)
    return found


def refused(found: Iterable[Rejection], size: int) -> Bools:
    """Return where any of the reasons holds."""
    bad = np.zeros(size, np.bool_)
    for rejection in found:
        bad |= rejection.where
    return bad


def _one_by_one(
    slot: Slot, state: CycleState, pod: PodInfo, nodes: Nodes, left: Bools
) -> Iterable[Rejection]:
    """Yield a plain filter's answers, grouped by reason."""
    cluster, rows = nodes.cluster, nodes.numbers
    places: dict[str, list[int]] = {}
    unresolvable, pending = np.zeros((2, len(left)), np.bool_)
    for place in np.flatnonzero(left).tolist():
        status = filter_one(slot, state, pod, cluster.one_node(int(rows[place])))
        if status is None:
            continue
        unresolvable[place] = status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        pending[place] = status.code is Code.PENDING
        for reason in status.reasons or (f"node(s) were refused by {slot.name}",):
            places.setdefault(reason, []).append(place)
    for reason, where in places.items():
        mask = np.zeros(len(left), np.bool_)
        mask[where] = True
        yield Rejection(reason, mask, mask & unresolvable, mask & pending)


def filter_one(slot: Slot, state: CycleState, pod: PodInfo, node: OneNode) -> Status | None:
    """Return what a filter of either form says about one node, with the pods imagined on it."""
    try:
        if slot.plain:
            return _plain_status(slot, slot.plugin.filter_node(state, pod, node))
        nodes = node if slot.counts_pods else node.as_nodes()
        found = [r for r in slot.plugin.filter(state, pod, nodes) or () if _holds(r.where)]
    except PluginFailure:
        raise
    except PLUGIN_ERRORS as error:  # as above
        raise PluginFailure(slot.name, "filter", repr(error)) from error
    if not found:
        return None
    unresolvable = any(_holds(rejection.unresolvable) for rejection in found)
    pending = any(_holds(rejection.pending) for rejection in found)
    code = refusal_code(unresolvable=unresolvable, pending=pending)
    return Status(code, tuple(rejection.reason for rejection in found), slot.name)


def _holds(mask: Bools | bool) -> bool:
    """Return the value for a single node: of a mask with one element, or of a plain bool."""
    return bool(mask.all() if isinstance(mask, np.ndarray) else mask)


def _plain_status(slot: Slot, answer: object) -> Status | None:
    match answer:
        case None:
            return None
        case str():
            return Status(Code.UNSCHEDULABLE, (answer,), slot.name)
        case Status(code=Code.SUCCESS):
            return None
        case Status() if answer.rejected:
            return Status(answer.code, answer.reasons, slot.name)
        case Status():
            raise PluginFailure(slot.name, "filter", answer.message or answer.code.value)
    raise PluginFailure(slot.name, "filter", f"{answer!r} is neither None nor a reason nor a Status")


def raw_scores(slot: Slot, state: CycleState, pod: PodInfo, nodes: Nodes) -> Ints | int:
    """Return the plugin's scores before normalization; a single number is the same for all nodes."""
    try:
        if slot.plain:
            one = nodes.cluster.one_node
            listed = [slot.plugin.score_node(state, pod, one(row)) for row in nodes.numbers.tolist()]
            scores = np.array(listed, np.int64 if not listed else None)
        else:
            scores = slot.plugin.score(state, pod, nodes)
        if isinstance(scores, int | np.integer):
            return int(scores)
        sound = scores.dtype == np.int64 and scores.ndim == 1
    except PLUGIN_ERRORS as error:  # as above
        raise PluginFailure(slot.name, "Score", repr(error)) from error
    if not sound:
        raise PluginFailure(slot.name, "Score", _NOT_INTS)
    return scores


def final_scores(
    slot: Slot, state: CycleState, pod: PodInfo, raw: Ints | int, nodes: Nodes, size: int
) -> Ints | int:
    """Return the scores, normalized if the plugin does that, and check their range."""
    scores = raw
    if slot.normalizes:
        try:
            full = np.full(size, raw, np.int64) if isinstance(raw, int) else raw
            scores = slot.plugin.normalize(state, pod, full, nodes)
        except PLUGIN_ERRORS as error:  # as above
            raise PluginFailure(slot.name, "NormalizeScore", repr(error)) from error
    if not isinstance(scores, int):
        check_size(slot, scores, size)
    if not within_range(scores):
        raise PluginFailure(slot.name, "Score", OUT_OF_RANGE)
    return scores


def check_size(slot: Slot, scores: Ints, size: int) -> None:
    if not isinstance(scores, np.ndarray) or scores.shape != (size,) or scores.dtype != np.int64:
        raise PluginFailure(slot.name, "Score", _NOT_INTS)


def within_range(scores: Ints | int) -> bool:
    if isinstance(scores, int):
        return 0 <= scores <= MAX_SCORE
    # As unsigned numbers, negative ones are too large as well: one comparison checks both ends.
    return not len(scores) or bool(scores.view(np.uint64).max() <= MAX_SCORE)
