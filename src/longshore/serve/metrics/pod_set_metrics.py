"""Metrics of pod sets. Each is present only if a controller that counts for it is running."""

from collections import Counter
from collections.abc import Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from longshore.podset.plans import PlanController
from longshore.podset.triggers import TriggerController
from longshore.serve.metrics.engine_observer import Metrics


def podsets(metrics: Metrics) -> Iterator[Metric]:
    controllers = metrics.engine.controllers
    if planning := [each for each in controllers if isinstance(each, PlanController)]:
        yield from _sets(planning)
        yield from _plans(metrics, planning)
    if firing := [each for each in controllers if isinstance(each, TriggerController)]:
        yield from _triggers(firing)


def _sets(planning: Sequence[PlanController]) -> Iterator[Metric]:
    counts = [each.counts() for each in planning]
    yield GaugeMetricFamily(
        "longshore_podset_held_pods",
        "Pods of sets that wait for their trigger.",
        sum(each.held_pods for each in counts),
    )
    sets = GaugeMetricFamily(
        "longshore_podset_sets", "Pod sets with pods or a trigger, by state.", labels=["state"]
    )
    sets.add_metric(["held"], sum(each.held_sets for each in counts))
    sets.add_metric(["released"], sum(each.released_sets for each in counts))
    yield sets


def _plans(metrics: Metrics, planning: Sequence[PlanController]) -> Iterator[Metric]:
    plans = CounterMetricFamily(
        "longshore_podset_plans",
        "Plans by outcome: complete, partial if some pods have no node, none if no pod has one.",
        labels=["planner", "outcome"],
    )
    for labels, number in metrics.plans.copy().items():
        plans.add_metric(list(labels), number)
    yield plans
    durations = HistogramMetricFamily(
        "longshore_podset_planning_duration_seconds",
        "Time to make a plan, including calls of planner services.",
        labels=["planner"],
    )
    for planner, histogram in metrics.planning.copy().items():
        buckets, total = histogram.cumulative()
        durations.add_metric([planner], buckets, total)
    yield durations
    yield CounterMetricFamily(
        "longshore_podset_plans_again",
        "Plans made because a pod no longer fit its planned node.",
        sum(each.planned_again for each in planning),
    )
    failures = CounterMetricFamily(
        "longshore_podset_planner_failures",
        "Planner services that did not answer, or answered without a valid node for some pods.",
        labels=["planner", "failure"],
    )
    by_planner: Counter[tuple[str, str]] = Counter()
    for each in planning:
        by_planner.update(each.planner_failures)
    for labels, number in by_planner.items():
        failures.add_metric(list(labels), number)
    yield failures


def _triggers(firing: Sequence[TriggerController]) -> Iterator[Metric]:
    fired = CounterMetricFamily(
        "longshore_podset_triggers_fired",
        "Triggers that changed to Schedule, by cause.",
        labels=["by"],
    )
    for by in firing[0].fired:
        fired.add_metric([by], sum(each.fired[by] for each in firing))
    yield fired
