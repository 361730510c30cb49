"""Several profiles in one process, percentages of nodes, and ties."""

from collections import Counter

import numpy as np
import pytest
from tests.engine.stage import Stage, configuration, profile, registry, room

from longshore.api import Change
from longshore.cluster import Nodes, PodInfo
from longshore.cluster.arrays import Ints
from longshore.engine import Bind, Done, Engine, Succeeded
from longshore.engine.decision.ties import heap_pick
from longshore.framework import CycleState
from longshore.framework.profile import TieBreak
from longshore.testing import node, pod


class Prefers:
    """Scores the node of its name 100 and the others 0."""

    def __init__(self, node: str) -> None:
        self.name = node
        self.scored: list[int] = []

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Ints:
        self.scored.append(len(nodes))
        return np.array([100 * (name == self.name) for name in nodes.names], np.int64)


def two_profiles() -> Stage:
    """In the profile `left` the node `n1` weighs more, in the profile `right` the node `n2`."""
    plugins = [Prefers("n1"), Prefers("n2")]
    engine = Engine(
        configuration(
            profile(*plugins, name="left", weights={"n1": 5, "n2": 1}),
            profile(*plugins, name="right", weights={"n1": 1, "n2": 5}),
        ),
        plugins=registry(plugins),
    )
    stage = Stage(engine=engine)
    stage.create(room("n1"), room("n2"))
    return stage


def test_each_profile_has_its_own_weights() -> None:
    stage = two_profiles()
    stage.create(pod("a").scheduler("left"), pod("b").scheduler("right"))
    stage.run()
    assert (stage.node_of("a"), stage.node_of("b")) == ("n1", "n2")


def test_pods_of_all_profiles_share_one_queue() -> None:
    stage = two_profiles()
    stage.create(
        pod("low").scheduler("left"),
        pod("high").scheduler("right").priority(9),
        pod("middle").scheduler("left").priority(5),
    )
    stage.run()
    assert [event.name for event in stage.cluster.events] == ["high", "middle", "low"]


def test_pods_of_another_scheduler_are_left_alone() -> None:
    stage = two_profiles()
    stage.create(pod("foreign").scheduler("elsewhere"))
    stage.run()
    assert stage.node_of("foreign") == ""
    assert stage.told("foreign") == []
    assert stage.place("foreign") == "nowhere"


# Percentage of nodes to score.


class Scene:
    """Decide for pods on 500 nodes in one zone; returns how many nodes were scored for each."""

    def __init__(self, percentage: int, count: int = 500) -> None:
        self.plugin = Prefers("none")
        self.engine = Engine(
            configuration(profile(self.plugin, percentage=percentage), tie_break="first"),
            plugins=registry([self.plugin]),
        )
        for number in range(count):
            self.engine.receive(Change(None, node(f"n{number:03}")), now=0.0)

    def place(self, *names: str) -> list[str]:
        for name in names:
            self.engine.receive(Change(None, pod(name)), now=0.0)
        chosen = []
        for request in self.engine.advance(now=0.0):
            if isinstance(request.effect, Bind):
                chosen.append(request.effect.node)
                self.engine.receive(Done(request.id, Succeeded()), now=0.0)
        return chosen


@pytest.mark.parametrize(
    ("percentage", "nodes", "scored"),
    [(0, 500, 500), (100, 500, 500), (50, 500, 250), (30, 500, 150), (5, 500, 100), (50, 99, 99)],
)
def test_the_percentage_of_nodes_is_scored_but_at_least_100(percentage: int, nodes: int, scored: int) -> None:
    scene = Scene(percentage, nodes)
    scene.place("a")
    assert scene.plugin.scored == [scored]


def test_the_search_begins_where_the_last_one_ended() -> None:
    scene = Scene(30)
    assert scene.place("a", "b", "c", "d", "e") == ["n000", "n150", "n300", "n000", "n100"]


def test_if_all_are_examined_the_start_stays_where_it_is() -> None:
    scene = Scene(0)
    assert scene.place("a", "b", "c") == ["n000", "n000", "n000"]


# Ties.


def picks(tie_break: TieBreak, seed: int = 0, pods: int = 60) -> list[str]:
    plugins = [Prefers("none")]
    engine = Engine(
        configuration(profile(*plugins), tie_break=tie_break, seed=seed), plugins=registry(plugins)
    )
    stage = Stage(engine=engine)
    stage.create(*(room(f"n{number}") for number in (3, 1, 2)), *(pod(f"p{n}") for n in range(pods)))
    stage.run()
    return [stage.node_of(f"p{number}") for number in range(pods)]


def test_first_takes_the_first_by_name() -> None:
    assert set(picks("first")) == {"n1"}


def test_heap_takes_the_first_to_come_if_all_are_equal() -> None:
    assert set(picks("heap")) == {"n3"}


def test_random_takes_every_node_at_times_and_follows_the_seed() -> None:
    counts = Counter(picks("random"))
    assert min(counts[f"n{number}"] for number in (1, 2, 3)) > 5
    assert picks("random") == picks("random") != picks("random", seed=1)


@pytest.mark.parametrize(
    ("scores", "place"),
    [([1, 1, 5, 5], 3), ([1, 5, 5], 1), ([1, 1, 1, 1, 5, 5], 4), ([7, 7, 7], 0), ([2], 0)],
)
def test_heap_breaks_ties_as_the_heap_of_go_does(scores: list[int], place: int) -> None:
    rows = np.arange(len(scores)) * 10
    assert heap_pick(rows, np.array(scores)) == place * 10
