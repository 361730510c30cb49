"""Measurements of nodes: where they belong, when they expire, and which pods they do not show yet."""

from collections.abc import Mapping

import numpy as np
import pytest

from longshore.api import Node
from longshore.cluster import CPU, MEMORY, ClusterState, PodInfo
from longshore.cluster.measures import Measured
from longshore.testing import node, pod

MEAN, STD = "cpu/mean", "cpu/std"
UNTIMED = float("nan")


def cluster_of(*names: str) -> ClusterState:
    cluster = ClusterState()
    for name in names:
        cluster.add_node(node(name).allocatable(cpu="8"))
    return cluster


def value(cluster: ClusterState, name: str, measure: str = MEAN) -> float:
    row = cluster.row(name)
    assert row is not None
    return float(cluster.measures.value(measure, cluster.one_node(row)))


def unseen(cluster: ClusterState, name: str = "n1", column: int = CPU) -> int:
    row = cluster.row(name)
    assert row is not None
    return int(cluster.measures.unseen(cluster.one_node(row), column))


def put(cluster: ClusterState, *, now: float, taken: float | None = None, **means: float) -> int:
    at = now if taken is None else taken
    return cluster.measures.put({MEAN: {name: (mean, at) for name, mean in means.items()}}, now=now)


def changed(cluster: ClusterState, position: int) -> list[int]:
    """The rows in the journal since the position, all of which must be changed nodes."""
    rows = cluster.journal.rows_since(position)
    assert rows is not None
    assert all(rows.values())
    return list(rows)


def test_values_are_by_node_and_measure_and_absent_where_nothing_was_measured() -> None:
    cluster = cluster_of("n1", "n2")
    cluster.measures.put({MEAN: {"n1": (5.0, 1.0)}, STD: {"n2": (2.0, 1.0)}}, now=1.0)
    assert (value(cluster, "n1"), value(cluster, "n2", STD)) == (5.0, 2.0)
    assert np.isnan([value(cluster, "n2"), value(cluster, "n1", STD)]).all()
    assert np.isnan(cluster.measures.value("memory/mean", cluster.all_nodes())).tolist() == [True, True]
    assert np.isnan(cluster.measures.value("memory/mean", cluster.one_node(0)))


def test_unknown_nodes_are_ignored() -> None:
    cluster = cluster_of("n1")
    assert put(cluster, now=1.0, other=5.0) == 0
    assert cluster.row("other") is None


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -float("inf")])
def test_a_value_that_is_not_a_finite_number_counts_as_unknown(odd: float) -> None:
    cluster = cluster_of("n1")
    put(cluster, now=1.0, n1=5.0)
    assert put(cluster, now=2.0, n1=odd) == 1
    assert np.isnan(value(cluster, "n1"))


def test_an_expired_value_still_has_its_time() -> None:
    cluster = cluster_of("n1")
    put(cluster, now=100.0, n1=5.0)
    assert cluster.measures.put({}, now=400.0) == 0
    assert value(cluster, "n1") == 5.0
    assert cluster.measures.put({}, now=400.1) == 1
    assert np.isnan(value(cluster, "n1"))
    assert cluster.measures.time(MEAN, cluster.all_nodes()).tolist() == [100.0]


def test_a_value_that_is_too_old_when_it_arrives_is_ignored() -> None:
    cluster = cluster_of("n1")
    assert put(cluster, now=1000.0, taken=600.0, n1=5.0) == 0
    assert np.isnan(value(cluster, "n1"))


def test_a_value_without_a_time_never_expires() -> None:
    cluster = cluster_of("n1")
    put(cluster, now=0.0, taken=UNTIMED, n1=5.0)
    assert cluster.measures.put({}, now=1e9) == 0
    assert value(cluster, "n1") == 5.0


def test_the_age_at_which_values_expire_can_be_set() -> None:
    cluster = cluster_of("n1")
    cluster.measures.max_age = 10.0
    put(cluster, now=0.0, n1=5.0)
    assert cluster.measures.put({}, now=11.0) == 1


