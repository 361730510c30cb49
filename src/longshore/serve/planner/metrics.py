"""Prometheus metrics of a planner: its requests and plans."""

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
    """Counts of requests and plans. The planner's own thread updates them."""

    def __init__(self) -> None:
        # Requests by gRPC status, and plans by outcome.
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
    """Return the registry with all metrics of a planner, including those of its `mirrors`."""
    registry = CollectorRegistry()
    registry.register(_Collected(requests, mirrors))
    ProcessCollector(registry=registry)
    return registry


class _Collected(Collector):
    def __init__(self, requests: Requests, mirrors: Callable[[], Iterable[Mirror]]) -> None:
        self._requests = requests
        self._mirrors = mirrors

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registering collects nothing."""
        return ()

    def collect(self) -> Iterator[Metric]:
        answers = CounterMetricFamily(
            "longshore_planner_requests", "Requests by gRPC status.", labels=["code"]
        )
        for code, number in dict(self._requests.answers).items():
            answers.add_metric([code], number)
        yield answers
        plans = CounterMetricFamily(
            "longshore_planner_plans",
            "Plans by outcome: complete, partial if some pods have no node, none if no pod has one.",
            labels=["outcome"],
        )
        for outcome, number in dict(self._requests.plans).items():
            plans.add_metric([outcome], number)
        yield plans
        seconds = HistogramMetricFamily(
            "longshore_planner_planning_duration_seconds", "Time to make a plan.", labels=[]
        )
        buckets, total = self._requests.seconds.cumulative()
        seconds.add_metric([], buckets, total)
        yield seconds
        yield from mirrored(self._mirrors())
        yield build_info()
