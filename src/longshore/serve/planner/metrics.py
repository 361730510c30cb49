"""Prometheus metrics of a planner: its requests and plans."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from longshore.planning import Plan
from longshore.serve.metrics.engine_observer import PLAN_SECONDS, outcome_of
from longshore.serve.metrics.families import counter, histogram, one_label, registry
from longshore.serve.metrics.histogram import Histogram
from longshore.serve.metrics.scheduler_metrics import Mirror, mirrored


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

    def collect() -> Iterator[Metric]:
        yield counter(
            "longshore_planner_requests", "Requests by gRPC status.", ["code"], one_label(requests.answers)
        )
        yield counter(
            "longshore_planner_plans",
            "Plans by outcome: complete, partial if some pods have no node, none if no pod has one.",
            ["outcome"],
            one_label(requests.plans),
        )
        yield histogram(
            "longshore_planner_planning_duration_seconds",
            "Time to make a plan.",
            [],
            {(): requests.seconds},
        )
        yield from mirrored(mirrors())

    return registry(collect)