def test_pods_that_were_there_before_the_first_measurement_count_as_measured() -> None:
    cluster = cluster_of("n1")
    cluster.add_pod(pod("a").requests(cpu="1").on("n1"))
    put(cluster, now=0.0, n1=5.0)
    assert unseen(cluster) == 0


def test_a_pod_that_came_later_is_unseen_until_a_measurement_long_enough_after_it() -> None:
    cluster = cluster_of("n1")
    put(cluster, now=0.0, n1=5.0)
    cluster.add_pod(pod("a").requests(cpu="1", memory="1Gi").on("n1"))
    assert (unseen(cluster), unseen(cluster, column=MEMORY)) == (1000, 2**30)
    found = []
    for now in (10.0, 30.0, 40.0, 60.0):
        put(cluster, now=now, n1=5.0)
        found.append(unseen(cluster))
    # As far as the measurements tell, the pod was first there at 30, and 60 is 30 seconds later.
    assert found == [1000, 1000, 1000, 0]


def test_each_of_several_new_pods_is_unseen_in_turn() -> None:
    cluster = cluster_of("n1")
    found = []
    for number in range(5):
        put(cluster, now=30.0 * number, n1=5.0)
        cluster.add_pod(pod(f"p{number}").requests(cpu="1").on("n1"))
        found.append(unseen(cluster))
    # The one that has just come, and the one before, which the last measurement may not show.
    assert found == [1000, 2000, 2000, 2000, 2000]


def test_a_measurement_that_arrives_late_does_not_show_pods_that_came_before_its_arrival() -> None:
    cluster = cluster_of("n1")
    put(cluster, now=0.0, n1=5.0)
    cluster.add_pod(pod("a").requests(cpu="1").on("n1"))
    put(cluster, now=50.0, taken=30.0, n1=5.0)
    # Measured 30 seconds after the last one, but only 10 seconds after the pod was known to be there.
    put(cluster, now=65.0, taken=60.0, n1=5.0)
    assert unseen(cluster) == 1000
    put(cluster, now=85.0, taken=80.0, n1=5.0)
    assert unseen(cluster) == 0


def test_a_measurement_without_a_time_shows_all_pods() -> None:
    cluster = cluster_of("n1")
    put(cluster, now=0.0, taken=UNTIMED, n1=5.0)
    cluster.add_pod(pod("a").requests(cpu="1").on("n1"))
    assert unseen(cluster) == 0


def test_after_pods_are_gone_nothing_is_unseen() -> None:
    cluster = cluster_of("n1")
    gone = pod("a").requests(cpu="1").on("n1")
    cluster.add_pod(gone)
    put(cluster, now=0.0, n1=5.0)
    cluster.remove_pod(gone)
    assert unseen(cluster) == 0


def test_a_pod_that_follows_another_is_unseen_whatever_the_other_requested() -> None:
    cluster = cluster_of("n1")
    before = pod("a").requests(cpu="4").on("n1")
    cluster.add_pod(before)
    put(cluster, now=0.0, n1=4000.0)
    put(cluster, now=30.0, n1=4000.0)
    cluster.remove_pod(before)
    put(cluster, now=60.0, n1=0.0)
    cluster.add_pod(pod("b").requests(cpu="4").on("n1"))
    assert unseen(cluster) == 4000
    put(cluster, now=90.0, n1=0.0)
    assert unseen(cluster) == 4000
    put(cluster, now=120.0, n1=4000.0)
    assert unseen(cluster) == 0


def test_a_pod_that_replaces_another_is_unseen_at_the_next_measurement() -> None:
    cluster = cluster_of("n1")
    before = pod("a").requests(cpu="4").on("n1")
    cluster.add_pod(before)
    put(cluster, now=0.0, n1=4000.0)
    cluster.add_pod(pod("b").requests(cpu="4").on("n1"))
    cluster.remove_pod(before)
    # The measurement still includes what the first one used.
    assert unseen(cluster) == 0
    put(cluster, now=30.0, n1=0.0)
    assert unseen(cluster) == 4000
    put(cluster, now=60.0, n1=4000.0)
    assert unseen(cluster) == 0


