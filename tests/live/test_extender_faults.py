"""A stock kube-scheduler with an extender that is down or slow; whole nodes, preemption and bind."""

from collections.abc import Iterator

import pytest
from tests.live.stock import Extender, World, among, entry, free_port, loaded
from tests.waiting import eventually

from longshore.serve.extender.routes import NO_BIND
from longshore.testing import node

pytestmark = pytest.mark.control_plane

SLOW = """
import time

class Slow:
    name, verb = "Slow", "slow"

    def filter(self, state, pod, nodes):
        time.sleep(1.0 if "slow" in pod.labels else 0.0)
        return ()

    def score(self, state, pod, nodes):
        return 50
"""
NODES = [
    loaded("idle", (6000, 400), (12, 1)),
    loaded("warm", (2400, 500), (5, 1)),
    node("busy").allocatable(cpu="8", memory="16Gi"),
    node("empty").allocatable(cpu="8", memory="16Gi"),
    node("small").allocatable(cpu="1", memory="4Gi"),
]


@pytest.fixture(scope="module")
def world(stock_cluster: World) -> Iterator[World]:
    with stock_cluster.having(*NODES) as made:
        yield made


@pytest.fixture(scope="module")
def extender(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Extender]:
    file = tmp_path_factory.mktemp("agents") / "slow.py"
    file.write_text(SLOW)
    with world.extender(f"safe,foo,{file}") as found:
        yield found
        assert found.stop() == 0


@pytest.fixture
def nobody() -> int:
    """A port on which no program listens."""
    return free_port()


def test_priorities_of_one_that_is_down_are_left_out(world: World, nobody: int) -> None:
    with world.scheduler(entry(nobody, "safe-overload")) as scheduler:
        assert scheduler.place(among(world.named("web"), "idle", "warm")).node in ("idle", "warm")


def test_a_filter_that_is_down_holds_pods_up(world: World, nobody: int) -> None:
    with world.scheduler(entry(nobody, "safe-overload", filters=True)) as scheduler:
        fate = scheduler.place(among(world.named("web"), "idle", "warm"))
    assert fate.node == ""
    assert "connection refused" in fate.message


def test_an_ignorable_filter_that_is_down_does_not(world: World, nobody: int) -> None:
    with world.scheduler(entry(nobody, "safe-overload", filters=True, ignorable=True)) as scheduler:
        assert scheduler.place(among(world.named("web"), "idle", "warm")).node in ("idle", "warm")


def test_one_that_is_slow_is_as_good_as_down(world: World, extender: Extender) -> None:
    slow = extender.entry("slow", filters=True, httpTimeout="300ms")
    with world.scheduler(slow) as scheduler:
        held = scheduler.place(among(world.named("held").labels(slow="yes"), "idle", "warm"))
        assert "exceeded" in held.message
        eventually(
            lambda: extender.post("priorities/slow", {"Pod": {}, "NodeNames": []}), lambda found: found == []
        )
        assert scheduler.place(among(world.named("web"), "idle", "warm")).node in ("idle", "warm")


def test_an_extender_that_comes_back_is_called_again(world: World, nobody: int) -> None:
    with world.scheduler(entry(nobody, "safe-overload", filters=True)) as scheduler:
        web = among(world.named("web").requests(cpu="500m"), "idle", "warm")
        assert scheduler.place(web).node == ""
        with world.extender("safe", f"--port={nobody}"):
            assert scheduler.lands(web) == "idle"


def test_by_name_the_scores_of_other_plugins_stay_right(world: World, extender: Extender) -> None:
    """With whole nodes, kube-scheduler 1.36 treats every node as empty after an extender has filtered."""
    filler = world.named("filler").requests(cpu="6", memory="12Gi").on("busy")
    world.api.create(filler)
    found = {}
    for capable in (True, False):
        by = extender.entry("foo", filters=True, nodeCacheCapable=capable)
        with world.scheduler(by, scoring="NodeResourcesFit") as scheduler:
            web = among(world.named("web").requests(cpu="1", memory="1Gi"), "busy", "empty")
            assert scheduler.place(web).node
            found[capable] = scheduler.plugin_scores(web)
    assert found[True]["busy"] < found[True]["empty"]
    assert found[False]["busy"] == found[False]["empty"]
    world.clear()


def test_whole_nodes_are_judged_by_their_annotations(world: World, extender: Extender) -> None:
    by = extender.entry("safe-overload", filters=True, nodeCacheCapable=False)
    with world.scheduler(by) as scheduler:
        web = among(world.named("web").requests(cpu="500m", memory="1Gi"), "idle", "warm")
        assert scheduler.place(web).node == "idle"
        assert scheduler.extender_scores(web) == {"idle": 10, "warm": 8}


def test_a_bind_is_refused_with_what_to_do(world: World, extender: Extender) -> None:
    with world.scheduler(extender.entry("foo", filters=True, bindVerb="bind")) as scheduler:
        web = among(world.named("web"), "idle", "warm")
        fate = scheduler.place(web)
    assert fate.node == ""
    assert NO_BIND in fate.message


@pytest.mark.parametrize("capable", [True, False], ids=["names", "nodes"])
def test_victims_of_preemption_are_those_that_kube_scheduler_found(
    world: World, extender: Extender, capable: bool
) -> None:
    by = extender.entry("foo", filters=True, preemptVerb="preemption", nodeCacheCapable=capable)
    with world.scheduler(by) as scheduler:
        low = among(world.named("low").requests(cpu="800m").priority(1), "small")
        assert scheduler.place(low, terminationGracePeriodSeconds=0).node == "small"
        high = among(world.named("high").requests(cpu="800m").priority(100), "small")
        scheduler.place(high)
        # The other pod was evicted.
        assert scheduler.lands(high) == "small"
    assert world.api.find(low) is None
    world.clear()


def test_learned_rewards_are_written_and_survive_a_restart(world: World) -> None:
    said = {
        "Pod": {"metadata": {"name": "new", "labels": {"podtype": "D"}}},
        "NodeNames": ["idle", "warm"],
    }
    with world.extender("reward") as learning, world.scheduler(learning.entry("rl-priority")) as scheduler:
        for number in range(5):
            web = among(world.named(f"fails-{number}").labels(podtype="D"), "idle")
            assert scheduler.place(web).node == "idle"
            for phase in ("Running", "Failed"):
                world.api.patch(web, {"status": {"phase": phase}}, subresource="status")
        eventually(
            lambda: learning.post("priorities/rl-priority", said)[0],
            lambda score: score == {"Host": "idle", "Score": 5},
        )
        assert scheduler.place(among(world.named("new").labels(podtype="D"), "idle", "warm")).node == "warm"
        assert learning.stop() == 0
    stored = world.plane.kubectl("get", "configmap", "longshore-rewards", "-n", "kube-system", "-o", "name")
    assert "longshore-rewards" in str(stored)
    with world.extender("reward") as again:
        scores = again.post("priorities/rl-priority", said)
        assert {each["Host"]: each["Score"] for each in scores} == {"idle": 5, "warm": 10}
    world.clear()
