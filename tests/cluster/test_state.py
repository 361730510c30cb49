"""The columns follow the pods and nodes that the watch reports, in any order."""

import pytest

from longshore.api import Node, Pod
from longshore.cluster import CPU, MEMORY, PODS, ClusterState, PodInfo
from longshore.testing import node, pod

N1 = node("n1").allocatable(cpu="4", memory="1Ki")
WEB = pod("web").requests(cpu="1", memory="100")


def state(*objects: Node | Pod) -> ClusterState:
    built = ClusterState()
    for obj in objects:
        if isinstance(obj, Node):
            built.add_node(obj)
        else:
            built.add_pod(obj)
    return built


def used(cluster: ClusterState, name: str) -> tuple[int, int, int] | None:
    """The pods, cpu, and memory requested in the row with this name."""
    row = cluster.row(name)
    if row is None:
        return None
    requested = cluster.requested[:, row]
    return int(requested[PODS]), int(requested[CPU]), int(requested[MEMORY])


def offered(cluster: ClusterState, name: str, resource: str) -> int:
    row, column = cluster.row(name), cluster.column(resource)
    assert row is not None
    assert column is not None
    return int(cluster.allocatable[column, row])


def test_a_bound_pod_takes_up_room_until_it_is_removed() -> None:
    cluster = state(N1, WEB.on("n1"))
    assert used(cluster, "n1") == (1, 1000, 100)
    cluster.remove_pod(WEB.on("n1"))
    assert used(cluster, "n1") == (0, 0, 0)


def test_a_pod_reported_twice_counts_once() -> None:
    assert used(state(N1, WEB.on("n1"), WEB.on("n1")), "n1") == (1, 1000, 100)


def test_removing_an_unknown_pod_changes_nothing() -> None:
    cluster = state(N1, WEB.on("n1"))
    cluster.remove_pod(pod("other").on("n1"))
    cluster.forget(pod("other"))
    cluster.remove_node("other")
    assert used(cluster, "n1") == (1, 1000, 100)


def test_a_resized_pod_counts_with_its_new_requests() -> None:
    cluster = state(N1, WEB.on("n1"))
    cluster.add_pod(WEB.on("n1").requests(cpu="2", memory="50"))
    assert used(cluster, "n1") == (1, 2000, 50)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_holds_no_room(phase: str) -> None:
    cluster = state(N1, WEB.on("n1"))
    cluster.add_pod(WEB.on("n1").phase(phase))
    assert used(cluster, "n1") == (0, 0, 0)


def test_an_assumed_pod_takes_up_room_until_it_is_forgotten() -> None:
    cluster = state(N1)
    cluster.assume(PodInfo.of(WEB), "n1")
    assert used(cluster, "n1") == (1, 1000, 100)
    assert cluster.is_assumed(WEB)
    cluster.forget(WEB)
    assert used(cluster, "n1") == (0, 0, 0)


def test_a_confirmed_pod_counts_once_and_can_no_longer_be_forgotten() -> None:
    cluster = state(N1)
    cluster.assume(PodInfo.of(WEB), "n1")
    cluster.add_pod(WEB.on("n1"))
    cluster.forget(WEB)
    assert used(cluster, "n1") == (1, 1000, 100)
    assert not cluster.is_assumed(WEB)


def test_a_pod_confirmed_on_another_node_than_assumed_moves_there() -> None:
    cluster = state(N1, node("n2"))
    cluster.assume(PodInfo.of(WEB), "n1")
    cluster.add_pod(WEB.on("n2"))
    assert used(cluster, "n1") == (0, 0, 0)
    assert used(cluster, "n2") == (1, 1000, 100)


def test_a_later_pod_of_the_same_name_replaces_the_pod() -> None:
    cluster = state(N1, WEB.on("n1"), WEB.uid("second").on("n1").requests(cpu="2"))
    assert used(cluster, "n1") == (1, 2000, 0)


def test_the_late_deletion_of_a_pod_does_not_affect_a_later_one_of_its_name() -> None:
    cluster = state(N1, WEB.uid("second").on("n1"))
    cluster.remove_pod(WEB.on("n1"))
    assert used(cluster, "n1") == (1, 1000, 100)


def test_a_pod_that_exists_removes_an_earlier_one_of_its_name() -> None:
    cluster = state(N1, WEB.on("n1"))
    cluster.remove_predecessor(WEB)
    assert used(cluster, "n1") == (1, 1000, 100)
    cluster.remove_predecessor(WEB.uid("second"))
    assert used(cluster, "n1") == (0, 0, 0)


