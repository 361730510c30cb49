"""Room on nodes: the same nodes, reasons, and scores as in kube-scheduler."""

from fractions import Fraction

import hypothesis.strategies as st
import pytest
from hypothesis import given
from tests.plugins.one_plugin import cluster_of, rejections, scores, wakes

from longshore.api import Node, Pod
from longshore.cluster import PodInfo
from longshore.config import ResourceSpec, ScoringStrategy, ShapePoint
from longshore.framework import Action, Code, CycleState, Resource, Status
from longshore.plugins import NodeResourcesFit
from longshore.plugins.noderesources.fit import REASON_INSUFFICIENT, REASON_TOO_MANY_PODS
from longshore.testing import NodeBuilder, PodBuilder, node, pod
from longshore.testing.strategies import nodes, pods

FIT = NodeResourcesFit()
GPU = "example.com/gpu"
N1 = node("n1").allocatable(cpu="4", memory="1000")
CPU_AND_MEMORY = (ResourceSpec("cpu"), ResourceSpec("memory"))
INSUFFICIENT_CPU = REASON_INSUFFICIENT.format(resource="cpu")


def refused(incoming: Pod, *objects: Node | Pod, plugin: NodeResourcesFit = FIT) -> Status | None:
    """Why the node n1 rejects the pod; None if it does not."""
    return rejections(plugin, incoming, *objects).get("n1")


def score(incoming: Pod, *objects: Node | Pod, plugin: NodeResourcesFit = FIT) -> int:
    given_scores = scores(plugin, incoming, *objects)
    assert given_scores is not None
    return given_scores["n1"]


def scoring(kind: str, *resources: ResourceSpec, shape: tuple[ShapePoint, ...] = ()) -> NodeResourcesFit:
    strategy = ScoringStrategy(kind, resources or CPU_AND_MEMORY, shape)  # type: ignore[arg-type]
    return NodeResourcesFit(scoring_strategy=strategy)


def test_a_pod_that_fills_the_node_completely_fits() -> None:
    assert refused(pod("a").requests(cpu="3"), N1, pod("b").requests(cpu="1").on("n1")) is None


def test_one_thousandth_of_a_core_too_much_does_not_fit() -> None:
    tenant = pod("b").requests(cpu="1").on("n1")
    assert refused(pod("a").requests(cpu="3001m"), N1, tenant) == Status.unschedulable(INSUFFICIENT_CPU)


def test_a_pod_larger_than_the_node_would_not_fit_even_on_an_empty_one() -> None:
    assert refused(pod("a").requests(cpu="4001m"), N1) == Status.unresolvable(INSUFFICIENT_CPU)


def test_one_resource_beyond_the_node_makes_all_of_it_unresolvable() -> None:
    tenant = pod("b").requests(cpu="4").on("n1")
    answer = refused(pod("a").requests(cpu="1", memory="1001"), N1, tenant)
    assert answer == Status.unresolvable(INSUFFICIENT_CPU, REASON_INSUFFICIENT.format(resource="memory"))


def test_a_node_with_the_maximum_of_pods_takes_no_more_until_one_is_gone() -> None:
    answer = refused(pod("a"), N1.allocatable(pods="1"), pod("b").on("n1"))
    assert answer == Status.unschedulable(REASON_TOO_MANY_PODS)


def test_a_node_without_an_allocatable_number_of_pods_takes_none() -> None:
    # The code is Unschedulable there too, although eviction can never help, as in kube-scheduler.
    assert refused(pod("a"), Node(metadata=N1.metadata)) == Status.unschedulable(REASON_TOO_MANY_PODS)


def test_all_insufficient_resources_are_named_in_a_fixed_order() -> None:
    incoming = pod("a").requests(**{"x.io/z": "1", "x.io/a": "1"}, memory="2000", cpu="5")
    assert refused(incoming, N1.allocatable(pods="0")) == Status.unresolvable(
        "Too many pods",
        "Insufficient cpu",
        "Insufficient memory",
        "Insufficient x.io/a",
        "Insufficient x.io/z",
    )


def test_a_pod_without_requests_fits_on_an_overcommitted_node() -> None:
    assert refused(pod("a").requests(cpu="0"), N1, pod("b").requests(cpu="9").on("n1")) is None


@pytest.mark.parametrize("resource", ["cpu", "memory", GPU])
def test_an_unknown_resource_is_insufficient_everywhere(resource: str) -> None:
    answers = rejections(FIT, pod("a").requests(**{resource: "1"}), node("n1"), node("n2"))
    short = Status.unresolvable(REASON_INSUFFICIENT.format(resource=resource))
    assert answers == {"n1": short, "n2": short}


