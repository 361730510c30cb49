"""The three agents from Trimaran behind a stock kube-scheduler, with its usual scores next to theirs.

Each agent has its own nodes of four cores, with a known cpu load and without measurements of memory. The node
that the formula demands has the largest requests of them, so that kube-scheduler alone would not take it.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pytest
from tests.live.stock import Extender, World, among

from longshore.testing import NodeBuilder, PodBuilder, node

pytestmark = pytest.mark.control_plane

CORES = 4000


class There(NamedTuple):
    """A node in millicores: its mean use and the deviation, and the request of its pod."""

    used: int
    deviation: int = 0
    requests: int = 0
    limits: int = 0


class Case(NamedTuple):
    """The first node is the one that the formula demands; scores out of 10, worked out by hand."""

    verb: str
    requests: int
    limits: int
    nodes: Mapping[str, There]
    scores: tuple[int, ...]


CASES = [
    # The agent predicts 600m for the pod, 1.5 times its request. The nodes would use 40, 15 and 50 % of
    # their cores. Target 40: 100; 60 * 15/40 + 40 = 62.5; 40 * 50/60 = 33.3.
    Case(
        "target-load-packing",
        400,
        0,
        {"target": There(1000, requests=1500), "empty": There(0), "beyond": There(1400)},
        (10, 6, 3),
    ),
    # Risks are (0.625 + 0)/2, (0.525 + 0.4)/2 and, as in the vector of the formula, (0.625 + 0.1)/2.
    Case(
        "load-variation-risk-balancing",
        500,
        0,
        {"steady": There(2000, requests=1500), "wild": There(1600, 1600), "vector": There(2000, 400)},
        (7, 5, 6),
    ),
    # The first is the vector of the formula: risk 0.328704. On the second 1500 of 4500 that the pods may use
    # beyond their requests are lacking, and 0.957031 is the risk that more than 500 are used: 0.645182.
    Case(
        "low-risk-over-commitment",
        500,
        1500,
        {"covered": There(2000, 400, 2000, 3000), "promised": There(2000, 400, 500, 4000)},
        (7, 4),
    ),
]


def _node(name: str, there: There) -> NodeBuilder:
    said = {"mean-free-cpu": str(CORES - there.used), "std-free-cpu": str(there.deviation)}
    return node(name).allocatable(cpu="4", memory="8Gi").annotations(**said)


def _asking(web: PodBuilder, requests: int, limits: int) -> PodBuilder:
    web = web.requests(cpu=f"{requests}m")
    return web.limits(cpu=f"{limits}m") if limits else web


@pytest.fixture(scope="module")
def world(stock_cluster: World) -> Iterator[World]:
    every = {name: there for case in CASES for name, there in case.nodes.items()}
    with stock_cluster.having(*(_node(*each) for each in every.items())) as made:
        for name, there in every.items():
            if there.requests:
                made.api.create(_asking(made.named("there"), there.requests, there.limits).on(name))
        yield made


@pytest.fixture(scope="module")
def extender(world: World) -> Iterator[Extender]:
    with world.extender(",".join(case.verb for case in CASES)) as found:
        yield found
        assert found.stop() == 0


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.verb))
def test_pods_go_where_the_formula_says_and_kube_scheduler_alone_would_not(
    world: World, extender: Extender, case: Case
) -> None:
    demanded, *others = case.nodes

    def web() -> PodBuilder:
        return among(_asking(world.named("web"), case.requests, case.limits), *case.nodes)

    with (
        world.scheduler(scoring=None) as alone,
        world.scheduler(extender.entry(case.verb, weight=10), scoring=None) as beside,
    ):
        asked = web()
        assert beside.place(asked).node == demanded
        assert beside.extender_scores(asked) == dict(zip(case.nodes, case.scores, strict=True))
        asked = web()
        assert alone.place(asked).node in others
        totals = alone.totals(asked)
        assert totals[demanded] < min(totals[name] for name in others)