def test_pods_on_a_node_that_is_not_known_yet_count_once_it_appears() -> None:
    cluster = state(WEB.on("n1"))
    assert cluster.node_count == 0
    assert not cluster.known.any()
    cluster.add_node(N1)
    assert cluster.node_count == 1
    assert used(cluster, "n1") == (1, 1000, 100)


def test_a_node_deleted_while_pods_remain_keeps_their_room_until_it_comes_back() -> None:
    cluster = state(N1, WEB.on("n1"))
    cluster.remove_node("n1")
    assert cluster.node_count == 0
    assert not cluster.known.any()
    assert used(cluster, "n1") == (1, 1000, 100)
    assert offered(cluster, "n1", "cpu") == 0
    cluster.add_node(N1)
    assert used(cluster, "n1") == (1, 1000, 100)
    assert offered(cluster, "n1", "cpu") == 4000


def test_a_row_is_freed_when_neither_node_nor_pods_are_left() -> None:
    cluster = state(N1, WEB.on("n1"))
    cluster.remove_node("n1")
    cluster.remove_pod(WEB)
    assert cluster.row("n1") is None


def test_reused_rows_start_empty() -> None:
    cluster = state(N1.allocatable(**{"example.com/gpu": "8"}), WEB.on("n1"))
    for _ in range(100):
        cluster.remove_pod(WEB)
        cluster.remove_node("n1")
        cluster.add_node(node("n2").allocatable(cpu="1"))
        assert used(cluster, "n2") == (0, 0, 0)
        assert offered(cluster, "n2", "example.com/gpu") == 0
        cluster.remove_node("n2")
        cluster.add_node(N1)
        cluster.add_pod(WEB.on("n1"))
    assert len(cluster.known) == 1


def test_growing_past_the_first_rows_and_columns_keeps_the_content() -> None:
    cluster = ClusterState()
    for i in range(300):
        cluster.add_node(node(f"n{i}").allocatable(cpu=str(i), **{f"example.com/r{i % 40}": str(i)}))
        cluster.add_pod(pod(f"p{i}").requests(memory=str(i), **{f"example.com/r{i % 40}": "1"}).on(f"n{i}"))
    for i in range(300):
        assert used(cluster, f"n{i}") == (1, 0, i)
        assert offered(cluster, f"n{i}", "cpu") == 1000 * i
        assert offered(cluster, f"n{i}", f"example.com/r{i % 40}") == i
        assert offered(cluster, f"n{i}", f"example.com/r{(i + 1) % 40}") == 0


def test_a_node_that_no_longer_offers_a_resource_offers_none_of_it() -> None:
    cluster = state(node("n1").allocatable(**{"example.com/gpu": "8"}), node("n1").allocatable(cpu="1"))
    assert offered(cluster, "n1", "example.com/gpu") == 0


@pytest.mark.parametrize("text", ["many", "", "-4"])
def test_an_invalid_allocatable_quantity_offers_nothing(text: str) -> None:
    cluster = state(N1.allocatable(cpu=text))
    assert offered(cluster, "n1", "cpu") == 0
    assert offered(cluster, "n1", "memory") == 1024


def test_a_bound_pod_with_an_invalid_quantity_counts_with_its_other_requests() -> None:
    cluster = state(N1, WEB.requests(cpu="oops", memory="100").on("n1"))
    assert used(cluster, "n1") == (1, 0, 100)


def test_absurd_amounts_neither_overflow_nor_fit() -> None:
    cluster = state(
        node("n1").allocatable(memory="1000E"),
        *(pod(f"p{i}").requests(memory="8E").on("n1") for i in range(200)),
    )
    (_, _, memory) = used(cluster, "n1") or (0, 0, 0)
    assert memory == 200 * 2**53
    assert offered(cluster, "n1", "memory") < 2**53


def test_the_rank_of_names_follows_every_change_of_nodes() -> None:
    cluster = state(node("b"), node("c"), node("a"))
    by_rank = sorted(("a", "b", "c"), key=lambda name: int(cluster.name_rank[cluster.row(name) or 0]))
    assert by_rank == ["a", "b", "c"]
    cluster.remove_node("b")
    cluster.add_node(node("z"))
    by_rank = sorted(("z", "c", "a"), key=lambda name: int(cluster.name_rank[cluster.row(name) or 0]))
    assert by_rank == ["a", "c", "z"]
