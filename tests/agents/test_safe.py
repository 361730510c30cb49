"""SafeOverload and SafeBalance compared with the golden file, and what they do beyond it."""

import math
import sys
from typing import Any

import numpy as np
import pytest
import structlog
from tests.agents.one_agent import golden, loaded, made, refused, scores

from longshore.agents import beta
from longshore.agents.load import REASON_NO_MEASUREMENTS
from longshore.agents.safe import REASON_RISK, SafeBalance, SafeOverload
from longshore.cluster import CPU, PodInfo
from longshore.errors import UserError
from longshore.framework import Action, CycleState, Resource
from longshore.testing import NodeBuilder, PodBuilder, node, pod

VECTORS = golden()["safe_single_resource"]
CLUSTER = golden()["safe_cluster"]
WEB = pod("web").requests(**CLUSTER["pod_request"])
IDLE, SPIKY, WARM, FULL, FORECAST = (
    node(each["node"]).allocatable(**each["allocatable"]).annotations(**each["annotations"])
    for each in CLUSTER["nodes"]
)
BARE = node("bare").allocatable(cpu="8", memory="16Gi")
CPU_ONLY = node("cpuonly").allocatable(cpu="8", memory="16Gi")
CPU_ONLY = CPU_ONLY.annotations(**{"mean-free-cpu": "2400", "std-free-cpu": "500"})
CPU_REASON = REASON_RISK.format(utilization=90, resource="cpu", percentile=30)
MEMORY_REASON = REASON_RISK.format(utilization=90, resource="memory", percentile=30)


def named(name: str) -> dict[str, Any]:
    (found,) = [vector for vector in VECTORS if vector["name"] == name]
    return dict(found)


def measured(vector: dict[str, Any], resource: str = "cpu") -> tuple[NodeBuilder, PodBuilder]:
    """The node and the pod of a vector for one resource."""
    unit = "m" if resource == "cpu" else ""
    built = node("n1").allocatable(**{resource: f"{vector['capacity']}{unit}"})
    built = built.annotations(
        **{f"mean-free-{resource}": str(vector["mean_free"]), f"std-free-{resource}": str(vector["std_free"])}
    )
    if vector["forecast_free"] is not None:
        built = built.annotations(**{f"forcasted-free-{resource}": str(vector["forecast_free"])})
    return built, pod("web").requests(**{resource: f"{vector['request']}{unit}"})


def arguments(vector: dict[str, Any]) -> dict[str, object]:
    return SafeOverload.environment({key: str(value) for key, value in vector.items() if key.isupper()})


@pytest.mark.parametrize("resource", ["cpu", "memory"])
@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_the_risk_of_one_resource_equals_that_of_the_golden_file(
    vector: dict[str, Any], resource: str
) -> None:
    there, web = measured(vector, resource)
    cluster = loaded(there)
    overload = made(SafeOverload, cluster, **arguments(vector))
    balance = made(SafeBalance, cluster, forecastWeight=vector["SAFEFORECASTWEIGHT"])
    assert (not refused(overload, web, cluster)) == vector["accepted"]
    assert scores(overload, web, cluster) == {"n1": vector["overload_score"] * 10}
    assert scores(balance, web, cluster) == {"n1": vector["balance_score"] * 10}


@pytest.mark.parametrize("expected", CLUSTER["nodes"], ids=[each["node"] for each in CLUSTER["nodes"]])
def test_the_scores_of_nodes_equal_those_of_the_golden_cluster(expected: dict[str, Any]) -> None:
    cluster = loaded(IDLE, SPIKY, WARM, FULL, FORECAST, BARE, CPU_ONLY)
    name = expected["node"]
    overload, balance = made(SafeOverload, cluster), made(SafeBalance, cluster)
    assert (name not in refused(overload, WEB, cluster)) == expected["accepted"]
    assert scores(overload, WEB, cluster)[name] == expected["overload_score"] * 10
    assert scores(balance, WEB, cluster)[name] == expected["balance_score"] * 10


def test_unknown_values_do_not_count_and_a_node_without_any_is_the_worst() -> None:
    cluster = loaded(BARE, CPU_ONLY)
    overload, balance = made(SafeOverload, cluster), made(SafeBalance, cluster)
    assert refused(overload, WEB, cluster) == {}
    assert scores(overload, WEB, cluster) == {"bare": 0, "cpuonly": 80}
    assert scores(balance, WEB, cluster) == {"bare": 0, "cpuonly": 50}


