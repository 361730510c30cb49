"""Agents behind a stock kube-scheduler: where pods land, and what its log says of the scores."""

import time
from collections.abc import Iterator

import pytest
from tests.agents.test_pigeon import used
from tests.live.stock import Extender, World, among, eventually, loaded

from longshore.agents.safe import REASON_RISK
from longshore.dev import ControlPlane
from longshore.testing import NodeBuilder, PodBuilder, node

CPU_RISK = REASON_RISK.format(utilization=90, resource="cpu", percentile=30)
MEMORY_RISK = REASON_RISK.format(utilization=90, resource="memory", percentile=30)
VECTOR_B = "vector-b"


def congested(name: str, factor: str | None) -> NodeBuilder:
    built = node(name).allocatable(cpu="8", memory="16Gi")
    return built if factor is None else built.annotations(**{"congestion-factor": factor})


def timed(name: str, free: int) -> NodeBuilder:
    """Measured just now: pods that come count until they show."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return loaded(name, cpu=(free, 400)).annotations(**{"longshore.dev/measured-at": now})


NODES = [
    loaded("idle", (6000, 400), (12, 1)),
    loaded("warm", (2400, 500), (5, 1)),
    loaded("spiky", (3200, 2000), (10, 3)),
    loaded("full", (900, 300), (2, 0.5)),
    loaded("bare"),
    loaded("cpuonly", (2400, 500)),
    node("steady").allocatable(cpu="4").annotations(**{"mean-free-cpu": "2000", "std-free-cpu": "0"}),
    node("wild").allocatable(cpu="4").annotations(**{"mean-free-cpu": "2600", "std-free-cpu": "1200"}),
    node("vector-a").allocatable(cpu="4").annotations(**{"mean-free-cpu": "2000", "std-free-cpu": "400"}),
    node(VECTOR_B).allocatable(cpu="4").annotations(**{"mean-free-cpu": "1000", "std-free-cpu": "400"}),
    congested("c0", "0"),
    congested("c33", "33"),
    congested("c50", "50"),
    congested("c100", "100"),
    congested("cnone", None),
    loaded("idle-congested", (6000, 400), (12, 1)).annotations(**{"congestion-factor": "100"}),
    loaded("warm-clear", (2400, 500), (5, 1)).annotations(**{"congestion-factor": "0"}),
    used("p1", [4000, 8192, 110], [1000, 2048, 0]),
    used("p2", [4000, 8192, 110], [2000, 4096, 0]),
    used("p3", [4000, 8192, 110], [3000, 6144, 0]),
]
PIGEONS = ("p1", "p2", "p3")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with ControlPlane.start(nodes=0, kwok=False, controller_manager=False) as plane:
        made = World(plane, tmp_path_factory.mktemp("stock"))
        made.api.create(*NODES, timed("t0", 6000), timed("t1", 3000), timed("t2", 3000))
        yield made
        made.api.close()


@pytest.fixture(scope="module")
def extender(world: World) -> Iterator[Extender]:
    with world.extender("safe,congestion,foo,pigeon", POLICY_OBJECTIVE="LOAD_BALANCE") as found:
        yield found
        assert found.stop() == 0
        # The manifest gives it all the rights that it needs.
        assert "is forbidden" not in found.log.read_text()


def small(world: World, base: str) -> PodBuilder:
    return world.named(base).requests(cpu="500m", memory="1Gi")


def test_safe_refuses_and_ranks(world: World, extender: Extender) -> None:
    with world.scheduler(extender.entry("safe-overload", filters=True)) as scheduler:
        refused = scheduler.place(among(small(world, "refused"), "full"))
        assert refused.node == ""
        assert refused.message.startswith("0/23 nodes are available: ")
        assert f"1 {CPU_RISK}, {MEMORY_RISK}" in refused.message

        ranking = ["idle", "warm", "spiky", "full"]
        landed = [scheduler.place(among(small(world, "rank"), *ranking[n:])).node for n in range(4)]
        assert landed == ["idle", "warm", "spiky", ""]

        assert scheduler.place(among(small(world, "alone"), "bare")).node == "bare"
        assert scheduler.place(among(small(world, "beside"), "bare", "warm")).node == "warm"

        one = among(small(world, "one"), "cpuonly", "bare")
        assert scheduler.place(one).node == "cpuonly"
        assert scheduler.extender_scores(one) == {"cpuonly": 8, "bare": 0}
        assert scheduler.totals(one) == {"cpuonly": 80, "bare": 0}

        init = world.named("init").container("side", cpu="200m").init_container("first", cpu="1500m")
        assert scheduler.place(among(init.requests(cpu="200m"), "vector-a")).node == ""
    world.clear()


def test_pods_of_a_burst_do_not_all_go_to_the_node_that_was_idle(world: World, extender: Extender) -> None:
    """Nobody has measured them yet, but they count: five fill the first node, two each of the others."""
    with world.scheduler(extender.entry("safe-overload", filters=True)) as scheduler:
        asks = [world.named("burst").requests(cpu="900m", memory="16Mi") for _ in range(9)]
        landed = [scheduler.place(among(each, "t0", "t1", "t2")).node for each in asks]
    assert sorted(landed) == ["t0"] * 5 + ["t1"] * 2 + ["t2"] * 2
    world.clear()


def test_balance_prefers_the_steady_node(world: World, extender: Extender) -> None:
    with world.scheduler(extender.entry("safe-balance")) as scheduler:
        web = among(world.named("balance"), "steady", "wild")
        assert scheduler.place(web).node == "steady"
        assert scheduler.extender_scores(web) == {"steady": 8, "wild": 6}


def test_congestion_and_its_weight(world: World, extender: Extender) -> None:
    with world.scheduler(extender.entry("congestion", weight=10)) as scheduler:
        nodes = ("c0", "c33", "c50", "c100", "cnone")
        webs = [among(world.named("congestion"), *nodes) for _ in range(4)]
        assert {scheduler.place(web).node for web in webs} <= {"c0", "cnone"}
        assert scheduler.totals(webs[0]) == {"c0": 1000, "c33": 700, "c50": 500, "c100": 0, "cnone": 1000}


def test_two_entries_add_up(world: World, extender: Extender) -> None:
    entries = extender.entry("safe-overload", filters=True), extender.entry("congestion")
    with world.scheduler(*entries) as scheduler:
        web = among(small(world, "both"), "idle-congested", "warm-clear")
        assert scheduler.place(web).node == "warm-clear"
        assert scheduler.totals(web) == {"idle-congested": 100, "warm-clear": 180}


def test_foo_changes_nothing(world: World, extender: Extender) -> None:
    with world.scheduler(extender.entry("foo", filters=True)) as scheduler:
        web = among(world.named("foo"), "idle", "full", "c100")
        assert scheduler.place(web).node
        assert scheduler.extender_scores(web) == {"idle": 1, "full": 1, "c100": 1}


def test_pigeon_spreads_or_packs_as_its_policy_says(world: World, extender: Extender) -> None:
    with (
        world.extender("pigeon", POLICY_OBJECTIVE="CONSOLIDATE") as packing,
        world.scheduler(extender.entry("pigeon-holing")) as spreads,
        world.scheduler(packing.entry("pigeon-holing")) as packs,
    ):
        assert spreads.place(among(small(world, "spread"), *PIGEONS)).node == "p1"
        assert packs.place(among(small(world, "pack"), *PIGEONS)).node == "p3"
    world.clear()


def test_pigeon_adapts_to_the_pods_that_it_sees(world: World) -> None:
    environ = {"NUM_RESOURCES": "1", "POLICY_OBJECTIVE": "A_BINPACK"}
    with (
        world.extender("pigeon", **environ) as pigeon,
        world.scheduler(pigeon.entry("pigeon-holing")) as scheduler,
    ):
        scores = []
        for size in (100, 500, 2000, 100):
            web = among(world.named("adapts").requests(cpu=f"{size}m"), *PIGEONS)
            landed = scheduler.place(web).node
            found = scheduler.extender_scores(web)
            scores.append([found[name] for name in PIGEONS])
            world.clear()
            eventually(lambda: not world.api.request("GET", "/api/v1/pods")["items"], "all pods are gone")
        assert scores == [[10, 5, 1], [1, 6, 10], [1, 10, 0], [1, 6, 10]]
        assert landed == "p3"


def test_thresholds_come_from_the_environment(world: World) -> None:
    with (
        world.extender("safe", SAFEUTILIZATION="100") as lenient,
        world.scheduler(lenient.entry("safe-overload", filters=True)) as scheduler,
    ):
        web = among(world.named("lenient").requests(cpu="500m"), VECTOR_B, "bare")
        assert scheduler.place(web).node == VECTOR_B
        assert scheduler.extender_scores(web) == {VECTOR_B: 10, "bare": 0}
