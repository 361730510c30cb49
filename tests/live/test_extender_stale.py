"""Nodes whose load was measured too long ago, by their annotations, behind a stock kube-scheduler."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.live.stock import World, among, loaded, measured, policy

from longshore.agents.load import REASON_NO_MEASUREMENTS
from longshore.testing import PodBuilder

pytestmark = pytest.mark.control_plane


@pytest.fixture(scope="module")
def world(stock_cluster: World) -> Iterator[World]:
    idle = (6000, 400), (12.0, 1.0)
    nodes = measured(loaded("fresh", *idle)), measured(loaded("old", *idle), ago=600)
    with stock_cluster.having(*nodes) as made:
        yield made


def small(world: World) -> PodBuilder:
    return world.named("web").requests(cpu="500m", memory="1Gi")


def test_fail_closed_refuses_the_node_and_says_why(world: World, tmp_path: Path) -> None:
    with world.behind("safe", "safe-overload", policy(tmp_path, "FailClosed")) as scheduler:
        refused = scheduler.place(among(small(world), "old"))
        assert refused.node == ""
        assert f"1 {REASON_NO_MEASUREMENTS}" in refused.message
        assert scheduler.place(among(small(world), "old", "fresh")).node == "fresh"


def test_fail_open_accepts_the_node_with_a_middle_score(world: World, tmp_path: Path) -> None:
    with world.behind("safe", "safe-overload", policy(tmp_path, "FailOpen")) as scheduler:
        assert scheduler.place(among(small(world), "old")).node == "old"
        web = among(small(world), "old", "fresh")
        assert scheduler.place(web).node == "fresh"
        assert scheduler.extender_scores(web) == {"old": 5, "fresh": 10}
