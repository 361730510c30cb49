"""Node selectors and node affinity."""

import hypothesis.strategies as st
import pytest
from hypothesis import given
from tests.plugins.one_plugin import cluster_of, concerned, rejections, scores, wakes

from longshore.api import (
    NodeAffinity as Affinity,
)
from longshore.api import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)
from longshore.cluster import ClusterState, PodInfo
from longshore.cluster.node_selectors import selects_node
from longshore.framework import SKIP, Action, CycleState, Resource, Status
from longshore.plugins import NodeAffinity
from longshore.plugins.nodeaffinity import REASON, REASON_CONFLICT, REASON_ENFORCED
from longshore.testing import PodBuilder, node, pod

PLUGIN = NodeAffinity()
SSD, HDD = node("ssd").labels(disk="ssd", cores="8"), node("hdd").labels(disk="hdd", cores="64")
BARE = node("bare")


def requiring(*terms: NodeSelectorTerm) -> Affinity:
    return Affinity(required_during_scheduling_ignored_during_execution=NodeSelector(terms))


def labeled(key: str, operator: str, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key, operator, values),))


def named(*names: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(
        match_fields=tuple(NodeSelectorRequirement("metadata.name", "In", (name,)) for name in names)
    )


def with_terms(*terms: NodeSelectorTerm) -> PodBuilder:
    return pod("a")._with_node_affinity(
        required_during_scheduling_ignored_during_execution=NodeSelector(terms)
    )


def pre_filter(plugin: NodeAffinity, incoming: PodBuilder) -> object:
    return plugin.pre_filter(CycleState(), PodInfo.of(incoming), ClusterState())


def test_pods_without_selector_or_affinity_are_not_affected() -> None:
    assert not concerned(PLUGIN, pod("a"))
    assert pre_filter(PLUGIN, pod("a")) is SKIP


def test_a_node_selector_needs_every_label() -> None:
    refused = rejections(PLUGIN, pod("a").node_selector(disk="ssd", cores="8"), SSD, HDD, BARE)
    assert refused == dict.fromkeys(("hdd", "bare"), Status.unresolvable(REASON))


@pytest.mark.parametrize(
    ("operator", "values", "fitting"),
    [
        ("In", ("8", "16"), {"ssd"}),
        ("NotIn", ("8", "16"), {"hdd", "bare"}),
        ("Exists", (), {"ssd", "hdd"}),
        ("DoesNotExist", (), {"bare"}),
        ("Gt", ("8",), {"hdd"}),
        ("Lt", ("64",), {"ssd"}),
    ],
)
def test_each_operator_of_required_affinity_selects_nodes_by_its_rule(
    operator: str, values: tuple[str, ...], fitting: set[str]
) -> None:
    incoming = pod("a").node_affinity("cores", operator, *values)
    assert {"ssd", "hdd", "bare"} - set(rejections(PLUGIN, incoming, SSD, HDD, BARE)) == fitting


def test_one_term_is_enough_and_an_empty_one_matches_no_node() -> None:
    terms = (labeled("disk", "In", "ssd"), labeled("cores", "In", "64"))
    assert rejections(PLUGIN, with_terms(*terms), SSD, HDD) == {}
    assert set(rejections(PLUGIN, with_terms(NodeSelectorTerm()), SSD, HDD)) == {"ssd", "hdd"}


def test_selector_and_affinity_must_both_hold() -> None:
    incoming = pod("a").node_selector(disk="ssd").node_affinity("cores", "In", "64")
    assert set(rejections(PLUGIN, incoming, SSD, HDD)) == {"ssd", "hdd"}


def test_for_a_pod_with_a_node_name_only_that_node_is_examined() -> None:
    assert pre_filter(PLUGIN, pod("a").only_on("n7")) == {"n7"}
    assert pre_filter(PLUGIN, with_terms(named("n1"), named("n2"))) == {"n1", "n2"}
    assert set(rejections(PLUGIN, pod("a").only_on("ssd"), SSD, HDD)) == {"hdd"}


def test_with_a_term_that_names_no_node_all_nodes_are_examined() -> None:
    assert pre_filter(PLUGIN, with_terms(named("n1"), labeled("disk", "Exists"))) is None


def test_terms_that_each_name_two_nodes_at_once_are_in_conflict() -> None:
    assert pre_filter(PLUGIN, with_terms(named("n1", "n2"))) == Status.unresolvable(REASON_CONFLICT)


def test_the_affinity_of_the_profile_holds_for_all_pods_and_has_its_own_reason() -> None:
    enforcing = NodeAffinity(added_affinity=requiring(labeled("disk", "In", "ssd")))
    assert concerned(enforcing, pod("a"))
    refused = rejections(enforcing, pod("a"), SSD, HDD)
    assert refused == {"hdd": Status.unresolvable(REASON_ENFORCED)}


def test_a_node_excluded_by_both_gets_only_the_reason_of_the_profile() -> None:
    enforcing = NodeAffinity(added_affinity=requiring(labeled("disk", "In", "ssd")))
    refused = rejections(enforcing, pod("a").node_selector(cores="128"), SSD, HDD)
    assert refused == {"hdd": Status.unresolvable(REASON_ENFORCED), "ssd": Status.unresolvable(REASON)}


def test_the_weights_of_preferences_add_up_and_the_largest_sum_is_best() -> None:
    incoming = pod("a").node_affinity("disk", "In", "ssd", preferred=10)
    incoming = incoming.node_affinity("cores", "Exists", preferred=5)
    assert scores(PLUGIN, incoming, SSD, HDD, BARE) == {"ssd": 100, "hdd": 33, "bare": 0}


def test_preferences_that_no_node_meets_make_no_difference() -> None:
    incoming = pod("a").node_affinity("disk", "In", "tape", preferred=10)
    assert scores(PLUGIN, incoming, SSD, HDD) == {"ssd": 0, "hdd": 0}


def test_a_pod_without_preferences_is_not_scored() -> None:
    assert scores(PLUGIN, pod("a").node_selector(disk="ssd"), SSD, HDD) is None


def test_preferences_of_the_profile_are_added_to_those_of_the_pod() -> None:
    wish = PreferredSchedulingTerm(weight=10, preference=labeled("disk", "In", "hdd"))
    wishing = NodeAffinity(
        added_affinity=Affinity(preferred_during_scheduling_ignored_during_execution=(wish,))
    )
    assert scores(wishing, pod("a"), SSD, HDD) == {"ssd": 0, "hdd": 100}
    incoming = pod("a").node_affinity("disk", "In", "ssd", preferred=30)
    assert scores(wishing, incoming, SSD, HDD) == {"ssd": 100, "hdd": 33}


def test_a_node_that_begins_to_match_wakes_the_pod() -> None:
    waiting, change = pod("a").node_selector(disk="ssd"), (Resource.NODE, Action.UPDATE_NODE_LABEL)
    assert wakes(PLUGIN, waiting, Resource.NODE, Action.ADD, None, SSD)
    assert wakes(PLUGIN, waiting, *change, HDD, SSD)
    assert not wakes(PLUGIN, waiting, Resource.NODE, Action.ADD, None, HDD)
    assert not wakes(PLUGIN, waiting, *change, SSD, SSD.labels(more="x"))
    assert not wakes(PLUGIN, waiting, Resource.NODE, Action.UPDATE_NODE_TAINT, HDD, SSD)


def test_a_node_that_the_profile_rules_out_wakes_no_pod_until_it_no_longer_does() -> None:
    enforcing = NodeAffinity(added_affinity=requiring(labeled("disk", "In", "ssd")))
    assert not wakes(enforcing, pod("a"), Resource.NODE, Action.ADD, None, HDD)
    assert wakes(enforcing, pod("a"), Resource.NODE, Action.UPDATE_NODE_LABEL, HDD, SSD)


VALUES = st.sampled_from(["", "0", "7", "+7", "-3", "x", "9" * 30])
REQUIREMENTS = st.builds(
    NodeSelectorRequirement,
    st.sampled_from(["a", "b", "metadata.name"]),
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near"]),
    st.lists(st.one_of(VALUES, st.sampled_from(["n0", "n1"])), max_size=2).map(tuple),
)
LABELS = st.dictionaries(st.sampled_from(["a", "b"]), VALUES)
TERMS = st.builds(
    NodeSelectorTerm,
    st.lists(REQUIREMENTS, max_size=2).map(tuple),
    st.lists(REQUIREMENTS, max_size=1).map(tuple),
)


@given(st.lists(TERMS, max_size=2).map(tuple), st.lists(LABELS, min_size=1, max_size=3))
def test_selecting_one_node_agrees_with_selecting_all_at_once(
    terms: tuple[NodeSelectorTerm, ...], labels: list[dict[str, str]]
) -> None:
    nodes = [node(f"n{i}").labels(**given_labels) for i, given_labels in enumerate(labels)]
    cluster, selector = cluster_of(*nodes), NodeSelector(terms)
    at_once = cluster.labels.matches_selector(selector, slice(0, len(nodes)))
    assert at_once.tolist() == [selects_node(selector, each) for each in nodes]
