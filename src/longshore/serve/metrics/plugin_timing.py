"""Measures the time that plugins take, in some attempts.

While an attempt is measured, the plugins' methods are replaced by timed ones, so other attempts cost nothing.
The duration of an extension point is the sum over its plugins.
"""

from collections.abc import Callable, Iterator
from typing import Any

from longshore.engine.decision.chooser import Placement, Unplaced
from longshore.framework import Code, Status, Wait
from longshore.framework.profile import Profile
from longshore.serve.metrics.histogram import Histogram, exponential

_PLUGIN_BOUNDS = exponential(0.00001, 1.5, 20)
_POINT_BOUNDS = exponential(0.0001, 2, 12)

# Names of the methods in metrics, except for points that may wait: PreBind, Bind and PostBind.
_POINTS = {
    "pre_filter": "PreFilter",
    "filter": "Filter",
    "filter_node": "Filter",
    "add_pod": "PreFilterExtensionAddPod",
    "remove_pod": "PreFilterExtensionRemovePod",
    "post_filter": "PostFilter",
    "pre_score": "PreScore",
    "score": "Score",
    "score_node": "Score",
    "normalize": "ScoreExtensionNormalize",
    "reserve": "Reserve",
    "unreserve": "Unreserve",
    "permit": "Permit",
}
# Parts of another point, without a duration of their own.
_PARTS = ("PreFilterExtensionAddPod", "PreFilterExtensionRemovePod", "ScoreExtensionNormalize")
SUCCESS = Code.SUCCESS.value
ERROR = Code.ERROR.value
_FINE = (SUCCESS, Code.SKIP.value)


class Sampler:
    """Measures the plugins of one profile, and counts how often each was evaluated."""

    def __init__(
        self, profile: Profile, plugins: dict[tuple[str, str, str], Histogram], clock: Callable[[], float]
    ) -> None:
        self._profile = profile
        self._plugins = plugins
        self._clock = clock
        # By point and status; by plugin and point.
        self.points: dict[tuple[str, str], Histogram] = {}
        self.evaluations: dict[tuple[str, str], int] = {}
        self._methods = list(self._timed_methods())
        # The plugin object's own attribute, which is None for most, because the method is in the class.
        self._own = [vars(plugin).get(name) for plugin, name, _ in self._methods]
        self._inside = False
        self._stands_for = 1
        self._took: dict[str, float] = {}
        self._statuses: dict[str, str] = {}

    def begin(self, stands_for: int) -> Callable[[], None]:
        """Measure until the returned function is called. The attempt represents `stands_for` attempts."""
        self._stands_for = stands_for
        self._took, self._statuses = {}, {}
        for plugin, name, timed in self._methods:
            setattr(plugin, name, timed)
        return self._end

    def _end(self) -> None:
        for (plugin, name, _), own in zip(self._methods, self._own, strict=True):
            if own is None:
                delattr(plugin, name)
            else:
                setattr(plugin, name, own)
        for point, seconds in self._took.items():
            self.observe(point, self._statuses.get(point, SUCCESS), seconds)

    def decided(self, decision: Placement | Unplaced | Status) -> None:
        """Count the points that ran. One whose answers were all cached has a duration of almost zero."""
        if isinstance(decision, Status):
            return
        state = decision.attempt.state
        profile = self._profile
        self._evaluated("PreFilter", (p.name for p in profile.pre_filters if p.name not in state.skip_filter))
        if isinstance(decision, Unplaced) and decision.diagnosis.pre_filter is not None:
            return
        self._evaluated("Filter", (s.name for s in profile.filters if s.name not in state.skip_filter))
        if isinstance(decision, Placement) and decision.feasible > 1:
            self._evaluated(
                "PreScore", (p.name for p in profile.pre_scores if p.name not in state.skip_score)
            )
            self._evaluated("Score", (s.name for s in profile.scores if s.name not in state.skip_score))

    def observe(self, point: str, status: str, seconds: float) -> None:
        _find(self.points, (point, status), _POINT_BOUNDS).observe(seconds)

    def _evaluated(self, point: str, plugins: Iterator[str]) -> None:
        self._took.setdefault(point, 0.0)
        for plugin in plugins:
            self.evaluations[plugin, point] = self.evaluations.get((plugin, point), 0) + self._stands_for

    def _timed_methods(self) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
        for plugin in _plugins(self._profile):
            # The methods of an object without a __dict__ cannot be replaced.
            if hasattr(plugin, "__dict__"):
                for name, point in _POINTS.items():
                    if hasattr(plugin, name):
                        yield plugin, name, self._timed(plugin.name, point, getattr(plugin, name))

    def _timed(self, plugin: str, point: str, method: Callable[..., Any]) -> Callable[..., Any]:
        clock = self._clock

        def call(*args: Any, **kwargs: Any) -> Any:
            outermost, self._inside = not self._inside, True
            status = ERROR
            began = clock()
            try:
                answer = method(*args, **kwargs)
                status = _status(answer)
                return answer
            finally:
                took = clock() - began
                self._inside = not outermost
                _find(self._plugins, (plugin, point, status), _PLUGIN_BOUNDS).observe(took)
                # What preemption asks of the filters is PostFilter's time.
                if outermost and point not in _PARTS:
                    self._took[point] = self._took.get(point, 0.0) + took
                    if status not in _FINE:
                        self._statuses[point] = status

        return call


def _plugins(profile: Profile) -> list[Any]:
    """Return each plugin once, even if it has several points."""
    slots = [slot.plugin for slot in (*profile.filters, *profile.scores)]
    others = (
        profile.pre_filters,
        profile.post_filters,
        profile.pre_scores,
        profile.reserves,
        profile.permits,
    )
    everything = [*slots, *(plugin for point in others for plugin in point)]
    return list({id(plugin): plugin for plugin in everything}.values())


def _status(answer: object) -> str:
    """Return the status of an answer. An answer that is not a status means success."""
    if isinstance(answer, Wait):
        return Code.WAIT.value
    answer = getattr(answer, "status", answer)
    return answer.code.value if isinstance(answer, Status) else SUCCESS


def _find(found: dict[Any, Histogram], key: Any, bounds: tuple[float, ...]) -> Histogram:
    histogram = found.get(key)
    if histogram is None:
        histogram = found[key] = Histogram(bounds)
    return histogram
