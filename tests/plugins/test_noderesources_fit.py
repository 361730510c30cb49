"""Room on nodes: the same nodes, reasons and scores as kube-scheduler gives."""

from fractions import Fraction

import hypothesis.strategies as st
import pytest
from hypothesis import given

from longshore.api import Node, Pod
from longshore.cluster import ClusterState, PodInfo
from longshore.plugins import NodeResourcesFit
from longshore.plugins.noderesources_fit import REASON_INSUFFICIENT, REASON_TOO_MANY_PODS
from longshore.testing import NodeBuilder, PodBuilder, node, pod
from longshore.testing.strategies import nodes, pods

FIT = NodeResourcesFit()
N1 = node("n1").allocatable(cpu="4", memory="1000")


def cluster_of(*objects: Node | Pod) -> ClusterState:
    cluster = ClusterState()
    for obj in objects:
        if isinstance(obj, Node):
            cluster.add_node(obj)
        else:
            cluster.add_pod(obj)
    return cluster


def reasons(incoming: Pod, *objects: Node | Pod) -> list[str]:
    """Why the first node does not take the pod; nothing when it does."""
    verdict = FIT.filter(PodInfo.of(incoming), cluster_of(*objects))
    found = [reason for reason, rows in verdict.reasons.items() if rows[0]]
    assert bool(verdict.feasible[0]) == (not found)
    return found


def score(incoming: Pod, *objects: Node | Pod) -> int:
    return int(FIT.score(PodInfo.of(incoming), cluster_of(*objects))[0])


def test_a_pod_that_fills_the_node_to_the_brim_fits() -> None:
    assert reasons(pod("a").requests(cpu="3"), N1, pod("b").requests(cpu="1").on("n1")) == []


def test_one_thousandth_of_a_core_too_much_does_not_fit() -> None:
    insufficient_cpu = [REASON_INSUFFICIENT.format(resource="cpu")]
    assert (
        reasons(pod("a").requests(cpu="3001m"), N1, pod("b").requests(cpu="1").on("n1")) == insufficient_cpu
    )


def test_a_full_node_takes_no_pod_however_small() -> None:
    assert reasons(pod("a"), N1.allocatable(pods="1"), pod("b").on("n1")) == [REASON_TOO_MANY_PODS]


def test_a_node_that_does_not_say_how_many_pods_it_takes_takes_none() -> None:
    assert reasons(pod("a"), Node(metadata=N1.metadata)) == [REASON_TOO_MANY_PODS]


def test_everything_that_is_short_is_named() -> None:
    incoming = pod("a").requests(cpu="5", memory="2000", **{"ephemeral-storage": "1", "example.com/gpu": "1"})
    assert sorted(reasons(incoming, N1.allocatable(pods="0"))) == [
        "Insufficient cpu",
        "Insufficient ephemeral-storage",
        "Insufficient example.com/gpu",
        "Insufficient memory",
        "Too many pods",
    ]


def test_a_pod_that_asks_for_nothing_fits_on_an_overcommitted_node() -> None:
    assert reasons(pod("a").requests(cpu="0"), N1, pod("b").requests(cpu="9").on("n1")) == []


def test_the_emptier_share_scores_higher() -> None:
    # cpu: 3 of 4 free = 75; memory: 500 of 1000 free = 50
    assert score(pod("a").requests(cpu="1", memory="500"), N1) == 62


def test_a_node_used_beyond_its_room_scores_nothing_for_that_resource() -> None:
    assert (
        score(pod("a").requests(cpu="0", memory="0"), N1, pod("b").requests(cpu="5", memory="0").on("n1"))
        == 50
    )


def test_a_resource_that_the_node_does_not_have_is_left_out_of_the_score() -> None:
    assert score(pod("a").requests(cpu="1", memory="0"), node("n1").allocatable(cpu="4")) == 75


def test_a_node_without_cpu_and_memory_scores_nothing() -> None:
    assert score(pod("a").requests(cpu="0", memory="0"), node("n1")) == 0


def test_pods_without_requests_weigh_on_the_score_though_they_ask_for_nothing() -> None:
    roomy = node("n1").allocatable(cpu="1", memory="2000Mi")
    assert score(pod("a"), roomy) == 90
    assert score(pod("a"), roomy, pod("b").on("n1")) == 80


# The same questions, answered one node at a time in plain Python with exact fractions.


