"""The time that plugins take, measured in some of the attempts.

While an attempt is measured, the methods of the plugins are replaced by methods that read the clock, so that
the other attempts cost nothing. The time of a point is the sum over its plugins.
"""

from collections.abc import Callable, Iterator
from typing import Any

from longshore.engine.decision.chooser import Placement, Unplaced
from longshore.framework import Code, Status, Wait
from longshore.framework.extension_points import PRE_FILTER, PRE_SCORE, Method, methods
from longshore.framework.points import Plugin
from longshore.framework.profile import Profile
from longshore.serve.metrics.histogram import Histogram, exponential

_PLUGIN_BOUNDS = exponential(0.00001, 1.5, 20)
_POINT_BOUNDS = exponential(0.0001, 2, 12)

SUCCESS = Code.SUCCESS.value
ERROR = Code.ERROR.value
_FINE = (SUCCESS, Code.SKIP.value)


class Sampler:
    """Measures the plugins of one profile, and counts which of them were evaluated."""

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
        # The attribute of the plugin object itself, if it does not have the method from its class.
        self._own = [vars(plugin).get(name) for plugin, name, _ in self._methods]
        self._inside = False
        self._stands_for = 1
        self._took: dict[str, float] = {}
        self._statuses: dict[str, str] = {}

    def begin(self, stands_for: int) -> Callable[[], None]:
        """Measure until the returned function is called. The attempt stands for this many attempts."""
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
        """Count the points that were run, even if all of their answers were known already."""
        if isinstance(decision, Status):
            return
        state = decision.attempt.state
        profile = self._profile
        pre_filters, pre_scores = profile.at(PRE_FILTER), profile.at(PRE_SCORE)
        self._evaluated("PreFilter", (p.name for p in pre_filters if p.name not in state.skip_filter))
        if isinstance(decision, Unplaced) and decision.diagnosis.pre_filter is not None:
            return
        self._evaluated("Filter", (s.name for s in profile.filters if s.name not in state.skip_filter))
        if isinstance(decision, Placement) and decision.feasible > 1:
            self._evaluated("PreScore", (p.name for p in pre_scores if p.name not in state.skip_score))
            self._evaluated("Score", (s.name for s in profile.scores if s.name not in state.skip_score))

    def observe(self, point: str, status: str, seconds: float) -> None:
        _find(self.points, (point, status), _POINT_BOUNDS).observe(seconds)

    def _evaluated(self, point: str, plugins: Iterator[str]) -> None:
        self._took.setdefault(point, 0.0)
        for plugin in plugins:
            self.evaluations[plugin, point] = self.evaluations.get((plugin, point), 0) + self._stands_for

    def _timed_methods(self) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
        measured = [method for method in methods() if method.metric]
        for plugin in self._profile.plugins:
            # A plugin without a dictionary cannot have its methods replaced.
            if hasattr(plugin, "__dict__"):
                for method in measured:
                    if hasattr(plugin, method.name):
                        yield plugin, method.name, self._timed(plugin, method)

    def _timed(self, timed: Plugin, measured: Method) -> Callable[..., Any]:
        plugin, point, clock = timed.name, measured.metric, self._clock
        method = getattr(timed, measured.name)

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
                # The time of filters that preemption calls is PostFilter's.
                if outermost and not measured.part:
                    self._took[point] = self._took.get(point, 0.0) + took
                    if status not in _FINE:
                        self._statuses[point] = status

        return call


def _status(answer: object) -> str:
    """Return the code that metrics show: success if the answer is not a status."""
    if isinstance(answer, Wait):
        return Code.WAIT.value
    answer = getattr(answer, "status", answer)
    return answer.code.value if isinstance(answer, Status) else SUCCESS


def _find(found: dict[Any, Histogram], key: Any, bounds: tuple[float, ...]) -> Histogram:
    histogram = found.get(key)
    if histogram is None:
        histogram = found[key] = Histogram(bounds)
    return histogram
