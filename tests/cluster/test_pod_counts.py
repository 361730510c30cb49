"""Whatever happened to pods and namespaces, a tally equals a count of the pods that are there in the end."""

from collections.abc import Callable

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from longshore.api import InvalidSelector, LabelSelector, LabelSelectorRequirement, Pod
from longshore.cluster import PodSelector, Terms
from longshore.cluster import pod_counts as pod_counts_module
from longshore.cluster.pod_counts import PodCounts, Tally
from longshore.testing import PodBuilder, pod

ROWS = 4
ZONE = "zone"
NAMESPACES = ("red", "blue", "green")
# The last two are equal, but written in another order.
LABELS: tuple[dict[str, str], ...] = (
    {},
    {"team": "a"},
    {"team": "b"},
    {"team": "a", "stage": "test"},
    {"stage": "test", "team": "a"},
)


def _expression(key: str, operator: str, *values: str) -> LabelSelector:
    requirement = LabelSelectorRequirement(key=key, operator=operator, values=values)
    return LabelSelector(match_expressions=(requirement,))


LABEL_SELECTORS = (
    None,
    LabelSelector(),
    *(LabelSelector(match_labels=labels) for labels in LABELS[1:]),
    _expression("team", "In", "a"),
    _expression("stage", "DoesNotExist"),
    _expression("team", "In", "a", "b"),
    _expression("team", "NotIn", "b"),
)

namespaces = st.sampled_from(NAMESPACES)
label_selectors = st.sampled_from(LABEL_SELECTORS)


@st.composite
def selectors(draw: st.DrawFn) -> PodSelector:
    return PodSelector.of(
        draw(st.lists(namespaces, max_size=2)),
        draw(label_selectors),
        namespace_selector=draw(label_selectors),
        terminating=draw(st.booleans()),
    )


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    made: PodBuilder = pod("any", namespace=draw(namespaces)).labels(**draw(st.sampled_from(LABELS)))
    if draw(st.booleans()):
        made = made.deleting()
    for wants in draw(st.lists(st.sampled_from([made.affinity_to, made.anti_affinity_to]), max_size=1)):
        made = wants(
            ZONE,
            preferred=draw(st.sampled_from([None, 1, 5])),
            namespaces=tuple(draw(st.lists(namespaces, max_size=1))),
            namespace_labels=draw(st.sampled_from([None, {}, {"team": "a"}])),
            **draw(st.sampled_from(LABELS)),
        )
    return made


class World:
    """The counts, with a plain list of what they should be."""

    def __init__(self) -> None:
        self.pod_counts = PodCounts()
        self.pod_counts.resize(ROWS)
        self.pods: list[tuple[Pod, int]] = []
        self.namespaces: dict[str, dict[str, str]] = {}

    def selects(self, selector: PodSelector, of: Pod) -> bool:
        meta = of.metadata
        return selector.selects(meta.namespace, self.namespaces.get(meta.namespace, {}), meta.labels)

    def counted(self, meant: Callable[[Pod], int]) -> list[int]:
        by_row = [0] * ROWS
        for there, row in self.pods:
            by_row[row] += meant(there)
        return by_row

    def check(self, asked: tuple[PodSelector, ...]) -> None:
        tally = self.pod_counts.pods(*asked)
        going_counts = all(selector.terminating for selector in asked)
        _agrees(
            tally,
            self.counted(
                lambda there: (
                    all(self.selects(s, there) for s in asked)
                    and (going_counts or there.metadata.deletion_timestamp is None)
                )
            ),
        )

    def check_terms(self, about: Pod) -> None:
        pod_counts = self.pod_counts
        for sort, answer in (
            ("affinity", pod_counts.affinity_towards(about)),
            ("anti_affinity", pod_counts.anti_affinity_against(about)),
            ("preferred", pod_counts.preferences_about(about)),
        ):
            carried = {term for there, _ in self.pods for term in getattr(Terms.of(there), sort)}
            assert {term for term, _ in answer} == {t for t in carried if self.selects(t.selector, about)}
            for term, tally in answer:
                _agrees(tally, self.counted(lambda there: getattr(Terms.of(there), sort).count(term)))  # noqa: B023


