"""Looks for a way out for a pod that fits nowhere, by asking the PostFilter plugins."""

from collections.abc import Callable, Sequence

from longshore.cluster import PodInfo
from longshore.engine.decision.chooser import Unplaced
from longshore.engine.plugin_failure import PLUGIN_ERRORS
from longshore.framework import Code, PostFilterResult, Status
from longshore.framework.points import PostFilter


def way_out(
    plugins: Sequence[PostFilter],
    unplaced: Unplaced,
    pod: PodInfo,
    *,
    asked: Callable[[str], None] = lambda _plugin: None,
) -> PostFilterResult:
    """Return the first way out that a plugin finds; otherwise the reasons of all plugins together."""
    attempt, diagnosis = unplaced.attempt, unplaced.diagnosis
    if not plugins:
        return PostFilterResult(nominated="")
    reasons: tuple[str, ...] = ()
    nominated: str | None = None
    for plugin in plugins:
        asked(plugin.name)
        try:
            result = plugin.post_filter(attempt.state, pod, diagnosis)
            if not isinstance(result, PostFilterResult):
                raise TypeError(f"{result!r} is not a PostFilterResult")
        except PLUGIN_ERRORS as error:  # a plugin's mistake fails only this attempt
            return PostFilterResult(Status.error(f'running PostFilter plugin "{plugin.name}": {error!r}'))
        if result.status is None or result.status.code is not Code.UNSCHEDULABLE:
            return result
        nominated = result.nominated if result.nominated is not None else nominated
        reasons += result.status.reasons
    return PostFilterResult(Status.unschedulable(*reasons), nominated)
