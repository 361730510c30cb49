"""The requests of a pod, counted as kube-scheduler counts them."""

import msgspec
import pytest

from longshore.api import ContainerStatus, Pod, ResourceRequirements
from longshore.cluster import PodInfo
from longshore.testing import pod

MI = 2**20


def test_the_requests_of_containers_add_up() -> None:
    info = PodInfo.of(pod("a").requests(cpu="500m", memory="1Mi").container("b", cpu="0.25", memory="2Mi"))
    assert info.requests == {"pods": 1, "cpu": 750, "memory": 3 * MI}


def test_a_pod_without_requests_still_takes_the_place_of_a_pod() -> None:
    assert PodInfo.of(pod("a")).requests == {"pods": 1}


def test_init_containers_run_one_at_a_time_so_the_largest_counts() -> None:
    info = PodInfo.of(pod("a").requests(cpu="1").init_container("x", cpu="3").init_container("y", cpu="2"))
    assert info.requests["cpu"] == 3000


def test_init_containers_smaller_than_the_containers_cost_nothing() -> None:
    assert PodInfo.of(pod("a").requests(cpu="1").init_container("x", cpu="900m")).requests["cpu"] == 1000


def test_sidecars_count_in_addition_to_the_containers() -> None:
    assert PodInfo.of(pod("a").requests(cpu="1").sidecar("log", cpu="200m")).requests["cpu"] == 1200


def test_an_init_container_runs_only_with_the_sidecars_started_before_it() -> None:
    before = pod("a").requests(cpu="100m").sidecar("log", cpu="500m").init_container("x", cpu="2")
    after = pod("a").requests(cpu="100m").init_container("x", cpu="2").sidecar("log", cpu="500m")
    assert PodInfo.of(before).requests["cpu"] == 2500
    assert PodInfo.of(after).requests["cpu"] == 2000


def test_each_resource_has_its_own_peak() -> None:
    info = PodInfo.of(pod("a").requests(cpu="2", memory="1Mi").init_container("x", cpu="1", memory="5Mi"))
    assert (info.requests["cpu"], info.requests["memory"]) == (2000, 5 * MI)


def test_overhead_is_added_to_the_requests() -> None:
    info = PodInfo.of(pod("a").requests(cpu="1").overhead(cpu="250m", memory="1Mi"))
    assert info.requests == {"pods": 1, "cpu": 1250, "memory": MI}


def test_pod_level_requests_replace_those_of_the_containers() -> None:
    info = PodInfo.of(pod("a").requests(cpu="1", memory="1Mi").pod_requests(cpu="3").overhead(cpu="100m"))
    assert info.requests == {"pods": 1, "cpu": 3100, "memory": MI}


def test_pod_level_requests_do_not_cover_devices() -> None:
    info = PodInfo.of(pod("a").requests(**{"example.com/gpu": "1"}).pod_requests(**{"example.com/gpu": "4"}))
    assert info.requests["example.com/gpu"] == 1


def test_fractions_add_up_before_they_are_rounded() -> None:
    info = PodInfo.of(pod("a").requests(memory="0.5").container("b", memory="0.5"))
    assert info.requests["memory"] == 1


def test_names_that_are_not_resources_are_ignored() -> None:
    requests = {"storage": "1Gi", "pods": "7", "hugepages-2Mi": "4Mi"}
    assert PodInfo.of(pod("a").requests(**requests)).requests == {"pods": 1, "hugepages-2Mi": 4 * MI}


def test_a_container_without_requests_is_assumed_to_use_a_little() -> None:
    info = PodInfo.of(pod("a").requests(cpu="1").container("b"))
    assert info.nonzero == (1100, 400 * MI)


def test_a_request_of_zero_is_a_request() -> None:
    assert PodInfo.of(pod("a").requests(cpu="0", memory="0")).nonzero == (0, 0)


def test_pod_level_requests_count_for_scoring_only_once_the_pod_is_placed() -> None:
    info = PodInfo.of(pod("a").pod_requests(cpu="2"))
    assert info.nonzero == (2000, 200 * MI)
    assert info.nonzero_incoming == (100, 200 * MI)


@pytest.mark.parametrize("text", ["abc", "", "1 Gi", "-1"])
def test_an_invalid_quantity_is_named_with_its_field(text: str) -> None:
    info = PodInfo.of(pod("a").requests(cpu=text, memory="1Mi"))
    assert info.problem.startswith(f"spec.containers[main].resources.requests.cpu: {text!r} is ")
    assert info.requests == {"pods": 1, "memory": MI}