def _agrees(tally: Tally, by_row: list[int]) -> None:
    assert tally.by_row.tolist() == by_row
    assert tally.total == sum(by_row)


Step = Callable[[World], None]


@st.composite
def steps(draw: st.DrawFn) -> Step:
    some, row, name = draw(pods()), draw(st.integers(0, ROWS - 1)), draw(namespaces)
    labels = draw(st.sampled_from([None, *LABELS]))
    asked = tuple(draw(st.lists(selectors(), min_size=1, max_size=2)))
    which = draw(st.integers(0, 10))

    def add(world: World) -> None:
        world.pod_counts.add(some, Terms.of(some), row)
        world.pods.append((some, row))

    def remove(world: World) -> None:
        if world.pods:
            gone, was_on = world.pods.pop(which % len(world.pods))
            world.pod_counts.remove(gone, Terms.of(gone), was_on)

    def put_namespace(world: World) -> None:
        world.pod_counts.put_namespace(name, labels)
        if labels is None:
            world.namespaces.pop(name, None)
        else:
            world.namespaces[name] = labels

    def ask(world: World) -> None:
        world.check(asked)
        world.check_terms(some)

    return draw(st.sampled_from([add, add, remove, put_namespace, ask]))


@given(st.lists(steps(), max_size=25), st.lists(selectors(), min_size=1, max_size=3), pods())
def test_tallies_that_are_updated_equal_a_recount(
    taken: list[Step], asked: list[PodSelector], about: Pod
) -> None:
    world = World()
    # Read before anything happens, so that every change has to update the tallies.
    world.check(tuple(asked))
    world.check_terms(about)
    for step in taken:
        step(world)
        world.check(tuple(asked))
        world.check_terms(about)


@given(st.lists(steps(), max_size=25), st.lists(selectors(), min_size=1, max_size=4), pods())
def test_tallies_that_are_dropped_and_recreated_equal_a_recount(
    taken: list[Step], asked: list[PodSelector], about: Pod
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pod_counts_module, "_TALLIES", 1)
        world = World()
        for step in taken:
            step(world)
            for selector in asked:
                world.check((selector,))
            world.check_terms(about)


def _world(*placed: tuple[Pod, int]) -> PodCounts:
    pod_counts = PodCounts()
    pod_counts.resize(ROWS)
    for there, row in placed:
        pod_counts.add(there, Terms.of(there), row)
    return pod_counts


def test_nothing_is_left_when_the_last_pod_is_gone() -> None:
    lone = pod("a").labels(app="web").anti_affinity_to(ZONE, app="web")
    pod_counts = _world((lone, 1))
    selector = PodSelector.of(("default",), LabelSelector(match_labels={"app": "web"}))
    tally = pod_counts.pods(selector)
    assert pod_counts.anti_affinity_against(lone)
    pod_counts.remove(lone, Terms.of(lone), 1)
    assert tally.total == 0
    assert pod_counts.anti_affinity_against(lone) == []
    pod_counts.add(lone, Terms.of(lone), 2)
    assert pod_counts.pods(selector).by_row.tolist() == [0, 0, 1, 0]


def test_a_tally_grows_with_the_rows() -> None:
    there = pod("a").labels(app="web").affinity_to(ZONE, app="web")
    pod_counts = _world((there, 1))
    selector = PodSelector.of(("default",), LabelSelector())
    pod_counts.pods(selector)
    pod_counts.affinity_towards(there)
    pod_counts.resize(2 * ROWS)
    pod_counts.add(there, Terms.of(there), 2 * ROWS - 1)
    expected = [0, 1, 0, 0, 0, 0, 0, 1]
    assert pod_counts.pods(selector).by_row.tolist() == expected
    assert [tally.by_row.tolist() for _, tally in pod_counts.affinity_towards(there)] == [expected]


def test_a_namespace_reported_again_without_a_change_causes_no_recount() -> None:
    pod_counts = _world((pod("a"), 0))
    selector = PodSelector.of((), LabelSelector(), namespace_selector=LabelSelector())
    pod_counts.put_namespace("default", {"team": "a"})
    tally = pod_counts.pods(selector)
    pod_counts.put_namespace("default", {"team": "a"})
    assert pod_counts.pods(selector) is tally


