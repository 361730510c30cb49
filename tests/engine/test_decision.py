"""Filters, scores and ties: which node is chosen, and the message if none fits."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from longshore.api import Node
from longshore.cluster import ClusterState, Nodes, PodInfo
from longshore.cluster.arrays import Bools, Ints
from longshore.engine.decision.chooser import Chooser, Placement, Unplaced
from longshore.framework import Code, CycleState, Plugin, Rejection, Status
from longshore.framework.profile import Profile, TieBreak
from longshore.testing import node, pod

A = PodInfo.of(pod("a"))
THREE = [node("n1"), node("n2"), node("n3")]


class Rejects:
    """Rejects the nodes named, for the reason given."""

    def __init__(self, reason: str, *names: str) -> None:
        self.name = f"Rejects{len(names)}"
        self._reason = reason
        self._names = names

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Iterable[Rejection]:
        yield Rejection(self._reason, np.array([name in self._names for name in nodes.names], np.bool_))


class Prefers:
    """Scores the node named 10 and all others 1."""

    def __init__(self, name: str) -> None:
        self.name = f"Prefers{name}"
        self._node = name

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Ints:
        return np.array([10 if name == self._node else 1 for name in nodes.names], np.int64)


def cluster_of(nodes: Sequence[Node]) -> ClusterState:
    cluster = ClusterState()
    for each in nodes:
        cluster.add_node(each)
    return cluster


def profile(*plugins: Plugin | tuple[Plugin, int], tie_break: TieBreak = "first", seed: int = 0) -> Profile:
    """Return a chooser. Plugins with a weight score, and the others filter."""
    return Profile.of(
        "longshore",
        {
            "filter": [(plugin, 0) for plugin in plugins if not isinstance(plugin, tuple)],
            "score": [plugin for plugin in plugins if isinstance(plugin, tuple)],
        },
        tie_break=tie_break,
        seed=seed,
    )


def decide(pod: PodInfo, cluster: ClusterState, profile: Profile) -> str | Status:
    """Return the node, or the message if none fits."""
    decision = Chooser(profile, cluster).decide(pod)
    if isinstance(decision, Placement):
        return decision.node
    if isinstance(decision, Unplaced):
        return Status.unschedulable(decision.diagnosis.message)
    return decision


def test_a_pod_in_a_cluster_without_nodes() -> None:
    status = decide(A, ClusterState(), profile())
    assert status == Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("no nodes available to schedule pods",))


def test_a_row_without_a_node_is_never_chosen() -> None:
    cluster = cluster_of(THREE[:1])
    cluster.add_pod(pod("b").on("a-node-not-known"))
    assert decide(A, cluster, profile()) == "n1"
    cluster.remove_node("n1")
    assert isinstance(decide(A, cluster, profile()), Status)


def test_the_message_counts_reasons_and_sorts_them_as_strings() -> None:
    nodes = [node(f"n{i}") for i in range(13)]
    few, many = Rejects("zebra", "n0", "n1"), Rejects("apple", *(f"n{i}" for i in range(2, 13)))
    status = decide(A, cluster_of(nodes), profile(few, many))
    assert status == Status.unschedulable("0/13 nodes are available: 11 apple, 2 zebra.")


def test_a_node_is_counted_for_the_first_filter_that_rejects_it() -> None:
    first, second = Rejects("first", "n1", "n2"), Rejects("second", "n1", "n2", "n3")
    status = decide(A, cluster_of(THREE), profile(first, second))
    assert isinstance(status, Status)
    assert status.message == "0/3 nodes are available: 1 second, 2 first."


def test_weights_decide_between_scores() -> None:
    cluster = cluster_of(THREE)
    assert decide(A, cluster, profile((Prefers("n2"), 1), (Prefers("n3"), 2))) == "n3"
    assert decide(A, cluster, profile((Prefers("n2"), 3), (Prefers("n3"), 2))) == "n2"


def test_a_rejected_node_is_not_chosen_however_well_it_scores() -> None:
    assert decide(A, cluster_of(THREE), profile(Rejects("no", "n2"), (Prefers("n2"), 1))) == "n1"


class ScoresTooHigh:
    name = "ScoresTooHigh"

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Ints:
        return np.array([{"n1": 101, "n2": 100}.get(name, 0) for name in nodes.names], np.int64)


def test_only_scores_of_feasible_nodes_must_be_in_range() -> None:
    cluster = cluster_of(THREE)
    assert isinstance(decide(A, cluster, profile((ScoresTooHigh(), 1))), Status)
    assert decide(A, cluster, profile(Rejects("no", "n1"), (ScoresTooHigh(), 1))) == "n2"


class NeverAsked:
    name = "NeverAsked"

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Ints:
        raise AssertionError("one node only: there is nothing to rank")


def test_with_one_node_left_nothing_is_scored() -> None:
    assert decide(A, cluster_of(THREE), profile(Rejects("no", "n1", "n3"), (NeverAsked(), 1))) == "n2"


def test_first_takes_the_first_name_in_any_order_of_arrival() -> None:
    assert decide(A, cluster_of([node("n3"), node("n1"), node("n2")]), profile()) == "n1"


def test_the_first_of_a_tie_does_not_depend_on_rows_or_history() -> None:
    names = [f"n{i}" for i in range(20)]
    straight = cluster_of([node(name) for name in names])
    shuffled = cluster_of([node(f"gone-{i}") for i in range(7)])
    shuffled.add_pod(pod("b").on("not-known"))
    for i in range(7):
        shuffled.remove_node(f"gone-{i}")
    for name in reversed(names):
        shuffled.add_node(node(name))
    chosen = profile(tie_break="first")
    for i in range(50):
        info = PodInfo.of(pod(f"p{i}"))
        assert decide(info, straight, chosen) == decide(info, shuffled, chosen)


def test_random_ties_spread_pods_evenly_and_follow_the_seed() -> None:
    cluster = cluster_of([node(f"n{i}") for i in range(10)])
    infos = [PodInfo.of(pod(f"p{i}")) for i in range(2000)]
    picks = [
        [decide(info, cluster, profile(tie_break="random", seed=seed)) for info in infos]
        for seed in (1, 1, 2)
    ]
    assert picks[0] == picks[1] != picks[2]
    counts = Counter(picks[0])
    # 200 expected for each, with a standard deviation of 13.
    assert len(counts) == 10
    assert all(130 < number < 270 for number in counts.values())


def test_a_node_that_leaves_the_tie_moves_only_the_pods_that_had_chosen_it() -> None:
    chosen = profile(tie_break="random")
    cluster = cluster_of([node(f"n{i}") for i in range(10)])
    infos = [PodInfo.of(pod(f"p{i}")) for i in range(200)]
    before = [decide(info, cluster, chosen) for info in infos]
    cluster.remove_node("n4")
    after = [decide(info, cluster, chosen) for info in infos]
    assert "n4" in before
    assert all(now == then for then, now in zip(before, after, strict=True) if then != "n4")


def test_a_mask_is_not_changed_by_the_decision() -> None:
    class Keeps:
        name = "Keeps"
        mask: Bools = np.array([True, False, False])

        def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Iterable[Rejection]:
            yield Rejection("no", self.mask)

    keeps = Keeps()
    cluster = cluster_of(THREE)
    decide(A, cluster, profile(keeps, Rejects("no", "n2")))
    assert keeps.mask.tolist() == [True, False, False]
    assert cluster.known.all()
