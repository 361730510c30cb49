"""Random clusters: the choices, the messages and the scores of every plugin agree."""

import random

from tests.compare.agreement import agree
from tests.compare.states import cluster, random_pod
from tests.compare.two_schedulers import Arena

from longshore.dev.fixtures import Repetitions

_STRATEGIES = ("default", "least", "most", "ratio", "balanced")


def test_scores_agree_on_small_clusters_with_every_scoring_strategy(
    arena: Arena, repetitions: Repetitions
) -> None:
    """On fifty clusters the score of each plugin equals that in kube-scheduler's log."""
    for seed in range(repetitions(full=200, short=50)):
        chance = random.Random(seed)
        arena.become(*cluster(chance, nodes=7, pods=20))
        for number, profile in enumerate(_STRATEGIES):
            agree(arena, random_pod(chance, f"seed-{seed}-{number}", demands=number % 3), profile=profile)


def test_decisions_agree_for_many_pods_on_200_nodes(arena: Arena, repetitions: Repetitions) -> None:
    chance = random.Random(200)
    arena.become(*cluster(chance, nodes=200, pods=800))
    nodes = [
        agree(arena, random_pod(chance, f"of-200-{number}", demands=number % 5)).kube.node
        for number in range(repetitions(full=500, short=60))
    ]
    # Some pods are placed, and some are not.
    assert 0 < nodes.count("") < len(nodes)


def test_decisions_agree_for_a_few_pods_on_1000_nodes(arena: Arena, repetitions: Repetitions) -> None:
    chance = random.Random(1000)
    arena.become(*cluster(chance, nodes=1000, pods=1000))
    for number in range(repetitions(full=60, short=8)):
        agree(arena, random_pod(chance, f"of-1000-{number}", demands=number % 5))
