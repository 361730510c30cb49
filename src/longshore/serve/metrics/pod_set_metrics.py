"""What metrics say about pod sets: each family only where a controller is at work that counts for it."""

from collections import Counter
from collections.abc import Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from longshore.podset.controller import PodSetController
from longshore.podset.trigger_controller import TriggerController
from longshore.serve.metrics.engine_observer import Metrics


def podsets(metrics: Metrics) -> Iterator[Metric]:
    controllers = metrics.engine.controllers
    if planning := [each for each in controllers if isinstance(each, PodSetController)]:
        yield from _sets(planning)
        yield from _plans(metrics, planning)
    if firing := [each for each in controllers if isinstance(each, TriggerController)]:
        yield from _triggers(firing)


def _sets(planning: Sequence[PodSetController]) -> Iterator[Metric]:
    counts = [each.counts() for each in planning]
    yield GaugeMetricFamily(
        "longshore_podset_held_pods",
        "Pods of sets that wait for their trigger.",
        sum(each.held_pods for each in counts),
    )
    sets = GaugeMetricFamily(
        "longshore_podset_sets", "Pod sets with pods or a trigger, by its state.", labels=["state"]
    )
    sets.add_metric(["held"], sum(each.held_sets for each in counts))
    sets.add_metric(["released"], sum(each.released_sets for each in counts))
    yield sets


def _plans(metrics: Metrics, planning: Sequence[PodSetController]) -> Iterator[Metric]:
    plans = CounterMetricFamily(
        "longshore_podset_plans",
        "Plans made: complete, partial if pods were left out, none if all of them were.",
        labels=["planner", "outcome"],
    )
    for labels, number in metrics.plans.copy().items():
        plans.add_metric(list(labels), number)
    yield plans
    durations = HistogramMetricFamily(
        "longshore_podset_planning_duration_seconds",
        "Time that a plan took, calls of planner services included.",
        labels=["planner"],
    )
    for planner, histogram in metrics.planning.copy().items():
        buckets, total = histogram.cumulative()
        durations.add_metric([planner], buckets, total)
    yield durations
    yield CounterMetricFamily(
        "longshore_podset_plans_again",
        "Plans made because a planned node no longer fit.",
        sum(each.planned_again for each in planning),
    )
    failures = CounterMetricFamily(
        "longshore_podset_planner_failures",
        "Planner services that did not answer, or with no valid node for some of the pods.",
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
        "Triggers that have become Schedule, by what made them.",
        labels=["by"],
    )
    for by in firing[0].fired:
        fired.add_metric([by], sum(each.fired[by] for each in firing))
    yield fired