@pytest.mark.parametrize(
    ("missing", "bare", "cpu_only"),
    # The worst of the resources counts: 50, 0, or all of cpu free and no memory requested except by the pod.
    [("FailOpen", 50, 50), ("FailClosed", 0, 0), ("Requests", 100, 80)],
)
def test_scores_of_missing_measurements_follow_the_policy(missing: str, bare: int, cpu_only: int) -> None:
    cluster = loaded(BARE, CPU_ONLY)
    agent = made(SafeOverload, cluster, missing=missing)
    assert scores(agent, WEB, cluster) == {"bare": bare, "cpuonly": cpu_only}


def test_with_fail_closed_nodes_without_measurements_are_rejected_with_a_reason() -> None:
    cluster = loaded(BARE, CPU_ONLY, IDLE, FULL)
    assert refused(made(SafeOverload, cluster, missing="FailClosed"), WEB, cluster) == {
        "bare": [REASON_NO_MEASUREMENTS],
        "cpuonly": [REASON_NO_MEASUREMENTS],
        "full": [CPU_REASON, MEMORY_REASON],
    }


def test_requests_of_pods_replace_measurements_if_so_configured() -> None:
    cluster = loaded(BARE, pod("other").requests(cpu="7").on("bare"))
    agent = made(SafeOverload, cluster, missing="Requests")
    assert refused(agent, WEB, cluster) == {"bare": [CPU_REASON]}
    assert refused(agent, pod("small").requests(cpu="200m"), cluster) == {}


def test_requests_that_replace_a_mean_do_not_vary() -> None:
    cluster = loaded(BARE, pod("other").requests(cpu="4").on("bare"))
    cluster.measures.put({"cpu/std": {"bare": (3000.0, math.nan)}}, now=0.0)
    assert refused(made(SafeOverload, cluster, missing="Requests"), WEB, cluster) == {}


def test_a_rejection_names_the_resource_the_threshold_and_the_acceptable_risk() -> None:
    cluster = loaded(CPU_ONLY)
    agent = made(SafeOverload, cluster, utilization=70, percentile=5)
    reason = "node(s) would use over 70 percent of their cpu with a risk above 5 percent"
    assert refused(agent, WEB, cluster) == {"cpuonly": [reason]}


@pytest.mark.parametrize("spoiled", ["NaN", "Inf", "-inf"])
@pytest.mark.parametrize("annotation", ["mean-free-cpu", "std-free-cpu"])
def test_a_statistic_that_is_not_a_finite_number_is_unknown(annotation: str, spoiled: str) -> None:
    cluster = loaded(FULL.annotations(**{annotation: spoiled}))
    assert refused(made(SafeOverload, cluster), WEB, cluster) == {"full": [MEMORY_REASON]}


def test_a_node_without_a_resource_has_no_statistics_of_it() -> None:
    cluster = loaded(FULL.allocatable(cpu="0"))
    agent = made(SafeOverload, cluster)
    assert refused(agent, WEB, cluster) == {"full": [MEMORY_REASON]}
    assert scores(made(SafeBalance, cluster), WEB, cluster) == {"full": 40}


def test_a_missing_or_negative_deviation_counts_as_0() -> None:
    steady = node("steady").allocatable(cpu="4").annotations(**{"mean-free-cpu": "900"})
    negative = node("negative").allocatable(cpu="4")
    negative = negative.annotations(**{"mean-free-cpu": "900", "std-free-cpu": "-5"})
    cluster = loaded(steady, negative)
    agent = made(SafeOverload, cluster)
    assert refused(agent, pod("web").requests(cpu="500m"), cluster) == {}
    assert scores(agent, pod("web").requests(cpu="500m"), cluster) == {"steady": 100, "negative": 100}


