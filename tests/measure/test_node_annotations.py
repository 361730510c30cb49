"""The annotations that a node should have, given its load and its pods, and when they are removed."""

import math
from collections.abc import Mapping

import pytest

from longshore.agents import annotations
from longshore.api import Node
from longshore.measure import node_annotations
from longshore.measure.node_annotations import changes, load, requested_by_node
from longshore.testing import NodeBuilder, node, pod

NOW = 1_800_000_000.0
NOW_TEXT = "2027-01-15T08:00:00Z"
MAX_AGE = 300.0
BIG = node("n1").allocatable(cpu="8", memory="16Gi")

MEASURED = {"cpu/mean": 2000.0, "cpu/std": 400.0, "memory/mean": 4.0 * 2**30, "memory/std": 2.0**29}


def measured(values: Mapping[str, float], *, at: float = NOW) -> dict[str, dict[str, tuple[float, float]]]:
    return {measure: {"n1": (value, at)} for measure, value in values.items()}


def wanted(
    values: Mapping[str, Mapping[str, tuple[float, float]]], of: Node = BIG, *, now: float = NOW
) -> dict[str, str | None]:
    return dict(load(of, values, now=now, max_age=MAX_AGE))


def annotated(**more: str) -> Node:
    """Return a node with all annotations that a pass wrote one second ago."""
    old = wanted(measured(MEASURED, at=NOW - 1), now=NOW - 1)
    return BIG.annotations(**{key: text for key, text in (old | more).items() if text is not None})


def test_the_load_is_written_as_the_free_amount() -> None:
    assert wanted(measured(MEASURED)) == {
        "mean-free-cpu": "6000",
        "std-free-cpu": "400",
        "mean-free-memory": str(12 * 2**30),
        "std-free-memory": str(2**29),
        "longshore.dev/measured-at": NOW_TEXT,
    }


def test_written_annotations_give_the_measured_values_back() -> None:
    values = {"cpu/mean": 2000.125, "cpu/std": 0.5, "memory/mean": 12345678.0, "memory/std": 0.0}
    written = {key: text for key, text in wanted(measured(values)).items() if text is not None}
    read = annotations.load(BIG.annotations(**written))
    assert {measure: read[measure] for measure in values} == {m: (v, NOW) for m, v in values.items()}


@pytest.mark.parametrize(
    ("used", "text"),
    [(8500.0, "-500"), (7999.9999, "0"), (8000.0001, "0"), (1e-7, "8000"), (2000.12345, "5999.877")],
)
def test_numbers_are_plain_decimals(used: float, text: str) -> None:
    assert wanted(measured({"cpu/mean": used}))["mean-free-cpu"] == text


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_a_number_is_not_written(bad: float) -> None:
    told = wanted(measured(MEASURED | {"cpu/mean": bad}))
    assert told["mean-free-cpu"] is None
    assert told["std-free-cpu"] is None
    assert told["mean-free-memory"] == str(12 * 2**30)


def test_a_node_without_allocatable_cpu_has_no_free_cpu_annotation() -> None:
    told = wanted(measured(MEASURED), node("n1").allocatable(memory="16Gi"))
    assert told["mean-free-cpu"] is None
    assert told["mean-free-memory"] == str(12 * 2**30)


def test_a_forecast_is_written_where_there_is_one() -> None:
    told = wanted(measured(MEASURED | {"memory/forecast": 2.0**30}))
    assert told["forcasted-free-memory"] == str(15 * 2**30)


def test_a_forecast_from_another_writer_is_left_alone() -> None:
    of = BIG.annotations(**{"forcasted-free-memory": "1"})
    assert "forcasted-free-memory" not in wanted(measured(MEASURED), of)


def test_the_time_is_that_of_the_oldest_value() -> None:
    values = measured(MEASURED) | {"memory/mean": {"n1": (1.0, NOW - 60)}}
    assert wanted(values)["longshore.dev/measured-at"] == "2027-01-15T07:59:00Z"


def test_a_value_without_a_time_was_taken_now() -> None:
    assert wanted(measured(MEASURED, at=math.nan))["longshore.dev/measured-at"] == NOW_TEXT


def test_a_clock_that_is_ahead_does_not_make_values_last_longer() -> None:
    assert wanted(measured(MEASURED, at=NOW + 60))["longshore.dev/measured-at"] == NOW_TEXT


def test_future_values_are_not_written_and_are_removed() -> None:
    early = NOW - 2 * MAX_AGE
    assert wanted(measured(MEASURED, at=NOW), now=early) == {}
    told = changes(annotated(), wanted(measured(MEASURED, at=NOW), annotated(), now=early))
    assert told["mean-free-cpu"] is None
    assert told["longshore.dev/measured-at"] is None


def test_a_forecast_that_is_no_longer_measured_is_removed() -> None:
    of = BIG.annotations(**{"forcasted-free-memory": "1"})
    assert wanted(measured(MEASURED) | {"memory/forecast": {}}, of)["forcasted-free-memory"] is None


def test_a_resource_that_is_no_longer_measured_is_removed_at_once() -> None:
    """The time next to it would make it look fresh."""
    told = changes(annotated(), wanted(measured({"cpu/mean": 2000.0, "cpu/std": 400.0}), annotated()))
    assert told == {
        "mean-free-memory": None,
        "std-free-memory": None,
        "longshore.dev/measured-at": NOW_TEXT,
    }


