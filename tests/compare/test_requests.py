"""The requests of pods, which both schedulers count exactly."""

import pytest
from tests.compare.agreement import agree
from tests.compare.two_schedulers import Arena

from longshore.testing import NodeBuilder, node, pod


def sized(name: str, cpu: str = "4", memory: str = "8Gi") -> NodeBuilder:
    return node(name).allocatable(cpu=cpu, memory=memory)


def test_reasons_of_a_pending_pod_are_counted_and_sorted(arena: Arena) -> None:
    arena.become(sized("n1"), sized("n2"), sized("n3", cpu="8", memory="1Gi"))
    message = agree(arena, pod("big").requests(cpu="5", memory="2Gi")).kube.message
    assert message.startswith("0/3 nodes are available: 1 Insufficient memory, 2 Insufficient cpu. ")


def test_no_pod_is_evicted_for_a_pod_that_is_larger_than_every_node(arena: Arena) -> None:
    arena.become(sized("n1"), pod("lesser").requests(cpu="3").on("n1"))
    message = agree(arena, pod("giant").requests(cpu="5").priority(100)).kube.message
    assert message.endswith(
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )


_COUNTED = {
    "two containers": (pod("p").requests(cpu="1500m").container("more", cpu="500m"), 2000),
    "an init container that is larger": (pod("p").requests(cpu="1").init_container("i", cpu="2"), 2000),
    "a sidecar beside the main one": (pod("p").requests(cpu="1500m").sidecar("s", cpu="500m"), 2000),
    "an init container after a sidecar": (
        pod("p").requests(cpu="1").sidecar("s", cpu="500m").init_container("i", cpu="1500m"),
        2000,
    ),
    "an init container before a sidecar": (
        pod("p").requests(cpu="1500m").init_container("i", cpu="1900m").sidecar("s", cpu="500m"),
        2000,
    ),
    "the pod as a whole": (pod("p").requests(cpu="500m").pod_requests(cpu="2"), 2000),
}


@pytest.mark.parametrize("kind", _COUNTED)
def test_a_pod_fits_if_its_request_equals_the_free_amount(arena: Arena, kind: str) -> None:
    asked, milli = _COUNTED[kind]
    arena.become(sized("n1", cpu=f"{milli + 1000}m"), pod("there").requests(cpu="1").on("n1"))
    assert agree(arena, asked).kube.node == "n1"
    arena.remove(pod("there"))
    arena.add(pod("there").requests(cpu="1001m").on("n1"))
    arena.settle()
    assert "1 Insufficient cpu." in agree(arena, asked).kube.message


def test_overhead_of_a_runtime_class_counts(arena: Arena) -> None:
    arena.become(sized("n1", cpu="2"))
    sandbox = {"metadata": {"name": "sandbox"}, "handler": "x", "overhead": {"podFixed": {"cpu": "250m"}}}
    arena.api.request("POST", "/apis/node.k8s.io/v1/runtimeclasses", sandbox)
    classed = {"runtimeClassName": "sandbox"}
    assert agree(arena, pod("p").requests(cpu="1750m"), **classed).kube.node == "n1"
    assert "Insufficient cpu" in agree(arena, pod("p").requests(cpu="1751m"), **classed).kube.message


def resized(arena: Arena, *, before: str, after: str, said: str = "") -> None:
    """Create a pod on n1 whose request changes after it was allocated."""
    there = pod("there").requests(cpu=before).on("n1").holding("main", {"cpu": before})
    if said:
        there = there.condition("PodResizePending", "True", reason=said)
    arena.become(sized("n1", cpu="8"), there)
    asks = {"name": "main", "resources": {"requests": {"cpu": after}}}
    arena.api.patch(there, {"spec": {"containers": [asks]}}, subresource="resize", patch="strategic-merge")
    arena.settle()


def test_a_resize_to_less_counts_in_full_until_it_is_done(arena: Arena) -> None:
    resized(arena, before="3", after="1")
    assert agree(arena, pod("fits").requests(cpu="5")).kube.node == "n1"
    assert "Insufficient cpu" in agree(arena, pod("p").requests(cpu="5001m")).kube.message


def test_an_infeasible_resize_to_more_does_not_count(arena: Arena) -> None:
    resized(arena, before="3", after="5", said="Infeasible")
    assert agree(arena, pod("fits").requests(cpu="5")).kube.node == "n1"
    assert "Insufficient cpu" in agree(arena, pod("p").requests(cpu="5001m")).kube.message


def test_a_deferred_resize_to_more_counts(arena: Arena) -> None:
    resized(arena, before="3", after="5", said="Deferred")
    assert agree(arena, pod("fits").requests(cpu="3")).kube.node == "n1"
    assert "Insufficient cpu" in agree(arena, pod("p").requests(cpu="3001m")).kube.message
