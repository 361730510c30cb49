"""What a planner was asked and what plans came of it, as Prometheus reads it."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from longshore.planning import Plan
from longshore.serve.metrics.engine_observer import PLAN_SECONDS, outcome_of
from longshore.serve.metrics.histogram import Histogram
from longshore.serve.metrics.scheduler_metrics import Mirror, build_info, mirrored


class Requests:
    """Filled by the planner's own thread."""

    def __init__(self) -> None:
        # By gRPC status, and by outcome.
        self.answers: Counter[str] = Counter()
        self.plans: Counter[str] = Counter()
        self.seconds = Histogram(PLAN_SECONDS)

    def answered(self, code: str) -> None:
        self.answers[code] += 1

    def planned(self, plan: Plan) -> None:
        self.plans[outcome_of(placed=len(plan.assignments), left_out=len(plan.left_out))] += 1
        self.seconds.observe(plan.seconds)
        self.seconds.tidy()


def registry_of(requests: Requests, mirrors: Callable[[], Iterable[Mirror]]) -> CollectorRegistry:
    """All metrics of a planner; `mirrors` is how it knows the cluster."""
    registry = CollectorRegistry()
    registry.register(_Collected(requests, mirrors))
    ProcessCollector(registry=registry)
    return registry


class _Collected(Collector):
    def __init__(self, requests: Requests, mirrors: Callable[[], Iterable[Mirror]]) -> None:
        self._requests = requests
        self._mirrors = mirrors

    def describe(self) -> Iterable[Metric]:
        """Nothing is collected just to be registered."""
        return ()

    def collect(self) -> Iterator[Metric]:
        answers = CounterMetricFamily(
            "longshore_planner_requests", "Requests, and the gRPC status that they got.", labels=["code"]
        )
        for code, number in dict(self._requests.answers).items():
            answers.add_metric([code], number)
        yield answers
        plans = CounterMetricFamily(
            "longshore_planner_plans",
            "Plans made: complete, partial if pods were left out, none if all of them were.",
            labels=["outcome"],
        )
        for outcome, number in dict(self._requests.plans).items():
            plans.add_metric([outcome], number)
        yield plans
        seconds = HistogramMetricFamily(
            "longshore_planner_planning_duration_seconds", "Time that a plan took.", labels=[]
        )
        buckets, total = self._requests.seconds.cumulative()
        seconds.add_metric([], buckets, total)
        yield seconds
        yield from mirrored(self._mirrors())
        yield build_info()
