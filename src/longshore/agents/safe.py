"""Safe: prefers nodes whose measured load, including its variation, leaves room.

SafeOverload computes the probability that a node with the pod on it uses more than a threshold of its cpu or
memory. It rejects nodes on which this is too likely, and prefers those on which it is least likely.
SafeBalance prefers nodes with low usage and little variation. The pod counts with its request, and adds no
variation.
"""

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import and_
from typing import Annotated, Any

import msgspec
import numpy as np
import structlog

from longshore.agents import beta
from longshore.agents.amounts import Amount, at_most, floor, root
from longshore.agents.environment import whole_numbers
from longshore.agents.load import (
    COLUMNS,
    REASON_NO_MEASUREMENTS,
    Missing,
    load_of,
    worst,
)
from longshore.cluster import CPU, MEMORY, Nodes, OneNode, PodInfo
from longshore.config.plugin_arguments import read_plugin_arguments
from longshore.framework import (
    MAX_SCORE,
    Action,
    CycleState,
    Handle,
    Rejection,
    Resource,
    Scope,
    WakeOn,
)

# "percent" in words: kube-scheduler uses event notes as format strings, in which % is special.
REASON_RISK = (
    "node(s) would use over {utilization} percent of their {resource} with a risk above {percentile} percent"
)

_Percentage = Annotated[int, msgspec.Meta(ge=0, le=100)]

_PERCENTAGES = {
    "SAFEUTILIZATION": "utilization",
    "SAFEPERCENTILE": "percentile",
    "SAFEFORECASTWEIGHT": "forecastWeight",
}
_TENS = 10

log = structlog.get_logger()


class SafeOverloadArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The arguments of SafeOverload in a configuration."""

    # The share of a node that may be used, and the acceptable probability of exceeding it; in percent.
    utilization: _Percentage = 90
    percentile: _Percentage = 30
    # The weight of forecasts, in percent, where they exist.
    forecast_weight: _Percentage = 20
    # Whether each distribution is logged in full.
    print_table: bool = False
    # Use score steps of 1 instead of 10.
    fine_scores: bool = False
    # Round to the nearest step. Otherwise steps of 10 are rounded down: only a node without risk scores 100.
    round_scores: bool = False
    missing: Missing = "Neutral"


class SafeBalanceArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The arguments of SafeBalance in a configuration."""

    forecast_weight: _Percentage = 20
    fine_scores: bool = False
    missing: Missing = "Neutral"


class _Risk(msgspec.Struct, frozen=True):
    """The risk that a node with the pod on it uses too much of one resource."""

    resource: str
    known: Amount
    amount: Amount