@pytest.mark.parametrize(("request_", "score"), [("1600m", 100), ("1601m", 0)])
def test_if_no_risk_is_acceptable_only_nodes_without_risk_score(request_: str, score: int) -> None:
    there, _ = measured(named("F sigma0 at threshold"))
    cluster, web = loaded(there), pod("web").requests(cpu=request_)
    agent = made(SafeOverload, cluster, percentile=0)
    assert bool(refused(agent, web, cluster)) == (score == 0)
    assert scores(agent, web, cluster) == {"n1": score}


def test_an_init_container_counts_if_it_requests_more() -> None:
    there, _ = measured(named("A"))
    cluster = loaded(there)
    web = pod("web").requests(cpu="200m").container("side", cpu="200m").init_container("first", cpu="1500m")
    assert refused(made(SafeOverload, cluster), web, cluster) == {"n1": [CPU_REASON]}
    later = pod("web").requests(cpu="200m").container("side", cpu="200m")
    assert refused(made(SafeOverload, cluster), later, cluster) == {}


@pytest.mark.parametrize(
    ("forecast", "weight", "score"), [("1000", 20, 80), ("1000", 50, 10), ("1000", 100, 0), ("N/A", 100, 90)]
)
def test_forecasts_count_with_their_weight(forecast: str, weight: int, score: int) -> None:
    there, web = measured(next(vector for vector in VECTORS if vector["forecast_free"] is not None))
    cluster = loaded(there.annotations(**{"forcasted-free-cpu": forecast}))
    assert scores(made(SafeOverload, cluster, forecastWeight=weight), web, cluster) == {"n1": score}


def test_pods_that_came_after_the_measurement_count_with_their_requests() -> None:
    cluster = loaded(BARE)
    cluster.measures.put({"cpu/mean": {"bare": (1000.0, 50.0)}}, now=50.0)
    agent = made(SafeOverload, cluster)
    assert refused(agent, WEB, cluster) == {}
    cluster.add_pod(pod("late").requests(cpu="6").on("bare"))
    assert refused(agent, WEB, cluster) == {"bare": [CPU_REASON]}


def test_pods_of_a_dry_run_count_between_two_calls() -> None:
    cluster = loaded(BARE)
    cluster.measures.put({"cpu/mean": {"bare": (1000.0, 50.0)}}, now=50.0)
    agent, info, one = made(SafeOverload, cluster), PodInfo.of(WEB), cluster.one_node(0)
    before = [bool(each.where) for each in agent.filter(CycleState(), info, one)]
    one.add(PodInfo.of(pod("imagined").requests(cpu="6")))
    assert one.requested[CPU] == 6000
    assert before == [False, False]
    assert [bool(each.where) for each in agent.filter(CycleState(), info, one)] == [True, False]