def test_ignored_resources_and_groups_are_not_checked() -> None:
    by_name = NodeResourcesFit(ignored_resources=[GPU])
    by_group = NodeResourcesFit(ignored_resource_groups=["example.com"])
    wants_gpu, wants_other = pod("a").requests(**{GPU: "1"}), pod("a").requests(**{"x.io/nic": "1"})
    for plugin in (by_name, by_group):
        assert refused(wants_gpu, N1, plugin=plugin) is None
        assert refused(wants_other, N1, plugin=plugin) is not None


def test_native_resources_cannot_be_ignored() -> None:
    ignoring = NodeResourcesFit(ignored_resources=["cpu", "hugepages-2Mi"])
    assert refused(pod("a").requests(cpu="9"), N1, plugin=ignoring) is not None
    assert refused(pod("a").requests(**{"hugepages-2Mi": "2Mi"}), N1, plugin=ignoring) is not None


def test_the_emptier_share_scores_higher() -> None:
    # cpu: 3 of 4 free = 75; memory: 500 of 1000 free = 50
    assert score(pod("a").requests(cpu="1", memory="500"), N1) == 62


def test_a_node_used_beyond_its_capacity_scores_0_for_that_resource() -> None:
    tenant = pod("b").requests(cpu="5", memory="0").on("n1")
    assert score(pod("a").requests(cpu="0", memory="0"), N1, tenant) == 50


def test_a_resource_that_the_node_does_not_have_is_left_out_of_the_score() -> None:
    assert score(pod("a").requests(cpu="1", memory="0"), node("n1").allocatable(cpu="4")) == 75


def test_a_node_without_cpu_and_memory_scores_0() -> None:
    assert score(pod("a").requests(cpu="0", memory="0"), node("n1")) == 0


def test_pods_without_requests_affect_the_score_with_default_amounts() -> None:
    roomy = node("n1").allocatable(cpu="1", memory="2000Mi")
    assert score(pod("a"), roomy) == 90
    assert score(pod("a"), roomy, pod("b").on("n1")) == 80


def test_weights_shift_the_score_towards_a_resource() -> None:
    weighted = scoring("LeastAllocated", ResourceSpec("cpu", 3), ResourceSpec("memory", 1))
    # (3 * 75 + 50) / 4
    assert score(pod("a").requests(cpu="1", memory="500"), N1, plugin=weighted) == 68


def test_with_most_allocated_the_fuller_share_scores_higher_up_to_full() -> None:
    most = scoring("MostAllocated")
    assert score(pod("a").requests(cpu="1", memory="500"), N1, plugin=most) == 37
    assert score(pod("a").requests(cpu="9", memory="500"), N1, plugin=most) == 75


def test_an_extended_resource_counts_if_the_pod_requests_it_and_the_node_has_it() -> None:
    most = scoring("MostAllocated", ResourceSpec("cpu"), ResourceSpec(GPU, 3))
    gpus = N1.allocatable(**{GPU: "4"})
    incoming = pod("a").requests(cpu="1", **{GPU: "2"})
    assert score(incoming, gpus, plugin=most) == (25 + 3 * 50) // 4
    assert score(incoming, N1, plugin=most) == 25
    assert score(pod("a").requests(cpu="1"), gpus, plugin=most) == 25


def test_a_shape_is_linear_between_its_points_and_flat_beyond_them() -> None:
    shape = (ShapePoint(20, 10), ShapePoint(80, 3))
    shaped = scoring("RequestedToCapacityRatio", ResourceSpec("cpu"), shape=shape)
    for milli, expected in [(0, 100), (800, 100), (2000, 65), (2040, 64), (3200, 30), (4000, 30), (9000, 30)]:
        incoming = pod("a").requests(cpu=f"{milli}m")
        assert score(incoming, N1, plugin=shaped) == expected, milli


def test_a_falling_shape_rounds_toward_its_beginning() -> None:
    # 100 - 70 * 1 / 60 = 98.8, and Go cuts the subtrahend: 99
    shape = (ShapePoint(20, 10), ShapePoint(80, 3))
    shaped = scoring("RequestedToCapacityRatio", ResourceSpec("cpu"), shape=shape)
    assert score(pod("a").requests(cpu="840m"), N1, plugin=shaped) == 99


def test_with_a_shape_resources_rated_0_do_not_count_and_halves_round_up() -> None:
    shape = (ShapePoint(0, 0), ShapePoint(100, 10))
    shaped = scoring("RequestedToCapacityRatio", shape=shape)
    assert score(pod("a").requests(cpu="2", memory="0"), N1, plugin=shaped) == 50
    # (50 + 25) / 2 = 37.5
    assert score(pod("a").requests(cpu="2", memory="250"), N1, plugin=shaped) == 38


