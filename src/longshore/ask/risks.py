"""The risk that nodes are overloaded, as the agents SafeOverload and SafeBalance compute it.

The agents themselves evaluate the nodes as they are now, for a pod with the given requests or with none. The
other figures come from the functions that the agents use.
"""

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from longshore.agents import annotations, beta
from longshore.agents.load import COLUMNS, REASON_NO_MEASUREMENTS, load_of
from longshore.agents.safe import REASON_RISK, SafeBalance, SafeBalanceArgs, SafeOverload, SafeOverloadArgs
from longshore.api import Change, Container, Node, ObjectMeta, Pod, PodSpec, ResourceRequirements
from longshore.ask.pin_plan import no_such_node
from longshore.cluster import ClusterState, PodInfo
from longshore.cluster.measures import PERCENTILES
from longshore.engine import Engine
from longshore.errors import UserError
from longshore.framework import CycleState
from longshore.measure.providers import Values


class ResourceRisk(msgspec.Struct, frozen=True, rename="camel"):
    """The risk for one resource of a node. An unknown value is None, as is the fit of a missing distribution.

    Measured amounts are in millicores or bytes. `mu` and `sigma` are what the agents compute from them:
    shares of the capacity, with the pod on the node. An unknown deviation counts as 0.
    """

    capacity: int
    mean: float | None
    deviation: float | None
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    # Seconds since it was measured.
    age: float | None
    mu: float | None
    sigma: float | None
    alpha: float | None
    beta: float | None
    risk: float | None
    accepted: bool
    reason: str


class NodeRisk(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    # The highest risk of its resources; None if all are unknown.
    risk: float | None
    accepted: bool
    reasons: tuple[str, ...]
    # Scores from 0 to 100, by the verb of the agent.
    scores: Mapping[str, int]
    resources: Mapping[str, ResourceRisk]


class Risks(msgspec.Struct, frozen=True, rename="camel"):
    """The risks of nodes, the worst first. Settings are in percent, the demand in millicores and bytes."""

    nodes: tuple[NodeRisk, ...]
    utilization: int
    percentile: int
    demand: Mapping[str, int]


def demand(requests: Mapping[str, str]) -> PodInfo:
    """Return a pod with these requests. Raises UserError if one is not a quantity."""
    container = Container(name="demand", resources=ResourceRequirements(requests=dict(requests)))
    pod = Pod(metadata=ObjectMeta(name="demand", uid="demand"), spec=PodSpec(containers=(container,)))
    info = PodInfo.of(pod)
    if info.problem:
        raise UserError(info.problem.rpartition("requests.")[2])
    return info


def risks(
    nodes: Mapping[str, Node],
    pods: Sequence[Pod],
    values: Values | None,
    *,
    pod: PodInfo,
    args: SafeOverloadArgs,
    max_age: float,
    now: float,
    only: Sequence[str] = (),
) -> Risks:
    """Return the risks of all nodes, or `only` of the named ones. Raises UserError.

    If `values` is None, the nodes' annotations are read.
    """
    for name in only:
        if name not in nodes:
            raise UserError(no_such_node(name, nodes))
    engine = Engine()
    for found in (*nodes.values(), *pods):
        engine.receive(Change(None, found), now=0.0)
    cluster = engine.cluster
    cluster.measures.max_age = max_age
    if values is None:
        annotations.read_load(cluster)
    cluster.measures.put(values or {}, now=now)
    by_name = _evaluate(engine, pod, args, now)
    chosen = [by_name[name] for name in (dict.fromkeys(only) or nodes)]
    return Risks(
        tuple(sorted(chosen, key=_worst_first)),
        args.utilization,
        args.percentile,
        {resource: pod.requests.get(resource, 0) for resource in COLUMNS},
    )


def _evaluate(engine: Engine, pod: PodInfo, args: SafeOverloadArgs, now: float) -> dict[str, NodeRisk]:
    handle, state, nodes = engine.handle(engine.scheduler_name), CycleState(), engine.cluster.all_nodes()
    overload = SafeOverload(args, handle=handle)
    balance_args = SafeBalanceArgs(args.forecast_weight, args.fine_scores, args.missing)
    balance = SafeBalance(balance_args, handle=handle)
    refused = {r.reason: _column(r.where, len(nodes)) for r in overload.filter(state, pod, nodes)}
    scores = {
        agent.verb: _column(agent.score(state, pod, nodes), len(nodes)) for agent in (overload, balance)
    }
    resources = {
        resource: _resource(engine.cluster, resource, pod, args, now, refused) for resource in COLUMNS
    }
    found = {}
    for place, name in enumerate(nodes.names):
        if not name:
            continue
        of_node = {resource: each[place] for resource, each in resources.items()}
        known = [each.risk for each in of_node.values() if each.risk is not None]
        reasons = tuple(reason for reason, where in refused.items() if where[place])
        found[name] = NodeRisk(
            name,
            risk=max(known, default=None),
            accepted=not reasons,
            reasons=reasons,
            scores={verb: int(score[place]) for verb, score in scores.items()},
            resources=of_node,
        )
    return found


def _resource(
    cluster: ClusterState,
    resource: str,
    pod: PodInfo,
    args: SafeOverloadArgs,
    now: float,
    refused: Mapping[str, Sequence[int]],
) -> list[ResourceRisk]:
    """Return the risk of a resource for each row of the cluster."""
    nodes, measures = cluster.all_nodes(), cluster.measures
    load = load_of(nodes, resource, forecast_weight=args.forecast_weight / 100, missing=args.missing)
    mu, sigma = load.shares(pod.requests.get(resource, 0))
    risk = beta.risk(mu, sigma, args.utilization / 100)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        alpha, other = beta.fit(mu, sigma)
    # A distribution exists only if the deviation is above 0 and not too large.
    fitted = load.known & (sigma >= beta.NEGLIGIBLE) & (alpha > 0) & (other > 0)
    columns = {
        "mean": measures.value(f"{resource}/mean", nodes),
        "deviation": measures.value(f"{resource}/std", nodes),
        **{name: measures.value(f"{resource}/{name}", nodes) for name in PERCENTILES},
        "age": now - measures.time(f"{resource}/mean", nodes),
        "mu": np.where(load.known, mu, math.nan),
        "sigma": np.where(load.known, sigma, math.nan),
        "alpha": np.where(fitted, alpha, math.nan),
        "beta": np.where(fitted, other, math.nan),
        "risk": np.where(load.known, risk, math.nan),
    }
    too_risky = REASON_RISK.format(
        utilization=args.utilization, resource=resource, percentile=args.percentile
    )
    found = []
    for place, (known, capacity) in enumerate(zip(load.known.tolist(), load.capacity.tolist(), strict=True)):
        reason = too_risky if known else REASON_NO_MEASUREMENTS
        reason = reason if reason in refused and refused[reason][place] else ""
        amounts = {name: _known(column[place]) for name, column in columns.items()}
        found.append(ResourceRisk(capacity=capacity, **amounts, accepted=not reason, reason=reason))
    return found


def _column(answer: object, size: int) -> list[int]:
    """Return one number for each node, even if the answer is a single value or a boolean."""
    column: list[int] = np.broadcast_to(np.asarray(answer), (size,)).tolist()
    return column


def _known(amount: float) -> float | None:
    return None if math.isnan(amount) else float(amount)


def _worst_first(node: NodeRisk) -> tuple[bool, float, float, str]:
    """Return a sort key by risk, then by usage. Nodes with unknown risk come last."""
    most = max((each.mu for each in node.resources.values() if each.mu is not None), default=0.0)
    return node.risk is None, -(node.risk or 0.0), -most, node.name