def test_invalid_quantities_are_found_in_all_fields() -> None:
    bad = pod("a").init_container("i", cpu="x").overhead(memory="y").pod_requests(cpu="z")
    assert [problem.split(":")[0] for problem in PodInfo.of(bad).problem.split("; ") if ":" in problem] == [
        "spec.initContainers[i].resources.requests.cpu",
        "spec.overhead.memory",
        "spec.resources.requests.cpu",
    ]


def test_amounts_beyond_any_machine_do_not_overflow() -> None:
    info = PodInfo.of(pod("a").requests(memory="7E").container("b", memory="7E"))
    assert info.requests["memory"] == 2**53


def test_a_pod_that_was_allocated_its_request_counts_once() -> None:
    info = PodInfo.of(pod("a").requests(cpu="1").holding("main", {"cpu": "1"}))
    assert info.requests["cpu"] == 1000


def test_a_resize_upwards_counts_before_the_node_has_allocated_it() -> None:
    deferred = pod("a").requests(cpu="3").holding("main", {"cpu": "1"})
    deferred = deferred.condition("PodResizePending", "True", reason="Deferred")
    assert PodInfo.of(deferred).requests["cpu"] == 3000


def test_a_resize_downwards_counts_only_when_it_is_in_effect() -> None:
    asked = pod("a").requests(cpu="1", memory="1Mi")
    started = asked.holding("main", {"cpu": "2", "memory": "2Mi"})
    granted = asked.holding("main", {"cpu": "1", "memory": "1Mi"}, actual={"cpu": "1", "memory": "2Mi"})
    done = asked.holding("main", {"cpu": "1", "memory": "1Mi"})
    assert [PodInfo.of(p).requests["memory"] for p in (started, granted, done)] == [2 * MI, 2 * MI, MI]
    assert [PodInfo.of(p).requests["cpu"] for p in (started, granted, done)] == [2000, 1000, 1000]


def test_an_infeasible_resize_does_not_count() -> None:
    refused = pod("a").requests(cpu="30").holding("main", {"cpu": "1"}, actual={"cpu": "2"})
    refused = refused.condition("PodResizePending", "True", reason="Infeasible")
    assert PodInfo.of(refused).requests["cpu"] == 2000
    assert PodInfo.of(refused).nonzero == (2000, 200 * MI)


def test_a_container_without_a_status_counts_with_its_request() -> None:
    partly = pod("a").requests(cpu="1").container("b", cpu="2").holding("main", {"cpu": "4"})
    assert PodInfo.of(partly).requests["cpu"] == 6000


def test_a_status_that_names_no_resources_changes_nothing() -> None:
    plain = pod("a").requests(cpu="1")
    status = msgspec.structs.replace(plain.status, container_statuses=(ContainerStatus("main"),))
    assert PodInfo.of(msgspec.structs.replace(plain, status=status)).requests["cpu"] == 1000


def test_sidecars_are_resized_and_other_init_containers_are_not() -> None:
    both = pod("a").sidecar("log", cpu="1").init_container("setup", cpu="1")
    both = both.holding("log", {"cpu": "3"}).holding("setup", {"cpu": "9"})
    assert PodInfo.of(both).requests["cpu"] == 4000


def test_pod_level_requests_are_resized_in_the_same_way() -> None:
    def whole(reason: str) -> Pod:
        asked = (
            pod("a").pod_requests(cpu="4", memory="1Mi").condition("PodResizePending", "True", reason=reason)
        )
        held = msgspec.structs.replace(
            asked.status,
            resources=ResourceRequirements(requests={"cpu": "1"}),
            allocated_resources={"cpu": "2"},
        )
        return msgspec.structs.replace(asked, status=held)

    assert PodInfo.of(whole("Deferred")).requests == {"pods": 1, "cpu": 4000, "memory": MI}
    # As in kube-scheduler, a resource that the status does not name counts as 0.
    assert PodInfo.of(whole("Infeasible")).requests == {"pods": 1, "cpu": 2000}


def test_an_invalid_quantity_in_a_status_is_named() -> None:
    info = PodInfo.of(pod("a").requests(cpu="1").holding("main", {"cpu": "x"}, actual={"cpu": "1"}))
    assert info.problem.startswith("status of container main: allocatedResources.cpu: 'x' is ")