def test_pod_level_requests_are_not_scored() -> None:
    whole = pod("a").requests(cpu="1", memory="500").pod_requests(cpu="2", memory="1000")
    assert score(whole, N1) == 62


def test_the_end_of_a_pod_that_had_room_wakes_the_pod() -> None:
    gone = Action.DELETE
    assert wakes(FIT, pod("a"), Resource.ASSIGNED_POD, gone, pod("b").on("n1"))
    assert wakes(FIT, pod("a"), Resource.UNSCHEDULED_POD, gone, pod("b").nominated("n1"))
    assert not wakes(FIT, pod("a"), Resource.UNSCHEDULED_POD, gone, pod("b"))


def test_a_pod_that_requests_less_wakes_pods_that_request_the_same_resource() -> None:
    change = (Resource.ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN)
    before, after = pod("b").requests(cpu="2").on("n1"), pod("b").requests(cpu="1").on("n1")
    assert wakes(FIT, pod("a").requests(cpu="1"), *change, before, after)
    assert not wakes(FIT, pod("a").requests(memory="1"), *change, before, after)


def test_a_waiting_pod_that_requests_less_wakes_only_itself() -> None:
    change = (Resource.UNSCHEDULED_POD, Action.UPDATE_POD_SCALE_DOWN)
    before, after = pod("a").requests(cpu="2"), pod("a").requests(cpu="1")
    assert wakes(FIT, after, *change, before, after)
    assert not wakes(FIT, pod("b").requests(cpu="1"), *change, before, after)


def test_a_node_that_would_hold_the_pod_wakes_it_when_new_or_grown() -> None:
    incoming, grown = pod("a").requests(cpu="4"), (Resource.NODE, Action.UPDATE_NODE_ALLOCATABLE)
    small = N1.allocatable(cpu="3")
    assert wakes(FIT, incoming, Resource.NODE, Action.ADD, None, N1)
    assert wakes(FIT, incoming, *grown, small, N1)
    assert wakes(FIT, incoming, *grown, N1, N1.allocatable(pods="220"))
    assert not wakes(FIT, incoming, Resource.NODE, Action.ADD, None, small)
    assert not wakes(FIT, incoming, *grown, N1, N1.allocatable(memory="2000"))
    assert not wakes(FIT, incoming, Resource.NODE, Action.ADD, None, N1.allocatable(pods="0"))


# The same computations, one node at a time in plain Python with exact fractions.


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
    """What the pod needs of a resource, computed for each phase of its life in turn."""
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
def test_filter_equals_a_plain_computation_for_each_node(
    objects: tuple[list[NodeBuilder], list[PodBuilder]], incoming: PodBuilder
) -> None:
    built_nodes, placed = objects
    answers = rejections(FIT, incoming, *built_nodes, *placed)
    for built in built_nodes:
        tenants = [p for p in placed if p.spec.node_name == built.metadata.name]
        allocatable = built.status.allocatable
        expected = set()
        code = Code.UNSCHEDULABLE
        if len(tenants) + 1 > int(allocatable["pods"]):
            expected.add("Too many pods")
        for resource in ("cpu", "memory", GPU):
            request = plain_request(incoming, resource)
            taken = sum(plain_request(tenant, resource) for tenant in tenants)
            capacity = plain_amount(resource, [allocatable.get(resource, "0")])
            if request and request + taken > capacity:
                expected.add(f"Insufficient {resource}")
                if request > capacity:
                    code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        answer = answers.get(built.metadata.name)
        assert (set(answer.reasons) if answer else set()) == expected
        assert answer is None or answer.code is code


@given(clusters(), pods(name="incoming"))
def test_score_equals_a_plain_computation_for_each_node(
    objects: tuple[list[NodeBuilder], list[PodBuilder]], incoming: PodBuilder
) -> None:
    built_nodes, placed = objects
    answers = scores(FIT, incoming, *built_nodes, *placed)
    assert answers is not None
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
        assert answers[built.metadata.name] == (sum(parts) // len(parts) if parts else 0)


@given(clusters(), st.lists(pods(), max_size=8))
def test_pods_placed_where_they_fit_never_use_more_than_the_node_offers(
    objects: tuple[list[NodeBuilder], list[PodBuilder]], incoming: list[PodBuilder]
) -> None:
    built_nodes, _ = objects
    cluster = cluster_of(*built_nodes)
    for number, each in enumerate(incoming):
        info = PodInfo.of(each.uid(f"uid-{number}"))
        short = [rejection.where for rejection in FIT.filter(CycleState(), info, cluster.all_nodes())]
        for row in range(cluster.node_count):
            if not any(where if isinstance(where, bool) else where[row] for where in short):
                cluster.assume(info, cluster.node_name(row))
                break
    assert (cluster.requested <= cluster.allocatable).all()
