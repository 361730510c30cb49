"""Pods that are created all at once, on nodes that are measured once a minute.

kube-scheduler asks about the next pod while the last is still being bound, so that some are decided about
before the extender knows the node of earlier pods. Pods count from the moment that their node is known.
"""

from collections import Counter
from collections.abc import Iterator

import pytest
from tests.live.stock import Extender, Scheduler, World, among, loaded, measured

from longshore.api import Pod

pytestmark = pytest.mark.control_plane

ALIKE = [f"alike-{number}" for number in range(5)]
FREE = {"idle": 6000, "busy-0": 3000, "busy-1": 3000}
# The pods below that fit on the idle node. One after the other, each of the other nodes gets four.
ROOM = 12
# Decisions that may be made before the extender knows the last ones: at most 3 on a busy machine.
LATE = 5


@pytest.fixture(scope="module")
def world(stock_cluster: World) -> Iterator[World]:
    alike = [measured(loaded(name, (7000, 400), (14, 1))) for name in ALIKE]
    apart = [measured(loaded(name, (free, 400))) for name, free in FREE.items()]
    with stock_cluster.having(*alike, *apart, loaded("warm-up")) as made:
        yield made


@pytest.fixture(scope="module")
def extender(world: World) -> Iterator[Extender]:
    with world.extender("safe") as found:
        yield found
        assert found.stop() == 0


def landed(world: World, scheduler: Scheduler, *pods: Pod) -> Counter[str]:
    """Return how many pods each node received from an idle scheduler."""
    assert scheduler.place(among(world.named("warm-up"), "warm-up")).node == "warm-up"
    scheduler.submit(*pods)
    return Counter(map(scheduler.lands, pods))


def test_nodes_that_are_equally_idle_share_them(world: World, extender: Extender) -> None:
    entries = extender.entry("safe-overload", filters=True), extender.entry("safe-balance", weight=10)
    with world.scheduler(*entries) as scheduler:
        burst = [among(world.named("burst").requests(cpu="1500m"), *ALIKE) for _ in range(10)]
        found = landed(world, scheduler, *burst)
        met = {tuple(sorted(scheduler.totals(each).values())) for each in burst}
    assert max(found.values()) <= len(burst) // len(ALIKE) + LATE < len(burst)
    # The later ones find nodes that have become worse.
    assert len(met) > 1
    world.clear()


def test_the_node_that_was_idle_does_not_take_them_all(world: World, extender: Extender) -> None:
    """The requests fit, and by the measurements this node is the best for each of the pods."""
    with world.scheduler(extender.entry("safe-overload", filters=True)) as scheduler:
        burst = [among(world.named("burst").requests(cpu="400m"), *FREE) for _ in range(20)]
        found = landed(world, scheduler, *burst)
    assert found["idle"] <= ROOM + LATE < len(burst)
    world.clear()
