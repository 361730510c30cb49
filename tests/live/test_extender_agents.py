"""Agents behind a stock kube-scheduler: the nodes of pods, and the scores in its log."""

from collections.abc import Iterator

import pytest
from tests.agents.test_pigeon import used
from tests.live.stock import HOSTNAME, Extender, World, among, loaded, measured
from tests.waiting import eventually

from longshore.agents.safe import REASON_RISK
from longshore.testing import NodeBuilder, PodBuilder, node

pytestmark = pytest.mark.control_plane

CPU_RISK = REASON_RISK.format(utilization=90, resource="cpu", percentile=30)
MEMORY_RISK = REASON_RISK.format(utilization=90, resource="memory", percentile=30)


def congested(name: str, factor: str | None) -> NodeBuilder:
    built = node(name).allocatable(cpu="8", memory="16Gi")
    return built if factor is None else built.annotations(**{"congestion-factor": factor})


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
    used("no-memory", [4000, 8192, 110], [0, 8177, 0]),
    used("no-cpu", [4000, 8192, 110], [3991, 0, 0]),
    used("little", [4000, 8192, 110], [3990, 8176, 0]),
    used("same", [4000, 8192, 110], [2000, 4096, 0]),
]
PIGEONS = ("p1", "p2", "p3")
# Measured just now, so new pods count until a measurement includes them.
FREE = {"t0": 6000, "t1": 3000, "t2": 3000}


@pytest.fixture(scope="module")
def world(stock_cluster: World) -> Iterator[World]:
    now = [measured(loaded(name, (free, 400))) for name, free in FREE.items()]
    with stock_cluster.having(*NODES, *now) as made:
        yield made


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
        assert refused.message.startswith(f"0/{len(NODES) + len(FREE)} nodes are available: ")
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

    world.clear()


def test_an_init_container_counts_by_what_it_asks_for(world: World, extender: Extender) -> None:
    """The node uses 2000m of 4000m: 60 % with the two containers, 87.5 % while the init container runs."""

    def two(base: str) -> PodBuilder:
        return among(world.named(base).requests(cpu="200m").container("side", cpu="200m"), "vector-a")

    with world.scheduler(extender.entry("safe-overload", filters=True)) as scheduler:
        refused = scheduler.place(two("init").init_container("first", cpu="1500m"))
        assert refused.node == ""
        # The only allowed node has room for its requests, and only the agent can reject it.
        every = len(NODES) + len(FREE)
        elsewhere = f"{every - 1} node(s) didn't match Pod's node affinity/selector. "
        assert refused.message.startswith(f"0/{every} nodes are available: 1 {CPU_RISK}, {elsewhere}")
        assert scheduler.place(two("plain")).node == "vector-a"
    world.clear()


def test_pods_of_a_burst_do_not_all_go_to_the_node_that_was_idle(world: World, extender: Extender) -> None:
    """Pods count before they are measured: five fill the first node, two fill each of the others."""
    with world.scheduler(extender.entry("safe-overload", filters=True)) as scheduler:
        asks = [world.named("burst").requests(cpu="900m", memory="16Mi") for _ in range(9)]
        landed = [scheduler.place(among(each, *FREE)).node for each in asks]
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
    """All nodes get the same score, so pods go to the same nodes as without it."""
    likes = {"idle": 100, "c0": 60, "full": 10}

    def wishes() -> PodBuilder:
        web = among(world.named("foo"), *likes, "c100")
        for name, weight in likes.items():
            web = web.node_affinity(HOSTNAME, "In", name, preferred=weight)
        return web

    with (
        world.scheduler(scoring="NodeAffinity") as without,
        world.scheduler(extender.entry("foo", filters=True), scoring="NodeAffinity") as beside,
    ):
        one, other = wishes(), wishes()
        assert without.place(one).node == beside.place(other).node == "idle"
        assert beside.extender_scores(other) == dict.fromkeys([*likes, "c100"], 1)
        totals = without.totals(one)
        assert len(set(totals.values())) == 4
        assert beside.totals(other) == {name: total + 10 for name, total in totals.items()}


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
            eventually(lambda: world.api.request("GET", "/api/v1/pods")["items"], lambda pods: not pods)
        assert scores == [[10, 5, 1], [1, 6, 10], [1, 10, 0], [1, 6, 10]]
        assert landed == "p3"


def test_pigeon_and_nodes_without_room(world: World, extender: Extender) -> None:
    """Balance alone would choose the first node, which has no free memory."""
    with world.scheduler(extender.entry("pigeon-holing")) as scheduler:
        web = among(small(world, "large"), "no-memory", "p2", "same")
        assert scheduler.place(web).node in ("p2", "same")
        assert scheduler.extender_scores(web) == {"no-memory": 0, "p2": 10, "same": 10}

        # It counts as 10m and 16 MiB.
        web = among(world.named("best-effort"), "no-memory", "no-cpu", "little")
        assert scheduler.place(web).node == "little"
        assert scheduler.extender_scores(web) == {"no-memory": 0, "no-cpu": 0, "little": 10}
    world.clear()
