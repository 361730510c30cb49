"""Large clusters of which only a part is examined. Both schedulers examine the same part."""

import random
from collections.abc import Iterator

import pytest
from tests.compare.states import ZONE
from tests.compare.two_schedulers import Arena

from longshore.dev import ControlPlane
from longshore.testing import NodeBuilder, node, pod

_NODES = 500
_PROFILES = {"some": {"percentageOfNodesToScore": 30}, "fewer": {"percentageOfNodesToScore": 5}}
# 30 %, but at least 100.
_EXAMINED = {"some": 150, "fewer": 100}


@pytest.fixture
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """New schedulers. The first node that they examine depends on everything that they did before."""
    with ControlPlane.start(nodes=0, kwok=False, controller_manager=False) as plane:
        arena = Arena(plane, tmp_path_factory.mktemp("fresh"), _PROFILES, tie_break="heap")
        yield arena
        arena.stop()


def sized(chance: random.Random, number: int) -> NodeBuilder:
    built = node(f"node-{number:03d}").allocatable(cpu=chance.choice(("4", "8")), memory="16Gi")
    built = built.taint("t") if chance.random() < 0.2 else built
    return built.labels(**{ZONE: chance.choice(("east", "east", "west", "north"))})


def test_the_examination_of_nodes_continues_where_it_ended(fresh: Arena) -> None:
    for side in ("kube", "longshore"):
        assert fresh.ask(side, pod("early")).message == "no nodes available to schedule pods"
    chance = random.Random(500)
    fresh.become(*(sized(chance, number) for number in range(_NODES)))
    for number in range(12):
        profile = ("some", "fewer")[number % 3 // 2]
        asked = pod(f"p{number}").requests(cpu=chance.choice(("1", "2")))
        if number in (5, 8):
            asked = asked.only_on(f"node-{number:03d}").tolerate()
        kube = fresh.ask("kube", asked, profile=profile)
        named = kube.document["metadata"]
        scored = fresh.kube.scores(f"{named['namespace']}/{named['name']}")
        assert len(scored) == (_EXAMINED[profile] if number not in (5, 8) else 0)
        assert fresh.ask("longshore", asked, profile=profile).node == kube.node
