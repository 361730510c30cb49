"""What a pod asks for, counted as kube-scheduler counts it."""

import pytest

from longshore.cluster import PodInfo
from longshore.testing import pod

MI = 2**20


def test_containers_add_up() -> None:
    info = PodInfo.of(pod("a").requests(cpu="500m", memory="1Mi").container("b", cpu="0.25", memory="2Mi"))
    assert info.requests == {"pods": 1, "cpu": 750, "memory": 3 * MI}


def test_a_pod_without_requests_still_takes_the_place_of_a_pod() -> None:
    assert PodInfo.of(pod("a")).requests == {"pods": 1}


def test_init_containers_run_one_at_a_time_so_the_largest_counts() -> None:
    info = PodInfo.of(pod("a").requests(cpu="1").init_container("x", cpu="3").init_container("y", cpu="2"))
    assert info.requests["cpu"] == 3000


def test_init_containers_smaller_than_the_containers_cost_nothing() -> None:
    assert PodInfo.of(pod("a").requests(cpu="1").init_container("x", cpu="900m")).requests["cpu"] == 1000


def test_sidecars_count_beside_the_containers() -> None:
    assert PodInfo.of(pod("a").requests(cpu="1").sidecar("log", cpu="200m")).requests["cpu"] == 1200


def test_an_init_container_runs_beside_the_sidecars_started_before_it_only() -> None:
    before = pod("a").requests(cpu="100m").sidecar("log", cpu="500m").init_container("x", cpu="2")
    after = pod("a").requests(cpu="100m").init_container("x", cpu="2").sidecar("log", cpu="500m")
    assert PodInfo.of(before).requests["cpu"] == 2500
    assert PodInfo.of(after).requests["cpu"] == 2000


def test_each_resource_has_its_own_largest_moment() -> None:
    info = PodInfo.of(pod("a").requests(cpu="2", memory="1Mi").init_container("x", cpu="1", memory="5Mi"))
    assert (info.requests["cpu"], info.requests["memory"]) == (2000, 5 * MI)


def test_overhead_comes_on_top() -> None:
    info = PodInfo.of(pod("a").requests(cpu="1").overhead(cpu="250m", memory="1Mi"))
    assert info.requests == {"pods": 1, "cpu": 1250, "memory": MI}


def test_requests_of_the_whole_pod_replace_those_of_its_containers() -> None:
    info = PodInfo.of(pod("a").requests(cpu="1", memory="1Mi").pod_requests(cpu="3").overhead(cpu="100m"))
    assert info.requests == {"pods": 1, "cpu": 3100, "memory": MI}


def test_requests_of_the_whole_pod_do_not_cover_devices() -> None:
    info = PodInfo.of(pod("a").requests(**{"example.com/gpu": "1"}).pod_requests(**{"example.com/gpu": "4"}))
    assert info.requests["example.com/gpu"] == 1


def test_fractions_add_up_before_they_are_rounded() -> None:
    info = PodInfo.of(pod("a").requests(memory="0.5").container("b", memory="0.5"))
    assert info.requests["memory"] == 1


def test_names_that_take_no_room_are_passed_over() -> None:
    requests = {"storage": "1Gi", "pods": "7", "hugepages-2Mi": "4Mi"}
    assert PodInfo.of(pod("a").requests(**requests)).requests == {"pods": 1, "hugepages-2Mi": 4 * MI}


def test_a_container_without_requests_is_taken_to_use_a_little() -> None:
    info = PodInfo.of(pod("a").requests(cpu="1").container("b"))
    assert info.nonzero == (1100, 400 * MI)


def test_a_request_of_zero_is_a_request() -> None:
    assert PodInfo.of(pod("a").requests(cpu="0", memory="0")).nonzero == (0, 0)


def test_a_pod_with_requests_as_a_whole_uses_these_once_it_is_placed_but_not_while_it_is_scored() -> None:
    info = PodInfo.of(pod("a").pod_requests(cpu="2"))
    assert info.nonzero == (2000, 200 * MI)
    assert info.nonzero_incoming == (100, 200 * MI)


@pytest.mark.parametrize("text", ["abc", "", "1 Gi", "-1"])
def test_a_quantity_that_cannot_be_read_is_named_with_its_place(text: str) -> None:
    info = PodInfo.of(pod("a").requests(cpu=text, memory="1Mi"))
    assert info.problem.startswith(f"spec.containers[main].resources.requests.cpu: {text!r} is ")
    assert info.requests == {"pods": 1, "memory": MI}


def test_bad_quantities_are_found_wherever_they_are() -> None:
    bad = pod("a").init_container("i", cpu="x").overhead(memory="y").pod_requests(cpu="z")
    assert [problem.split(":")[0] for problem in PodInfo.of(bad).problem.split("; ") if ":" in problem] == [
        "spec.initContainers[i].resources.requests.cpu",
        "spec.overhead.memory",
        "spec.resources.requests.cpu",
    ]


def test_amounts_beyond_any_machine_do_not_overflow() -> None:
    info = PodInfo.of(pod("a").requests(memory="7E").container("b", memory="7E"))
    assert info.requests["memory"] == 2**53
