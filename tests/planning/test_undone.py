"""Planning leaves the cluster and the state of plugins as they were, whatever happens."""

from collections.abc import Iterable
from typing import Any

import pytest
from tests.planning.worlds import World, by_name, never_late, picture, reasons, three

from longshore.cluster import Nodes, PodInfo
from longshore.framework import CycleState, Rejection, Status
from longshore.planning import greedy
from longshore.testing import PodBuilder, pod, pv, pvc, storage_class

HOST = "kubernetes.io/hostname"


def various(count: int = 8) -> list[PodBuilder]:
    """Pods that are counted in every table of the cluster."""
    return [
        pod(f"p{number}")
        .requests(cpu="1", memory="1Gi")
        .labels(app="web")
        .host_port(8000 + number)
        .anti_affinity_to(HOST, preferred=10, app="web")
        .affinity_to(HOST, preferred=1, app="db")
        .priority(number % 2)
        for number in range(count)
    ]


def world(*plugins: Any) -> World:
    old = pod("old").requests(cpu="1").labels(app="web").host_port(80).anti_affinity_to(HOST, app="db")
    nominee = pod("nominee").requests(cpu="1").nominated("n3").gates("wait")
    return World(*three(), old.on("n1"), nominee, plugins=plugins)


@pytest.mark.parametrize("options", [{}, {"objective": "Pack"}, {"all_or_nothing": True}])
@pytest.mark.parametrize("count", [8, 14])
def test_planned_pods_leave_no_trace(options: dict[str, Any], count: int) -> None:
    staged = world()
    before = picture(staged.cluster)
    staged.plan(*various(count), **options)
    assert picture(staged.cluster) == before


def test_a_kept_pod_leaves_no_trace() -> None:
    staged = world()
    before = picture(staged.cluster)
    staged.plan(*various(), kept={each.metadata.uid: "n2" for each in various()})
    assert picture(staged.cluster) == before


def test_the_nomination_of_a_pod_is_restored() -> None:
    nominee = pod("nominee").requests(cpu="1").nominated("n3").gates("wait")
    staged = world()
    before = picture(staged.cluster)
    assert by_name(staged.plan(nominee, *various())).get("nominee") == "n3"
    assert picture(staged.cluster) == before


class Faulty:
    """A plugin whose filter fails for one pod, and lets all others pass."""

    name = "Faulty"

    def __init__(self, error: BaseException, pod: str = "p5") -> None:
        self._error = error
        self._pod = pod

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Iterable[Rejection]:
        if pod.pod.metadata.name == self._pod:
            raise self._error
        return ()


def test_a_plugin_that_raises_fails_its_pod_alone() -> None:
    staged = world(Faulty(KeyError("lost")))
    before = picture(staged.cluster)
    plan = staged.plan(*various())
    assert reasons(plan) == {"p5": "running \"Faulty\" filter plugin: KeyError('lost')"}
    assert len(plan.assignments) == 7
    assert picture(staged.cluster) == before


def test_an_interruption_leaves_no_trace() -> None:
    staged = world(Faulty(KeyboardInterrupt()))
    before = picture(staged.cluster)
    with pytest.raises(KeyboardInterrupt):
        staged.plan(*various())
    assert picture(staged.cluster) == before


def test_a_score_that_raises_is_given_as_the_reason() -> None:
    class Faulty:
        name = "Faulty"

        def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> int:
            raise KeyError("lost")

    plan = greedy.plan(world(Faulty()).problem(pod("a")), clock=never_late, budget=0.0)
    assert reasons(plan) == {"a": "running Score plugin \"Faulty\": KeyError('lost')"}


class Licenses:
    """A plugin that gives out a limited number of licenses and remembers which pods have one."""

    name = "Licenses"

    def __init__(self, number: int) -> None:
        self.number = number
        self.holders: list[str] = []
        self.told: list[str] = []

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        self.told.append(f"reserve {pod.pod.metadata.name}")
        if len(self.holders) >= self.number:
            return Status.unschedulable("no license is left")
        self.holders.append(pod.pod.metadata.name)
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self.told.append(f"unreserve {pod.pod.metadata.name}")
        if pod.pod.metadata.name in self.holders:
            self.holders.remove(pod.pod.metadata.name)


def test_a_plugin_that_reserves_can_reject_pods_and_forgets_the_planned_ones() -> None:
    licenses = Licenses(2)
    staged = world(licenses)
    before = picture(staged.cluster)
    plan = staged.plan(*various(3))
    assert len(plan.assignments) == 2
    assert list(reasons(plan).values()) == ["0/1 nodes are available: 1 no license is left."]
    assert licenses.holders == []
    assert picture(staged.cluster) == before


def test_reservations_are_undone_last_one_first() -> None:
    licenses = Licenses(9)
    world(licenses).plan(*various(2))
    names = [each.partition(" ")[2] for each in licenses.told]
    assert [each.partition(" ")[0] for each in licenses.told] == ["reserve"] * 2 + ["unreserve"] * 2
    assert names[:2] == names[:1:-1]


def test_the_plugin_that_reserved_last_unreserves_first() -> None:
    told: list[str] = []

    class Noting:
        def __init__(self, name: str) -> None:
            self.name = name

        def reserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
            told.append(f"{self.name} reserves")

        def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
            told.append(f"{self.name} forgets")

    world(Noting("First"), Noting("Second")).plan(pod("a"))
    assert told == ["First reserves", "Second reserves", "Second forgets", "First forgets"]


def test_a_plugin_whose_unreserve_fails_does_not_keep_pods_in_the_cluster() -> None:
    class Stubborn:
        name = "Stubborn"

        def reserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
            pass

        def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
            raise KeyError("lost")

    staged = world(Stubborn())
    before = picture(staged.cluster)
    assert len(staged.plan(*various(3)).assignments) == 3
    assert picture(staged.cluster) == before


def test_volumes_for_planned_pods_are_free_again() -> None:
    staged = World(
        *three(),
        storage_class("local").waiting(),
        pv("disk", storage_class="local").reachable_from(HOST, "n2"),
        *(pvc(f"data-{name}", storage_class="local") for name in "ab"),
    )
    for name in "ab":
        assert by_name(staged.plan(pod(name).claim(f"data-{name}"))) == {name: "n2"}


def test_a_clock_that_fails_leaves_no_trace() -> None:
    class Broken:
        looks = 0

        def __call__(self) -> float:
            self.looks += 1
            if self.looks > 5:
                raise OSError("no clock")
            return never_late()

    staged = world()
    before = picture(staged.cluster)
    with pytest.raises(OSError, match="no clock"):
        greedy.plan(staged.problem(*various(14)), clock=Broken())
    assert picture(staged.cluster) == before
