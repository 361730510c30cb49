"""Settings of agents from the environment: the nodes of pods with them, and the scores in the log."""

from collections.abc import Iterator, Mapping

import pytest
from tests.live.stock import World, among

from longshore.agents.safe import REASON_RISK
from longshore.testing import NodeBuilder, PodBuilder, node

pytestmark = pytest.mark.control_plane

DEFAULT_RISK = REASON_RISK.format(utilization=90, resource="cpu", percentile=30)
B, M, NO_FORECAST, BARE = "vector-b", "vector-m", "no-forecast", "bare"
CALM, BUSIER = "calm", "busier"


def saying(name: str, *, cpu: str, **said: str) -> NodeBuilder:
    annotations = {key.replace("_", "-"): value for key, value in said.items()}
    return node(name).allocatable(cpu=cpu).annotations(**annotations)


LOAD_OF_M = {"mean_free_cpu": "4000", "std_free_cpu": "800"}
NODES = [
    saying(B, cpu="4", mean_free_cpu="1000", std_free_cpu="400"),
    saying(M, cpu="8", **LOAD_OF_M, forcasted_free_cpu="1000"),
    saying(NO_FORECAST, cpu="8", **LOAD_OF_M, forcasted_free_cpu="N/A"),
    saying(BARE, cpu="8"),
    saying(CALM, cpu="8", mean_free_cpu="2400", std_free_cpu="500"),
    saying(BUSIER, cpu="8", mean_free_cpu="2300", std_free_cpu="500"),
    *(saying(f"factor-{factor}", cpu="8", congestion_factor=factor) for factor in ("0", "3", "10", "11")),
]


@pytest.fixture(scope="module")
def world(stock_cluster: World) -> Iterator[World]:
    with stock_cluster.having(*NODES) as made:
        yield made


def said(value: object) -> str | None:
    return ",".join(f"{name}={each}" for name, each in value.items()) if isinstance(value, dict) else None


@pytest.mark.parametrize(
    ("environ", "cpu", "scores"),
    [
        ({"SAFEUTILIZATION": "100"}, "500m", {B: 10, BARE: 0}),
        ({"SAFEPERCENTILE": "100"}, "500m", {B: 2, BARE: 0}),
        ({"SAFEFORECASTWEIGHT": "20"}, "1", {NO_FORECAST: 9, M: 8, BARE: 0}),
        ({"SAFEFORECASTWEIGHT": "50"}, "1", {M: 1, BARE: 0}),
    ],
    ids=said,
)
def test_thresholds_that_leave_a_node(
    world: World, environ: Mapping[str, str], cpu: str, scores: Mapping[str, int]
) -> None:
    with world.behind("safe", "safe-overload", **environ) as scheduler:
        web = among(world.named("web").requests(cpu=cpu), *scores)
        assert scheduler.place(web).node == next(iter(scores))
        assert scheduler.extender_scores(web) == scores
        assert scheduler.totals(web) == {name: 10 * score for name, score in scores.items()}


@pytest.mark.parametrize(
    ("environ", "cpu", "refused"),
    [
        # No number: the default of 90 holds.
        ({"SAFEUTILIZATION": "abc"}, "500m", B),
        ({"SAFEPERCENTILE": "30"}, "500m", B),
        ({"SAFEFORECASTWEIGHT": "100"}, "1", M),
    ],
    ids=said,
)
def test_thresholds_that_refuse_a_node(
    world: World, environ: Mapping[str, str], cpu: str, refused: str
) -> None:
    with world.behind("safe", "safe-overload", **environ) as scheduler:
        fate = scheduler.place(among(world.named("web").requests(cpu=cpu), refused))
    assert fate.node == ""
    assert f"1 {DEFAULT_RISK}" in fate.message


def test_the_greatest_congestion_there_can_be(world: World) -> None:
    with (
        world.extender("congestion", CONGESTION_FACTOR_MAX="10") as extender,
        world.scheduler(extender.entry("congestion")) as scheduler,
    ):
        scores = {"factor-0": 10, "factor-3": 7, "factor-10": 0, "factor-11": 0}
        web = among(world.named("web"), *scores)
        assert scheduler.place(web).node == "factor-0"
        assert scheduler.extender_scores(web) == scores


def test_fine_scores_tell_apart_what_others_do_not(world: World) -> None:
    """Risks of 0.00466 and 0.00995 of at most 0.3: 88 and 82 out of 100, and 8 out of 10 both."""

    def web() -> PodBuilder:
        return among(world.named("web").requests(cpu="500m"), CALM, BUSIER)

    with (
        world.behind("safe", "safe-overload") as coarse,
        world.behind("safe", "safe-overload", "--fine-scores") as fine,
    ):
        asked = web()
        assert coarse.place(asked).node in (CALM, BUSIER)
        assert coarse.totals(asked) == {CALM: 80, BUSIER: 80}
        # Chance would put them all there once in 64 times.
        several = [web() for _ in range(6)]
        assert {fine.place(each).node for each in several} == {CALM}
        assert all(fine.extender_scores(each) == {CALM: 88, BUSIER: 82} for each in several)
        assert fine.totals(several[0]) == {CALM: 880, BUSIER: 820}