def test_a_failed_bind_does_not_make_other_pods_unseen() -> None:
    cluster = cluster_of("n1")
    cluster.add_pod(pod("a").requests(cpu="1").on("n1"))
    put(cluster, now=0.0, n1=1000.0)
    tried = PodInfo.of(pod("b").requests(cpu="1"))
    cluster.assume(tried, "n1")
    cluster.forget(tried.pod)
    put(cluster, now=30.0, n1=1000.0)
    assert unseen(cluster) == 0


def test_a_value_from_the_future_is_ignored() -> None:
    cluster = cluster_of("n1")
    put(cluster, now=0.0, taken=4e9, n1=5.0)
    assert np.isnan(value(cluster, "n1"))


def test_a_clock_that_is_a_little_ahead_does_not_keep_pods_unseen() -> None:
    cluster = cluster_of("n1")
    put(cluster, now=0.0, taken=100.0, n1=5.0)
    cluster.add_pod(pod("a").requests(cpu="1").on("n1"))
    put(cluster, now=30.0, n1=5.0)
    put(cluster, now=60.0, n1=5.0)
    assert unseen(cluster) == 0


def test_the_time_that_pods_take_to_show_can_be_set() -> None:
    cluster = cluster_of("n1")
    cluster.measures.settle = 0.0
    put(cluster, now=0.0, n1=5.0)
    cluster.add_pod(pod("a").requests(cpu="1").on("n1"))
    put(cluster, now=1.0, n1=5.0)
    put(cluster, now=2.0, n1=5.0)
    assert unseen(cluster) == 0


def test_in_a_mean_over_a_period_pods_show_gradually() -> None:
    cluster = cluster_of("n1")
    cluster.measures.settle = 900.0
    put(cluster, now=0.0, n1=0.0)
    cluster.add_pod(pod("a").requests(cpu="1").on("n1"))
    estimates = []
    for now in range(30, 3600, 30):
        mean = 1000.0 * min(now / 900, 1.0)
        put(cluster, now=float(now), n1=mean)
        estimates.append(mean + unseen(cluster))
    # The pod uses one core, and counts as about one core all the time.
    assert min(estimates) > 850
    assert max(estimates) < 1200
    assert 1000 <= estimates[-1] < 1010


def test_the_use_of_a_pod_that_is_gone_stays_in_a_mean_over_a_period() -> None:
    cluster = cluster_of("n1")
    cluster.measures.settle = 900.0
    before = pod("a").requests(cpu="4").on("n1")
    cluster.add_pod(before)
    put(cluster, now=0.0, n1=4000.0)
    cluster.remove_pod(before)
    cluster.add_pod(pod("b").requests(cpu="4").on("n1"))
    for now in range(30, 1800, 30):
        # The second uses as much as the first did.
        put(cluster, now=float(now), n1=4000.0)
        assert unseen(cluster) <= 4000 * now / 450


def test_a_value_from_the_future_that_was_read_before_the_time_was_known_is_forgotten() -> None:
    cluster = cluster_of("n1")
    cluster.measures.read_nodes(lambda _: {MEAN: (5.0, 4e9)})
    put(cluster, now=0.0)
    assert np.isnan(value(cluster, "n1"))
    put(cluster, now=30.0, n1=5.0)
    cluster.add_pod(pod("a").requests(cpu="1").on("n1"))
    put(cluster, now=60.0, n1=5.0)
    put(cluster, now=90.0, n1=5.0)
    assert unseen(cluster) == 0


