"""The numbers of `longshore risk`, compared with numbers that were computed independently."""

import pytest

from longshore.agents.load import REASON_NO_MEASUREMENTS
from longshore.agents.safe import REASON_RISK, SafeOverloadArgs
from longshore.api import Node, Pod
from longshore.ask.risks import NodeRisk, Risks, demand, risks
from longshore.errors import UserError
from longshore.measure.providers import Values
from longshore.testing import node, pod
from longshore.testing.nodes import NodeBuilder

# 2027-01-15T08:00:00Z
NOW = 1_800_000_000.0
GI = 2**30
POD = demand({"cpu": "500m", "memory": "1Gi"})


def loaded(name: str, cpu: tuple[int, int], memory: tuple[int, int], **more: str) -> Node:
    """Return a node of 8 cores and 16 GiB, given mean and deviation of its free resources."""
    told = {
        "mean-free-cpu": str(cpu[0]),
        "std-free-cpu": str(cpu[1]),
        "mean-free-memory": str(memory[0]),
        "std-free-memory": str(memory[1]),
    }
    return empty(name).annotations(**told, **more)


def empty(name: str) -> NodeBuilder:
    return node(name).allocatable(cpu="8", memory="16Gi")


IDLE = loaded("idle", (6000, 400), (12 * GI, GI))
WARM = loaded("warm", (2400, 500), (5 * GI, GI))
SPIKY = loaded("spiky", (3200, 2000), (10 * GI, 3 * GI))
FULL = loaded("full", (900, 300), (2 * GI, GI // 2))
BARE = empty("bare")


def look(
    *nodes: Node,
    args: SafeOverloadArgs | None = None,
    values: Values | None = None,
    pods: tuple[Pod, ...] = (),
    only: tuple[str, ...] = (),
) -> Risks:
    return risks(
        {each.metadata.name: each for each in nodes},
        pods,
        values,
        pod=POD,
        args=args or SafeOverloadArgs(),
        max_age=300.0,
        now=NOW,
        only=only,
    )


def the_only(found: Risks) -> NodeRisk:
    (one,) = found.nodes
    return one


@pytest.mark.parametrize(
    ("of", "cpu", "memory", "overload", "balance"),
    [
        (IDLE, 0.0, 0.0, 100, 70),
        (WARM, 0.00466237, 0.00203423, 80, 50),
        (SPIKY, 0.211693, 0.00311222, 10, 40),
        (FULL, 0.897544, 0.879389, 0, 40),
    ],
    ids=lambda value: value.metadata.name if isinstance(value, Node) else "",
)
def test_risks_and_scores_are_those_of_the_agents(
    of: Node, cpu: float, memory: float, overload: int, balance: int
) -> None:
    found = the_only(look(of))
    assert found.resources["cpu"].risk == pytest.approx(cpu, abs=1e-6)
    assert found.resources["memory"].risk == pytest.approx(memory, abs=1e-6)
    assert found.risk == pytest.approx(max(cpu, memory), abs=1e-6)
    assert found.scores == {"safe-overload": overload, "safe-balance": balance}


def test_the_distribution_includes_the_pod() -> None:
    cpu = the_only(look(WARM)).resources["cpu"]
    assert (cpu.capacity, cpu.mean, cpu.deviation) == (8000, 5600.0, 500.0)
    assert (cpu.mu, cpu.sigma) == pytest.approx((0.7625, 0.0625))
    assert (cpu.alpha, cpu.beta) == pytest.approx((34.587, 10.773))


def test_a_rejected_node_has_a_reason_for_each_resource() -> None:
    found = the_only(look(FULL))
    reason = REASON_RISK.format(utilization=90, resource="cpu", percentile=30)
    assert (found.accepted, found.resources["cpu"].accepted) == (False, False)
    assert found.resources["cpu"].reason == reason
    assert reason in found.reasons


def test_one_resource_may_be_refused_alone() -> None:
    found = the_only(look(loaded("n", (900, 300), (12 * GI, GI))))
    assert [found.resources[each].accepted for each in ("cpu", "memory")] == [False, True]
    assert found.resources["memory"].reason == ""


def test_the_worst_node_is_first_and_unknown_ones_are_last() -> None:
    found = look(BARE, IDLE, FULL, SPIKY, WARM)
    assert [each.name for each in found.nodes] == ["full", "spiky", "warm", "idle", "bare"]


def test_nodes_without_risk_are_sorted_by_usage() -> None:
    steady = [loaded(name, (free, 0), (12 * GI, 0)) for name, free in (("low", 7000), ("high", 4000))]
    assert [each.name for each in look(*steady).nodes] == ["high", "low"]


def test_a_node_without_measurements_has_no_risk() -> None:
    found = the_only(look(BARE))
    cpu = found.resources["cpu"]
    assert (found.risk, found.accepted) == (None, True)
    assert (cpu.mean, cpu.mu, cpu.alpha, cpu.risk, cpu.accepted) == (None, None, None, None, True)


def test_a_deviation_of_zero_has_no_distribution() -> None:
    cpu = the_only(look(loaded("n", (800, 0), (12 * GI, GI)))).resources["cpu"]
    assert (cpu.alpha, cpu.beta, cpu.risk) == (None, None, 1.0)


def test_an_unknown_deviation_is_shown_as_unknown() -> None:
    """One request to metrics-server gives one sample."""
    once = {"cpu/mean": {"bare": (6000.0, NOW)}, "cpu/p99": {"bare": (6000.0, NOW)}}
    cpu = the_only(look(BARE, values=once)).resources["cpu"]
    assert (cpu.mean, cpu.deviation, cpu.sigma, cpu.risk) == (6000.0, None, 0.0, 0.0)
    assert (cpu.p50, cpu.p99) == (None, 6000.0)
    annotated = the_only(look(BARE.annotations(**{"mean-free-cpu": "2000"}))).resources["cpu"]
    assert (annotated.mean, annotated.deviation) == (6000.0, None)


def test_a_deviation_that_no_distribution_has() -> None:
    cpu = the_only(look(loaded("n", (4000, 4000), (12 * GI, GI)))).resources["cpu"]
    assert (cpu.alpha, cpu.beta, cpu.risk) == (None, None, 1.0)


def test_a_measurement_that_is_too_old_counts_as_unknown() -> None:
    then = {"longshore.dev/measured-at": "2027-01-15T07:50:00Z"}
    assert the_only(look(loaded("n", (900, 300), (2 * GI, GI), **then))).risk is None


def test_the_age_of_measurements() -> None:
    then = {"longshore.dev/measured-at": "2027-01-15T07:59:00Z"}
    found = the_only(look(loaded("n", (900, 300), (2 * GI, GI), **then)))
    assert found.resources["cpu"].age == 60.0


def test_a_provider_takes_precedence_over_annotations() -> None:
    values = {
        "cpu/mean": {"full": (1000.0, NOW)},
        "cpu/std": {"full": (100.0, NOW)},
        "cpu/p95": {"full": (1200.0, NOW)},
    }
    found = the_only(look(FULL, values=values))
    assert found.accepted
    assert (found.resources["cpu"].mean, found.resources["cpu"].p95) == (1000.0, 1200.0)
    assert found.resources["memory"].risk is None


def test_without_measurements_a_node_may_be_refused() -> None:
    found = the_only(look(BARE, args=SafeOverloadArgs(missing="FailClosed")))
    assert (found.accepted, found.resources["cpu"].accepted) == (False, False)
    assert found.resources["cpu"].reason == REASON_NO_MEASUREMENTS


def test_requests_stand_in_for_measurements() -> None:
    asks = pod("p").requests(cpu="6").on("bare")
    found = the_only(look(BARE, pods=(asks,), args=SafeOverloadArgs(missing="Requests")))
    cpu = found.resources["cpu"]
    assert (cpu.mean, cpu.mu, cpu.risk) == (None, 6500 / 8000, 0.0)


def test_the_threshold_and_the_risk_that_is_accepted() -> None:
    found = look(FULL, args=SafeOverloadArgs(utilization=100, percentile=5))
    assert (found.utilization, found.percentile) == (100, 5)
    assert the_only(found).risk == 0.0


def test_only_the_nodes_that_are_named() -> None:
    assert [each.name for each in look(FULL, IDLE, WARM, only=("idle", "warm", "idle")).nodes] == [
        "warm",
        "idle",
    ]


def test_a_name_that_no_node_has() -> None:
    with pytest.raises(UserError, match="node ide does not exist: did you mean idle\\?"):
        look(IDLE, only=("ide",))


@pytest.mark.parametrize(
    ("requests", "words"),
    [({"cpu": "many"}, "cpu: 'many' is not a quantity"), ({"memory": "-1Gi"}, "memory: '-1Gi' is negative")],
)
def test_an_invalid_demand_is_an_error(requests: dict[str, str], words: str) -> None:
    with pytest.raises(UserError, match=words):
        demand(requests)
