"""Large clusters in which only some nodes are examined for each pod."""

from msgspec.structs import replace

from longshore.api import Change
from longshore.cluster import PodInfo
from longshore.config import LongshoreSettings, Webhook, default_configuration
from longshore.engine import Engine
from longshore.engine.decision.chooser import Placement
from longshore.framework.profile import TieBreak
from longshore.testing import PodBuilder, node, pod

_NODES = 300


def engine_with(
    *,
    scores: bool = True,
    tie_break: TieBreak = "heap",
    webhooks: tuple[Webhook, ...] = (),
    **percentages: int,
) -> Engine:
    """Return an engine with these percentages; the first node examined wins a tie."""
    default = replace(default_configuration("default"), webhooks=webhooks)
    points = default.profiles[0].points
    if not scores:
        points = {**points, "preScore": (), "score": ()}
    profiles = tuple(
        replace(
            default.profiles[0], scheduler_name=name, percentage_of_nodes_to_score=percentage, points=points
        )
        for name, percentage in percentages.items()
    )
    settings = LongshoreSettings(tie_break=tie_break)
    engine = Engine(replace(default, profiles=profiles, longshore=settings))
    for number in range(_NODES):
        engine.receive(Change(None, node(f"n{number:03d}").allocatable(cpu="8")), now=0.0)
    return engine


def decide(engine: Engine, profile: str, asked: PodBuilder) -> Placement:
    decision = engine.chooser(profile).decide(PodInfo.of(asked.scheduler(profile)))
    assert isinstance(decision, Placement)
    return decision


def test_the_examination_for_each_pod_starts_where_the_last_one_ended() -> None:
    engine = engine_with(half=50)
    decisions = [decide(engine, "half", pod(f"p{number}")) for number in range(3)]
    assert [(decision.node, decision.feasible) for decision in decisions] == [
        ("n000", 150),
        ("n150", 150),
        ("n000", 150),
    ]


def test_profiles_share_the_start_of_the_examination() -> None:
    engine = engine_with(half=50, third=34, all=100)
    nodes = [decide(engine, name, pod(name)).node for name in ("half", "third", "all", "half")]
    assert nodes == ["n000", "n150", "n252", "n252"]


def test_a_pod_for_one_node_moves_the_start_by_one() -> None:
    engine = engine_with(half=50, all=100)
    for profile in ("half", "all"):
        assert decide(engine, profile, pod("daemon").only_on("n200")).node == "n200"
    assert decide(engine, "half", pod("next")).node == "n002"


def test_the_percentage_is_of_the_nodes_that_pre_filter_left() -> None:
    engine = engine_with(most=60)
    one = pod("p").only_on("n000")
    assert one.spec.affinity is not None
    affinity = one.spec.affinity.node_affinity
    assert affinity is not None
    required = affinity.required_during_scheduling_ignored_during_execution
    assert required is not None
    [term] = required.node_selector_terms
    names = tuple(f"n{number:03d}" for number in range(200))
    several = replace(term, match_fields=(replace(term.match_fields[0], values=names),))
    wanted = replace(required, node_selector_terms=(several,))
    affinity = replace(affinity, required_during_scheduling_ignored_during_execution=wanted)
    spec = replace(one.spec, affinity=replace(one.spec.affinity, node_affinity=affinity))
    assert decide(engine, "most", replace(one, spec=spec)).feasible == 120


# Nothing ranks the nodes.


def test_the_first_node_that_fits_is_taken_and_the_next_pod_starts_after_it() -> None:
    engine = engine_with(scores=False, all=0)
    decisions = [decide(engine, "all", pod(f"p{number}")) for number in range(3)]
    assert [(each.node, each.feasible) for each in decisions] == [("n000", 1), ("n001", 1), ("n002", 1)]


def test_nodes_that_do_not_fit_are_skipped() -> None:
    engine = engine_with(scores=False, all=0)
    for number in (0, 1, 3):
        old = node(f"n{number:03d}").allocatable(cpu="8")
        engine.receive(Change(old, old.unschedulable()), now=0.0)
    # kube-scheduler stops when it finds one more than enough.
    assert [decide(engine, "all", pod(f"p{n}")).node for n in range(3)] == ["n002", "n004", "n005"]


def test_the_first_node_that_fits_is_taken_among_those_that_pre_filter_left() -> None:
    engine = engine_with(scores=False, all=0)
    assert decide(engine, "all", pod("daemon").only_on("n200")).node == "n200"
    assert decide(engine, "all", pod("next")).node == "n001"


def test_an_extender_that_filters_or_ranks_is_asked_about_all_nodes() -> None:
    filters = Webhook("http://a/", filter_verb="filter")
    ranks = Webhook("http://a/", prioritize_verb="prioritize")
    for webhook in (filters, ranks):
        engine = engine_with(scores=False, webhooks=(webhook,), all=0)
        assert decide(engine, "all", pod("p")).feasible == _NODES


def test_a_configured_tie_break_applies_if_nothing_ranks_nodes() -> None:
    engine = engine_with(scores=False, tie_break="first", all=0)
    assert [decide(engine, "all", pod(f"p{n}")).node for n in range(2)] == ["n000", "n000"]
