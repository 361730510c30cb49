"""Reading the annotations of nodes, including texts that are not numbers."""

from typing import Any

import numpy as np
import pytest
from tests.plugins.one_plugin import cluster_of

from longshore.agents.annotations import (
    MEASURED_AT,
    number,
    read_congestion,
    read_load,
    read_requested,
    requested_measure,
)
from longshore.api import Node
from longshore.cluster import CPU, ClusterState
from longshore.testing import NodeBuilder, node, pod

AT = "2026-03-01T12:00:00Z"
AT_SECONDS = 1772366400.0


def annotated(**annotations: str) -> NodeBuilder:
    named = {key.replace("_", "-"): text for key, text in annotations.items()}
    return node("n1").allocatable(cpu="4", memory="8Gi").annotations(**named)


def measured(cluster: ClusterState, name: str) -> float:
    (value,) = cluster.measures.value(name, cluster.all_nodes()).tolist()
    return float(value)


def read(built: NodeBuilder) -> ClusterState:
    cluster = cluster_of(built)
    read_load(cluster)
    return cluster


@pytest.mark.parametrize("text", ["0", "-1.5", "+2", "1e3", "1.", ".5", "2E-3"])
def test_valid_numbers_are_read(text: str) -> None:
    assert number(text) == float(text)


@pytest.mark.parametrize("text", ["NaN", "Inf", "-infinity"])
def test_infinite_and_nan_are_parsed_as_numbers(text: str) -> None:
    found = number(text)
    assert found is not None
    assert not np.isfinite(found)


@pytest.mark.parametrize(
    "text", ["", " 1", "1 ", "1\n", "1_000", "\u0663", "500m", "2Gi", "N/A", "None", "e5", ".", "0x1"]
)
def test_a_text_that_is_not_a_number_is_none(text: str) -> None:
    assert number(text) is None


def test_usage_is_the_rest_of_the_free_amount() -> None:
    cluster = read(annotated(mean_free_cpu="1500", std_free_cpu="200", forcasted_free_cpu="1000"))
    assert measured(cluster, "cpu/mean") == 2500
    assert measured(cluster, "cpu/std") == 200
    assert measured(cluster, "cpu/forecast") == 3000
    assert np.isnan(measured(cluster, "memory/mean"))


def test_a_missing_deviation_is_unknown_although_the_mean_is_known() -> None:
    cluster = read(annotated(mean_free_cpu="1500"))
    assert measured(cluster, "cpu/mean") == 2500
    assert np.isnan(measured(cluster, "cpu/std"))


def test_more_may_be_free_than_the_node_offers() -> None:
    assert measured(read(annotated(mean_free_memory=str(9 * 2**30))), "memory/mean") == -(2**30)


def test_the_forecast_is_read_in_either_spelling_with_the_old_one_first() -> None:
    assert measured(read(annotated(forecasted_free_cpu="1000")), "cpu/forecast") == 3000
    both = annotated(forecasted_free_cpu="1000", forcasted_free_cpu="2000")
    assert measured(read(both), "cpu/forecast") == 2000
    assert (
        measured(read(annotated(forecasted_free_cpu="1000", forcasted_free_cpu="N/A")), "cpu/forecast")
        == 3000
    )


def test_the_time_of_the_values_is_read() -> None:
    cluster = read(annotated(mean_free_cpu="1500").annotations(**{MEASURED_AT: AT}))
    assert cluster.measures.time("cpu/mean", cluster.all_nodes()).tolist() == [AT_SECONDS]
    cluster.measures.put({}, now=AT_SECONDS + 301)
    assert np.isnan(measured(cluster, "cpu/mean"))


@pytest.mark.parametrize("text", ["", "yesterday", "2026-03-01T12:00:00"])
def test_values_with_an_invalid_time_never_expire(text: str) -> None:
    cluster = read(annotated(mean_free_cpu="1500").annotations(**{MEASURED_AT: text}))
    cluster.measures.put({}, now=1e12)
    assert measured(cluster, "cpu/mean") == 2500


def test_a_changed_node_does_not_restore_expired_values() -> None:
    old = annotated(mean_free_cpu="1500").annotations(**{MEASURED_AT: AT})
    cluster = read(old)
    cluster.measures.put({}, now=AT_SECONDS + 301)
    cluster.add_node(old.labels(zone="east"))
    assert np.isnan(measured(cluster, "cpu/mean"))


def test_pods_that_came_after_the_time_of_the_annotations_are_unseen() -> None:
    built = annotated(mean_free_cpu="1500")
    timed, untimed = read(built.annotations(**{MEASURED_AT: AT})), read(built)
    for cluster, unseen in ((timed, 1000), (untimed, 0)):
        cluster.add_pod(pod("late").requests(cpu="1").on("n1"))
        assert cluster.measures.unseen(cluster.all_nodes(), CPU).tolist() == [unseen]


@pytest.mark.parametrize("read_them", [read_load, read_congestion, read_requested])
def test_a_cluster_is_read_once_however_often_it_is_requested(
    read_them: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = cluster_of(annotated(mean_free_cpu="1500", congestion_factor="5", requested_cpu="100"))
    read_them(cluster)
    before = cluster.journal.position
    put: list[Any] = []
    monkeypatch.setattr(cluster.measures, "_put", lambda *args: put.append(args))
    read_them(cluster)
    assert cluster.journal.position == before
    cluster.add_node(annotated(mean_free_cpu="1400", congestion_factor="6", requested_cpu="200"))
    assert len(put) == 1


def test_each_reader_reads_only_its_own_annotations() -> None:
    cluster = cluster_of(annotated(mean_free_cpu="1500", congestion_factor="5", requested_cpu="100"))
    read_congestion(cluster)
    assert cluster.measures.names == ["congestion/annotated"]
    read_requested(cluster)
    assert np.isnan(measured(cluster, "cpu/mean"))
    assert measured(cluster, requested_measure("cpu")) == 100


def test_a_removed_annotation_removes_its_value() -> None:
    cluster = read(annotated(mean_free_cpu="1500"))
    cluster.add_node(annotated())
    assert np.isnan(measured(cluster, "cpu/mean"))


def test_a_change_of_allocatable_changes_the_usage() -> None:
    cluster = read(annotated(mean_free_cpu="1500"))
    grown: Node = annotated(mean_free_cpu="1500").allocatable(cpu="6")
    cluster.add_node(grown)
    assert measured(cluster, "cpu/mean") == 4500