def test_filter_and_score_share_one_computation(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = loaded(IDLE, WARM)
    agent, info, state, nodes = (
        made(SafeOverload, cluster),
        PodInfo.of(WEB),
        CycleState(),
        cluster.all_nodes(),
    )
    calls: list[float] = []
    worked_out = beta.risk

    def counted(mean: Any, deviation: Any, threshold: float) -> Any:
        calls.append(threshold)
        return worked_out(mean, deviation, threshold)

    monkeypatch.setattr(beta, "risk", counted)
    list(agent.filter(state, info, nodes))
    agent.score(state, info, nodes)
    # One for cpu, one for memory.
    assert len(calls) == 2


def test_scores_are_rounded_to_the_nearest_ten_if_so_configured() -> None:
    cluster = loaded(CPU_ONLY)
    # (1 - sqrt(0.00466237 / 0.3)) * 10 is 8.75.
    assert scores(made(SafeOverload, cluster), WEB, cluster) == {"cpuonly": 80}
    assert scores(made(SafeOverload, cluster, roundScores=True), WEB, cluster) == {"cpuonly": 90}


def test_fine_scores_distinguish_what_tens_do_not() -> None:
    busier = CPU_ONLY.annotations(**{"mean-free-cpu": "2300"})
    cluster = loaded(CPU_ONLY, node("busier").allocatable(cpu="8").annotations(**busier.metadata.annotations))
    assert scores(made(SafeOverload, cluster), WEB, cluster) == {"cpuonly": 80, "busier": 80}
    # (1 - sqrt(0.00466237 / 0.3)) * 100, and the same at a risk of 0.00995.
    assert scores(made(SafeOverload, cluster, fineScores=True), WEB, cluster) == {"cpuonly": 88, "busier": 82}
    # (1 - (0.7625 + 0.25) / 2) * 100 is 49.375, and 0.775 instead of 0.7625 makes it 48.75.
    assert scores(made(SafeBalance, cluster, fineScores=True), WEB, cluster) == {"cpuonly": 49, "busier": 49}


def test_the_table_of_a_distribution_is_logged_on_demand() -> None:
    cluster = loaded(WARM, BARE)
    quiet, telling = made(SafeOverload, cluster), made(SafeOverload, cluster, printTable=True)
    with structlog.testing.capture_logs() as logged:
        scores(quiet, WEB, cluster)
        assert logged == []
        scores(telling, WEB, cluster)
    assert [(line["node"], line["resource"]) for line in logged] == [("warm", "cpu"), ("warm", "memory")]
    assert logged[0]["alpha"] == pytest.approx(34.5866, abs=1e-3)
    assert len(logged[0]["table"]) == 21
    # At 90%: the cumulative probability is 1 minus the risk.
    assert logged[0]["table"][18][2] == pytest.approx(1 - 0.00466236795, abs=1e-6)


def test_the_environment_sets_arguments() -> None:
    environ = {
        "SAFEUTILIZATION": "80",
        "SAFEPERCENTILE": "5",
        "SAFEFORECASTWEIGHT": "0",
        "SAFEPRINTTABLE": "true",
    }
    assert SafeOverload.environment(environ) == {
        "utilization": 80,
        "percentile": 5,
        "forecastWeight": 0,
        "printTable": True,
    }
    assert SafeBalance.environment(environ) == {"forecastWeight": 0}


@pytest.mark.parametrize("text", ["abc", "0.9", "101", "-1", " 80", "8_0", "\u0668\u0660", ""])
def test_an_invalid_environment_variable_is_ignored_with_a_warning(text: str) -> None:
    with structlog.testing.capture_logs() as logged:
        assert SafeOverload.environment({"SAFEUTILIZATION": text}) == {}
    assert [line["variable"] for line in logged] == (["SAFEUTILIZATION"] if text else [])


@pytest.mark.parametrize("text", ["True", "1", "yes", ""])
def test_the_table_is_printed_only_for_true(text: str) -> None:
    assert SafeOverload.environment({"SAFEPRINTTABLE": text}) == {}


@pytest.mark.parametrize(
    "args", [{"utilization": 101}, {"utilization": 0.9}, {"missing": "Open"}, {"speed": 1}]
)
def test_invalid_arguments_are_an_error_in_one_line(args: dict[str, object]) -> None:
    with pytest.raises(UserError, match=r"^arguments of SafeOverload: ") as caught:
        made(SafeOverload, loaded(), **args)
    assert "\n" not in str(caught.value)


def test_without_scipy_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    with pytest.raises(UserError, match=r"SafeOverload needs scipy: pip install 'longshore\[agents\]'"):
        made(SafeOverload, loaded())
    assert made(SafeBalance, loaded()).name == "SafeBalance"


def test_rejected_pods_are_woken_by_measurements_and_deleted_pods() -> None:
    wakes = {
        (wake.resource, action) for wake in made(SafeOverload, loaded()).wakes_on for action in wake.actions
    }
    assert wakes == {
        (Resource.NODE, Action.ADD),
        (Resource.NODE, Action.UPDATE_NODE_ANNOTATION),
        (Resource.NODE, Action.UPDATE_NODE_ALLOCATABLE),
        (Resource.ASSIGNED_POD, Action.DELETE),
    }


def test_the_results_for_one_node_equal_those_for_many() -> None:
    cluster = loaded(IDLE, SPIKY, WARM, FULL, FORECAST, BARE, CPU_ONLY)
    for missing in ("Neutral", "FailOpen", "FailClosed", "Requests"):
        for kind in (SafeOverload, SafeBalance):
            agent, info = made(kind, cluster, missing=missing), PodInfo.of(WEB)
            many = agent.score(CycleState(), info, cluster.all_nodes())
            assert many.dtype == np.int64
            ones = [agent.score(CycleState(), info, cluster.one_node(row)) for row in range(len(many))]
            assert ones == many.tolist()
            assert all(type(one) is int for one in ones)