def plain_amount(resource: str, texts: list[str]) -> int:
    scale: dict[str, int | Fraction] = {
        "Mi": 2**20,
        "Gi": 2**30,
        "M": 10**6,
        "G": 10**9,
        "m": Fraction(1, 1000),
        "": 1,
    }
    total = Fraction(0)
    for text in texts:
        number = text.rstrip("MGim")
        total += Fraction(number) * scale[text[len(number) :]]
    total *= 1000 if resource == "cpu" else 1
    return -(-total.numerator // total.denominator)


def plain_request(pod_: Pod, resource: str, *, default: str | None = None, whole: bool = True) -> int:
    """What the pod needs of a resource: looks at every moment of its life one after the other."""
    spec = pod_.spec
    missing = [] if default is None else [default]

    def of(container_requests: dict[str, str]) -> list[str]:
        return [container_requests[resource]] if resource in container_requests else missing

    moments: list[list[str]] = []
    sidecars: list[str] = []
    for container in spec.init_containers:
        moments.append(sidecars + of(container.resources.requests))
        if container.restart_policy == "Always":
            sidecars = moments[-1]
    moments.append(sidecars + [text for c in spec.containers for text in of(c.resources.requests)])
    overhead = [spec.overhead[resource]] if resource in spec.overhead else []
    if whole and spec.resources is not None and resource in spec.resources.requests:
        moments = [[spec.resources.requests[resource]]]
    return max(plain_amount(resource, moment + overhead) for moment in moments)


DEFAULTS = {"cpu": "100m", "memory": "200Mi"}


def plain_nonzero(pod_: Pod, resource: str, *, placed: bool) -> int:
    asks_as_a_whole = pod_.spec.resources is not None and bool(pod_.spec.resources.requests)
    if not placed or not asks_as_a_whole:
        return plain_request(pod_, resource, default=DEFAULTS[resource], whole=False)
    named = any(
        resource in requests
        for requests in [
            pod_.spec.overhead,
            pod_.spec.resources.requests if pod_.spec.resources else {},
            *(c.resources.requests for c in (*pod_.spec.containers, *pod_.spec.init_containers)),
        ]
    )
    return plain_request(pod_, resource, default=None if named else DEFAULTS[resource])


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[NodeBuilder], list[PodBuilder]]:
    placed = [
        draw(pods(name=f"p{i}")).on(draw(st.sampled_from(["n1", "n2"])))
        for i in range(draw(st.integers(0, 5)))
    ]
    return [draw(nodes(name="n1")), draw(nodes(name="n2"))], placed


@given(clusters(), pods(name="incoming"))
def test_filter_equals_a_plain_look_at_each_node(
    objects: tuple[list[NodeBuilder], list[PodBuilder]], incoming: PodBuilder
) -> None:
    built_nodes, placed = objects
    cluster = cluster_of(*built_nodes, *placed)
    verdict = FIT.filter(PodInfo.of(incoming), cluster)
    for built in built_nodes:
        tenants = [p for p in placed if p.spec.node_name == built.metadata.name]
        allocatable = built.status.allocatable
        expected = set()
        if len(tenants) + 1 > int(allocatable["pods"]):
            expected.add("Too many pods")
        for resource in ("cpu", "memory", "example.com/gpu"):
            request = plain_request(incoming, resource)
            taken = sum(plain_request(tenant, resource) for tenant in tenants)
            if request and request + taken > plain_amount(resource, [allocatable.get(resource, "0")]):
                expected.add(f"Insufficient {resource}")
        row = cluster.row(built.metadata.name)
        assert {reason for reason, rows in verdict.reasons.items() if rows[row]} == expected
        assert verdict.feasible[row] == (not expected)


@given(clusters(), pods(name="incoming"))
def test_score_equals_a_plain_look_at_each_node(
    objects: tuple[list[NodeBuilder], list[PodBuilder]], incoming: PodBuilder
) -> None:
    built_nodes, placed = objects
    cluster = cluster_of(*built_nodes, *placed)
    scores = FIT.score(PodInfo.of(incoming), cluster)
    for built in built_nodes:
        parts = []
        for resource in ("cpu", "memory"):
            capacity = plain_amount(resource, [built.status.allocatable[resource]])
            use = plain_nonzero(incoming, resource, placed=False)
            for tenant in placed:
                if tenant.spec.node_name == built.metadata.name:
                    use += plain_nonzero(tenant, resource, placed=True)
            if capacity:
                parts.append((capacity - use) * 100 // capacity if use <= capacity else 0)
        assert scores[cluster.row(built.metadata.name)] == (sum(parts) // len(parts) if parts else 0)


@pytest.mark.parametrize("resource", ["cpu", "memory", "example.com/gpu"])
def test_a_resource_that_nobody_knows_is_short_everywhere(resource: str) -> None:
    verdict = FIT.filter(PodInfo.of(pod("a").requests(**{resource: "1"})), cluster_of(node("n1"), node("n2")))
    assert verdict.reasons[f"Insufficient {resource}"].tolist() == [True, True]