def test_a_node_that_is_missing_from_the_answer_keeps_values_that_are_fresh() -> None:
    assert wanted({}, annotated()) == {}


def test_expired_values_are_removed() -> None:
    later = NOW + MAX_AGE
    told = changes(annotated(), wanted(measured(MEASURED, at=NOW - 1), annotated(), now=later))
    assert told == dict.fromkeys(
        (
            "mean-free-cpu",
            "mean-free-memory",
            "std-free-cpu",
            "std-free-memory",
            "longshore.dev/measured-at",
        )
    )


def test_values_without_a_time_belong_to_another_writer() -> None:
    of = BIG.annotations(**{"mean-free-cpu": "100"})
    assert wanted({}, of, now=NOW + 1e6) == {}


def test_only_what_differs_is_written() -> None:
    values = measured(MEASURED | {"cpu/mean": 3000.0})
    assert changes(annotated(), wanted(values, annotated())) == {
        "mean-free-cpu": "5000",
        "longshore.dev/measured-at": NOW_TEXT,
    }


# Requests of pods.


def allocation(of: Node, asked: Mapping[str, int], *, now: float = NOW, **more: str) -> dict[str, str | None]:
    return dict(node_annotations.allocation(of, asked, now=now, max_age=MAX_AGE, **more))


def allocated(of: NodeBuilder) -> Node:
    """Return a node with all annotations that a pass writes."""
    return of.annotations(**{key: text for key, text in allocation(of, {}).items() if text is not None})


def test_pods_that_are_bound_count_whether_they_run_or_not() -> None:
    pods = [
        pod("waits").requests(cpu="500m", memory="1.5Gi").on("n1"),
        pod("runs").requests(cpu="250m").on("n1").phase("Running"),
        pod("ended").requests(cpu="4").on("n1").phase("Succeeded"),
        pod("nowhere").requests(cpu="4"),
        pod("elsewhere").requests(cpu="4").on("n2"),
    ]
    assert requested_by_node(pods)["n1"] == {"cpu": 750, "memory": 1536 * 2**20, "pods": 2, "gpu": 0}


def test_init_containers_and_overhead_count() -> None:
    asks = pod("p").requests(cpu="200m").init_container("first", cpu="1500m").overhead(cpu="100m").on("n1")
    assert requested_by_node([asks])["n1"]["cpu"] == 1600


def test_the_ten_annotations_are_whole_numbers_with_their_time() -> None:
    of = BIG.allocatable(**{"ephemeral-storage": "10Gi", "nvidia.com/gpu": "4"})
    asks = pod("p").requests(**{"cpu": "0.1", "memory": "1.5Gi", "nvidia.com/gpu": "1"}).on("n1")
    assert allocation(of, requested_by_node([asks])["n1"]) == {
        "requested-cpu": "100",
        "free-cpu": "7900",
        "requested-memory": "1610612736",
        "free-memory": str(16 * 2**30 - 1610612736),
        "requested-pods": "1",
        "free-pods": "109",
        "requested-gpu": "1",
        "free-gpu": "3",
        "requested-ephemeral-storage": "0",
        "free-ephemeral-storage": str(10 * 2**30),
        "longshore.dev/allocated-at": NOW_TEXT,
    }


def test_unchanged_requests_of_pods_are_not_written_again() -> None:
    there = allocated(BIG)
    assert changes(there, allocation(there, {}, now=NOW + 60)) == {}


def test_its_time_is_renewed_before_it_is_too_old() -> None:
    there = allocated(BIG)
    told = changes(there, allocation(there, {}, now=NOW + 120))
    assert told == {"longshore.dev/allocated-at": "2027-01-15T08:02:00Z"}


def test_its_time_is_that_of_the_change() -> None:
    there = allocated(BIG)
    told = changes(there, allocation(there, {"cpu": 500}, now=NOW + 60))
    assert told == {
        "requested-cpu": "500",
        "free-cpu": "7500",
        "longshore.dev/allocated-at": "2027-01-15T08:01:00Z",
    }


def test_a_time_that_is_yet_to_come_is_not_left_there() -> None:
    there = allocated(BIG)
    assert "longshore.dev/allocated-at" in changes(there, allocation(there, {}, now=NOW - 3600))


def test_a_node_whose_pods_request_more_has_nothing_free() -> None:
    told = allocation(node("n1").allocatable(cpu="1"), {"cpu": 1500})
    assert (told["requested-cpu"], told["free-cpu"]) == ("1500", "0")


def test_a_node_without_pods_has_all_of_it_free() -> None:
    told = allocation(BIG.not_ready(), {})
    assert (told["requested-pods"], told["free-pods"], told["free-cpu"]) == ("0", "110", "8000")


def test_gpus_without_a_vendor_in_their_name() -> None:
    assert allocation(node("n1").allocatable(gpu="2"), {})["free-gpu"] == "2"


def test_gpus_of_another_vendor_count_if_they_are_meant() -> None:
    of = BIG.allocatable(**{"amd.com/gpu": "4"})
    asks = pod("p").requests(**{"amd.com/gpu": "1"}).on("n1")
    assert allocation(of, requested_by_node([asks])["n1"])["free-gpu"] == "0"
    asked = requested_by_node([asks], gpus="amd.com/gpu")["n1"]
    told = allocation(of, asked, gpus="amd.com/gpu")
    assert (told["requested-gpu"], told["free-gpu"]) == ("1", "3")