def test_pods_of_an_unknown_namespace_are_selected_as_if_it_had_no_labels() -> None:
    pod_counts = _world((pod("a", namespace="unknown"), 0))
    anyone = LabelSelector()
    outside = PodSelector.of((), anyone, namespace_selector=_expression("team", "DoesNotExist"))
    team = PodSelector.of((), anyone, namespace_selector=_expression("team", "Exists"))
    assert pod_counts.pods(outside).total == 1
    assert pod_counts.pods(team).total == 0


def test_selectors_with_the_same_meaning_are_equal_however_they_are_written() -> None:
    one = PodSelector.of(("a", "b"), LabelSelector(match_labels={"x": "1", "y": "2"}))
    other = PodSelector.of(("b", "a", "b"), LabelSelector(match_labels={"y": "2", "x": "1"}))
    assert one == other
    assert hash(one) == hash(other)
    assert one != PodSelector.of(("a",), LabelSelector(match_labels={"x": "1", "y": "2"}))
    assert one != PodSelector.of(("a", "b"), one.labels, terminating=False)


def test_an_invalid_selector_is_rejected_when_it_is_created() -> None:
    with pytest.raises(InvalidSelector):
        PodSelector.of(("a",), _expression("x", "In"))
    with pytest.raises(InvalidSelector):
        PodSelector.of(("a",), None, namespace_selector=_expression("x", "Near"))


def test_a_term_applies_to_the_namespace_of_its_pod_unless_it_names_others() -> None:
    plain = pod("a", namespace="red").affinity_to(ZONE, app="web")
    named = pod("a", namespace="red").affinity_to(ZONE, namespaces=("blue",), app="web")
    by_labels = pod("a", namespace="red").affinity_to(ZONE, namespace_labels={}, app="web")
    assert [Terms.of(p).affinity[0].selector.namespaces for p in (plain, named, by_labels)] == [
        ("red",),
        ("blue",),
        (),
    ]


def test_pods_that_are_alike_share_their_terms() -> None:
    assert Terms.of(pod("a").affinity_to(ZONE, app="web")) is Terms.of(pod("b").affinity_to(ZONE, app="web"))


def test_invalid_terms_of_a_pod_on_a_node_select_nothing() -> None:
    strange = pod("a").affinity_to(ZONE, app="web")
    affinity = strange.spec.affinity
    assert affinity is not None
    assert affinity.pod_affinity is not None
    [term] = affinity.pod_affinity.required_during_scheduling_ignored_during_execution
    term = msgspec.structs.replace(term, label_selector=_expression("x", "In"))
    near = msgspec.structs.replace(
        affinity.pod_affinity, required_during_scheduling_ignored_during_execution=(term,)
    )
    spec = msgspec.structs.replace(
        strange.spec, affinity=msgspec.structs.replace(affinity, pod_affinity=near)
    )
    strange = msgspec.structs.replace(strange, spec=spec)
    with pytest.raises(InvalidSelector):
        Terms.of(strange)
    assert not Terms.of_placed(strange)


def test_weights_of_anti_affinity_are_negative() -> None:
    terms = Terms.of(
        pod("a").affinity_to(ZONE, preferred=3, app="x").anti_affinity_to(ZONE, preferred=4, app="y")
    )
    assert [term.weight for term in terms.preferred] == [3, -4]


def test_a_tally_whose_selector_was_written_differently_can_be_dropped() -> None:
    pod_counts = _world((pod("a").labels(x="1", y="2"), 0))
    anywhere = LabelSelector()
    for labels in ({"x": "1", "y": "2"}, {"y": "2", "x": "1"}):
        selector = PodSelector.of((), LabelSelector(match_labels=labels), namespace_selector=anywhere)
        assert pod_counts.pods(selector).total == 1
    pod_counts.put_namespace("default", {"team": "a"})
    pod_counts.add(pod("b").labels(x="1", y="2"), Terms(), 1)
    assert pod_counts.pods(selector).by_row.tolist() == [1, 1, 0, 0]