class SafeOverload:
    """Filter: the risk is acceptable. Score: the lower the risk, the better."""

    name = "SafeOverload"
    verb = "safe-overload"
    fine_scores_argument = "fineScores"
    scope = Scope.PODS

    def __init__(self, args: object = None, *, handle: Handle) -> None:
        self._args = read_plugin_arguments(SafeOverloadArgs, args, plugin=self.name)
        beta.require_scipy(self.name)
        self._acceptable = self._args.percentile / 100
        said = {"utilization": self._args.utilization, "percentile": self._args.percentile}
        self._reasons = {resource: REASON_RISK.format(resource=resource, **said) for resource in COLUMNS}
        # The last arguments and the result for them: the score is called for the same nodes as the filter.
        self._last: tuple[Nodes, tuple[int, ...]] | None = None
        self._risks: list[_Risk] = []
        self.wakes_on = (
            WakeOn(
                Resource.NODE, Action.ADD | Action.UPDATE_NODE_ANNOTATION | Action.UPDATE_NODE_ALLOCATABLE
            ),
            WakeOn(Resource.ASSIGNED_POD, Action.DELETE),
        )

    @classmethod
    def environment(cls, environ: Mapping[str, str]) -> dict[str, object]:
        found = whole_numbers(environ, _PERCENTAGES, least=0, most=100)
        if environ.get("SAFEPRINTTABLE") == "true":
            found["printTable"] = True
        return found

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Iterable[Rejection]:
        risks = self._of(pod, nodes)
        if self._args.missing == "FailClosed":
            known = reduce(and_, (risk.known for risk in risks))
            yield Rejection(REASON_NO_MEASUREMENTS, np.logical_not(known), unresolvable=True)
        for risk in risks:
            too_likely = risk.known & (risk.amount > self._acceptable)
            yield Rejection(self._reasons[risk.resource], too_likely, unresolvable=True)

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Any:
        scores = [(risk.known, self._score(risk.amount)) for risk in self._of(pod, nodes)]
        return worst(scores, missing=self._args.missing)

    def _score(self, risk: Amount) -> Amount:
        portion = at_most(risk / self._acceptable, 1.0) if self._acceptable else (risk > 0) * 1.0
        score, args = 1 - root(portion), self._args
        if args.fine_scores or args.round_scores:
            return _scaled(score, fine=args.fine_scores)
        return floor(score * _TENS) * _TENS

    def _of(self, pod: PodInfo, nodes: Nodes) -> list[_Risk]:
        """Compute the risks once for both filter and score."""
        requests = [pod.requests.get(resource, 0) for resource in COLUMNS]
        situation = (nodes.cluster.journal.position, *requests)
        if isinstance(nodes, OneNode):
            # The engine may add or remove hypothetical pods between calls.
            situation += (nodes.requested[CPU], nodes.requested[MEMORY])
        if self._last is None or self._last[0] is not nodes or self._last[1] != situation:
            pairs = zip(COLUMNS, requests, strict=True)
            self._risks = [self._risk(nodes, resource, request) for resource, request in pairs]
            self._last = (nodes, situation)
        return self._risks

    def _risk(self, nodes: Nodes, resource: str, request: int) -> _Risk:
        args = self._args
        load = load_of(nodes, resource, forecast_weight=args.forecast_weight / 100, missing=args.missing)
        mean, deviation = load.shares(request)
        if args.print_table:
            _print_tables(nodes, resource, load.known, mean, deviation)
        risk = beta.noticeable_risk(mean, deviation, args.utilization / 100)
        return _Risk(resource, load.known, risk)


class SafeBalance:
    """Score: the lower usage and variation, the higher."""

    name = "SafeBalance"
    verb = "safe-balance"
    fine_scores_argument = "fineScores"
    scope = Scope.PODS

    def __init__(self, args: object = None, *, handle: Handle) -> None:
        self._args = read_plugin_arguments(SafeBalanceArgs, args, plugin=self.name)

    @classmethod
    def environment(cls, environ: Mapping[str, str]) -> dict[str, object]:
        variable = "SAFEFORECASTWEIGHT"
        return whole_numbers(environ, {variable: _PERCENTAGES[variable]}, least=0, most=100)

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Any:
        args = self._args
        scores = []
        for resource in COLUMNS:
            load = load_of(nodes, resource, forecast_weight=args.forecast_weight / 100, missing=args.missing)
            mean, deviation = load.shares(pod.requests.get(resource, 0))
            # The root of the deviation, not of the variance: variation weighs heavily.
            score = 1 - (mean + root(deviation)) / 2
            scores.append((load.known, _scaled(score, fine=args.fine_scores)))
        return worst(scores, missing=args.missing)


def _scaled(score: Amount, *, fine: bool) -> Amount:
    """Convert a value from 0 to 1 into a score, rounded to the nearest step."""
    return _rounded(score * MAX_SCORE) if fine else _rounded(score * _TENS) * _TENS


def _rounded(score: Amount) -> Amount:
    """Round to the nearest integer, halves up."""
    return floor(score + 0.5)


def _print_tables(nodes: Nodes, resource: str, known: Amount, mean: Amount, deviation: Amount) -> None:
    columns = [np.atleast_1d(column).tolist() for column in (known, mean, deviation)]
    for name, is_known, mu, sigma in zip(nodes.names, *columns, strict=True):
        if not name or not is_known:
            continue
        fitted = beta.summary(mu, sigma)
        if fitted is None:
            log.info("no distribution", node=name, resource=resource, mean=mu, deviation=sigma)
            continue
        numbers = fitted._asdict()
        table = [tuple(round(number, 6) for number in row) for row in numbers.pop("rows")]
        log.info("distribution", node=name, resource=resource, **numbers, table=table)
