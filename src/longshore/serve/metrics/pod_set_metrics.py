"""Metrics of pod sets. Each is present only if a controller that counts for it is running."""

from collections import Counter
from collections.abc import Iterator, Sequence

from prometheus_client.core import Metric

from longshore.podset.controller import PodSetController
from longshore.podset.trigger_controller import TriggerController
from longshore.serve.metrics.engine_observer import Metrics
from longshore.serve.metrics.families import Labels, counter, gauge, histogram, one_label


def podsets(metrics: Metrics) -> Iterator[Metric]:
    controllers = metrics.engine.controllers
    if planning := [each for each in controllers if isinstance(each, PodSetController)]:
        yield from _sets(planning)
        yield from _plans(metrics, planning)
    if firing := [each for each in controllers if isinstance(each, TriggerController)]:
        yield from _triggers(firing)


def _sets(planning: Sequence[PodSetController]) -> Iterator[Metric]:
    counts = [each.counts() for each in planning]
    yield gauge(
        "longshore_podset_held_pods",
        "Pods of sets that wait for their trigger.",
        [],
        {(): sum(each.held_pods for each in counts)},
    )
    yield gauge(
        "longshore_podset_sets",
        "Pod sets with pods or a trigger, by state.",
        ["state"],
        {
            ("held",): sum(each.held_sets for each in counts),
            ("released",): sum(each.released_sets for each in counts),
        },
    )


def _plans(metrics: Metrics, planning: Sequence[PodSetController]) -> Iterator[Metric]:
    yield counter(
        "longshore_podset_plans",
        "Plans by outcome: complete, partial if some pods have no node, none if no pod has one.",
        ["planner", "outcome"],
        metrics.plans,
    )
    yield histogram(
        "longshore_podset_planning_duration_seconds",
        "Time to make a plan, including calls of planner services.",
        ["planner"],
        one_label(metrics.planning),
    )
    yield counter(
        "longshore_podset_plans_again",
        "Plans made because a pod no longer fit its planned node.",
        [],
        {(): sum(each.planned_again for each in planning)},
    )
    failures: Counter[Labels] = Counter()
    for each in planning:
        failures.update(each.planner_failures)
    yield counter(
        "longshore_podset_planner_failures",
        "Planner services that did not answer, or answered without a valid node for some pods.",
        ["planner", "failure"],
        failures,
    )


def _triggers(firing: Sequence[TriggerController]) -> Iterator[Metric]:
    yield counter(
        "longshore_podset_triggers_fired",
        "Triggers that changed to Schedule, by cause.",
        ["by"],
        {(by,): sum(each.fired[by] for each in firing) for by in firing[0].fired},
    )