def test_a_row_that_is_given_to_another_node_starts_empty() -> None:
    cluster = cluster_of("n1", "n2")
    put(cluster, now=0.0, n1=5.0)
    cluster.remove_node("n1")
    cluster.add_node(node("n3").allocatable(cpu="8"))
    assert cluster.row("n3") == 0
    cluster.add_pod(pod("a").requests(cpu="1").on("n3"))
    assert np.isnan(value(cluster, "n3"))
    assert np.isnan(cluster.measures.time(MEAN, cluster.one_node(0)))
    assert unseen(cluster, "n3") == 0
    # This is the first measurement of it: the pod is in it.
    put(cluster, now=10.0, n3=7.0)
    assert (value(cluster, "n3"), unseen(cluster, "n3")) == (7.0, 0)


def test_values_stay_when_the_cluster_outgrows_its_first_rows() -> None:
    names = [f"n{number}" for number in range(70)]
    cluster = cluster_of(*names[:60])
    put(cluster, now=0.0, **{name: float(place) for place, name in enumerate(names[:60])})
    cluster.add_pod(pod("a").requests(cpu="1").on("n5"))
    for name in names[60:]:
        cluster.add_node(node(name).allocatable(cpu="8"))
    put(cluster, now=1.0, n69=69.0)
    assert [value(cluster, name) for name in ("n0", "n59", "n69")] == [0.0, 59.0, 69.0]
    assert np.isnan(value(cluster, "n65"))
    assert (unseen(cluster, "n5"), unseen(cluster, "n65")) == (1000, 0)
    assert cluster.measures.value(MEAN, cluster.all_nodes()).shape == (70,)


def test_only_changed_rows_are_reported_to_the_journal() -> None:
    cluster = cluster_of("n1", "n2", "n3")
    put(cluster, now=0.0, n1=5.0, n2=6.0)
    position = cluster.journal.position
    assert put(cluster, now=1.0, n1=5.0, n2=7.0, n3=float("nan")) == 1
    assert changed(cluster, position) == [1]
    assert put(cluster, now=2.0, n1=5.0, n2=7.0) == 0
    assert changed(cluster, position) == [1]


def test_expired_values_are_reported_to_the_journal() -> None:
    cluster = cluster_of("n1", "n2")
    put(cluster, now=0.0, n1=5.0)
    put(cluster, now=200.0, n2=6.0)
    position = cluster.journal.position
    cluster.measures.put({}, now=301.0)
    assert changed(cluster, position) == [0]


def test_pods_that_a_measurement_shows_are_reported_to_the_journal() -> None:
    cluster = cluster_of("n1")
    put(cluster, now=0.0, n1=5.0)
    cluster.add_pod(pod("a").requests(cpu="1").on("n1"))
    put(cluster, now=30.0, n1=5.0)
    position = cluster.journal.position
    put(cluster, now=60.0, n1=5.0)
    assert unseen(cluster) == 0
    assert changed(cluster, position) == [0]


def read_label(there: Node) -> Mapping[str, Measured]:
    text = there.metadata.annotations.get("load")
    return {MEAN: (float(text) if text else UNTIMED, UNTIMED)}


def test_known_nodes_and_new_ones_are_read() -> None:
    cluster = ClusterState()
    cluster.add_node(node("n1").annotations(load="5"))
    position = cluster.journal.position
    cluster.measures.read_nodes(read_label)
    assert value(cluster, "n1") == 5.0
    assert changed(cluster, position) == [0]
    cluster.add_node(node("n2").annotations(load="6"))
    assert value(cluster, "n2") == 6.0


def test_a_change_of_annotations_without_readers_is_not_reported() -> None:
    cluster = ClusterState()
    cluster.add_node(node("n1").annotations(load="5"))
    cluster.measures.read_nodes(read_label)
    position = cluster.journal.position
    cluster.add_node(node("n1").annotations(load="5", other="x"))
    assert changed(cluster, position) == []
    cluster.add_node(node("n1").annotations(load="6", other="x"))
    assert changed(cluster, position) == [0]
