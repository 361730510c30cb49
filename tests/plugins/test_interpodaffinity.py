"""Affinity between pods: required and preferred terms, of the incoming pod and of pods on the nodes."""

import hypothesis.strategies as st
import msgspec
import numpy as np
from hypothesis import given
from tests.plugins.one_plugin import cluster_of, rejections, scores, wakes

from longshore.api import LabelSelector, LabelSelectorRequirement, Node, Pod
from longshore.cluster import ClusterState, PodInfo
from longshore.framework import SKIP, Action, Code, CycleState, Resource, Status
from longshore.plugins.interpodaffinity.plugin import (
    REASON_AFFINITY,
    REASON_ANTI_AFFINITY,
    REASON_EXISTING_ANTI_AFFINITY,
    InterPodAffinity,
)
from longshore.testing import NodeBuilder, PodBuilder, namespace, node, pod

PLUGIN = InterPodAffinity()
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
LONELY = Status.unresolvable(REASON_AFFINITY)
TOO_NEAR = Status.unschedulable(REASON_ANTI_AFFINITY)
UNWANTED = Status.unschedulable(REASON_EXISTING_ANTI_AFFINITY)


def zoned(name: str, zone: str) -> NodeBuilder:
    return node(name).labels(**{ZONE: zone})


A1, A2, B1, BARE = zoned("a1", "a"), zoned("a2", "a"), zoned("b1", "b"), node("bare")
NODES = (A1, A2, B1, BARE)
WEB, DB = pod("web").labels(app="web"), pod("db").labels(app="db")


# What the pod requires.


def test_a_pod_goes_to_the_domain_of_pods_that_its_affinity_selects() -> None:
    near_db = WEB.affinity_to(ZONE, app="db")
    refused = rejections(PLUGIN, near_db, *NODES, DB.on("a1"))
    assert refused == {"b1": LONELY, "bare": LONELY}


def test_without_a_selected_pod_no_node_is_feasible() -> None:
    refused = rejections(PLUGIN, WEB.affinity_to(ZONE, app="db"), *NODES, WEB.on("a1"))
    assert set(refused) == {"a1", "a2", "b1", "bare"}


def test_the_first_pod_of_a_group_goes_to_any_node_with_the_key() -> None:
    first = pod("new").labels(app="web").affinity_to(ZONE, app="web")
    assert rejections(PLUGIN, first, *NODES) == {"bare": LONELY}
    # A pod that is in no domain does not count.
    assert rejections(PLUGIN, first, *NODES, WEB.on("bare")) == {"bare": LONELY}
    assert set(rejections(PLUGIN, first, *NODES, WEB.on("a1"))) == {"b1", "bare"}


def test_one_pod_must_match_all_terms() -> None:
    picky = WEB.affinity_to(ZONE, app="db").affinity_to(HOST, tier="back")
    separate = (DB.on("a1"), pod("x").labels(tier="back").on("a1"))
    assert set(rejections(PLUGIN, picky, *NODES, *separate)) == {"a1", "a2", "b1", "bare"}
    both = DB.labels(tier="back").on("a1")
    assert set(rejections(PLUGIN, picky, *NODES, both)) == {"a2", "b1", "bare"}


def test_the_first_pod_must_match_all_of_its_own_terms() -> None:
    half = WEB.affinity_to(ZONE, app="web").affinity_to(ZONE, tier="back")
    assert set(rejections(PLUGIN, half, *NODES)) == {"a1", "a2", "b1", "bare"}
    assert rejections(PLUGIN, half.labels(tier="back"), *NODES) == {"bare": LONELY}


def test_a_pod_avoids_the_domains_of_pods_that_its_anti_affinity_selects() -> None:
    far = WEB.anti_affinity_to(ZONE, app="db")
    assert rejections(PLUGIN, far, *NODES, DB.on("a1")) == {"a1": TOO_NEAR, "a2": TOO_NEAR}
    assert rejections(PLUGIN, far, *NODES, DB.on("bare")) == {}


def test_one_anti_affinity_term_is_enough() -> None:
    far = WEB.anti_affinity_to(ZONE, app="db").anti_affinity_to(HOST, app="cache")
    refused = rejections(PLUGIN, far, *NODES, DB.on("a1"), pod("x").labels(app="cache").on("b1"))
    assert set(refused) == {"a1", "a2", "b1"}


def test_terminating_pods_count() -> None:
    assert "a1" in rejections(PLUGIN, WEB.anti_affinity_to(ZONE, app="db"), *NODES, DB.deleting().on("a1"))


# What pods on the nodes require.


def test_anti_affinity_of_pods_on_nodes_keeps_others_away() -> None:
    jealous = DB.anti_affinity_to(ZONE, app="web").on("a1")
    assert rejections(PLUGIN, WEB, *NODES, jealous) == {"a1": UNWANTED, "a2": UNWANTED}
    assert rejections(PLUGIN, pod("x").labels(app="other"), *NODES, jealous) == {}


def test_only_the_first_reason_of_a_node_is_reported() -> None:
    jealous = DB.anti_affinity_to(ZONE, app="web").on("a1")
    choosy = WEB.affinity_to(ZONE, app="db").anti_affinity_to(HOST, app="db")
    refused = rejections(PLUGIN, choosy, *NODES, jealous)
    assert refused == {"a1": TOO_NEAR, "a2": UNWANTED, "b1": LONELY, "bare": LONELY}


def test_pods_that_no_term_selects_are_skipped() -> None:
    cluster = cluster_of(*NODES, DB.anti_affinity_to(ZONE, app="other").on("a1"))
    assert PLUGIN.pre_filter(CycleState(), PodInfo.of(WEB), cluster) is SKIP
    assert PLUGIN.pre_score(CycleState(), PodInfo.of(WEB), cluster.all_nodes()) is SKIP
    # A term does not apply if its pod is in no domain of the key.
    outside = cluster_of(*NODES, DB.anti_affinity_to(ZONE, app="web").on("bare"))
    assert PLUGIN.pre_filter(CycleState(), PodInfo.of(WEB), outside) is SKIP


# Namespaces.


def test_terms_apply_to_the_namespace_of_the_pod_unless_they_name_others() -> None:
    elsewhere = pod("db", namespace="other").labels(app="db").on("a1")
    assert rejections(PLUGIN, WEB.anti_affinity_to(ZONE, app="db"), *NODES, elsewhere) == {}
    named = WEB.anti_affinity_to(ZONE, namespaces=("other",), app="db")
    assert set(rejections(PLUGIN, named, *NODES, elsewhere)) == {"a1", "a2"}
    assert rejections(PLUGIN, named, *NODES, DB.on("a1")) == {}


def test_terms_may_select_namespaces_by_their_labels() -> None:
    elsewhere = pod("db", namespace="other").labels(app="db").on("a1")
    by_team = WEB.anti_affinity_to(ZONE, namespace_labels={"team": "blue"}, app="db")
    blue, red = namespace("other", team="blue"), namespace("other", team="red")
    assert set(rejections(PLUGIN, by_team, *NODES, elsewhere, blue)) == {"a1", "a2"}
    assert rejections(PLUGIN, by_team, *NODES, elsewhere, red) == {}
    assert rejections(PLUGIN, by_team, *NODES, elsewhere) == {}
    anywhere = WEB.anti_affinity_to(ZONE, namespace_labels={}, app="db")
    assert set(rejections(PLUGIN, anywhere, *NODES, elsewhere)) == {"a1", "a2"}


def _with_namespace_selector(wants: PodBuilder, selector: LabelSelector) -> PodBuilder:
    affinity = wants.spec.affinity
    assert affinity is not None
    assert affinity.pod_anti_affinity is not None
    [term] = affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution
    term = msgspec.structs.replace(term, namespace_selector=selector)
    far = msgspec.structs.replace(
        affinity.pod_anti_affinity, required_during_scheduling_ignored_during_execution=(term,)
    )
    return wants._with(affinity=msgspec.structs.replace(affinity, pod_anti_affinity=far))


def test_a_namespace_selector_that_matches_empty_labels_selects_all_namespaces_for_an_incoming_pod() -> None:
    not_red = LabelSelector(match_expressions=(LabelSelectorRequirement("team", "NotIn", ("red",)),))
    red = namespace("other", team="red")
    wants = _with_namespace_selector(WEB.anti_affinity_to(ZONE, app="db"), not_red)
    elsewhere = pod("db", namespace="other").labels(app="db").on("a1")
    assert set(rejections(PLUGIN, wants, *NODES, elsewhere, red)) == {"a1", "a2"}
    # The selector of a pod on a node is applied as written.
    jealous = _with_namespace_selector(DB.anti_affinity_to(ZONE, app="web"), not_red).on("a1")
    incoming = pod("web", namespace="other").labels(app="web")
    assert rejections(PLUGIN, incoming, *NODES, jealous, red) == {}
    assert set(rejections(PLUGIN, incoming, *NODES, jealous)) == {"a1", "a2"}


def test_an_invalid_selector_makes_the_pod_unschedulable() -> None:
    strange = LabelSelector(match_expressions=(LabelSelectorRequirement("team", "Near"),))
    wants = _with_namespace_selector(WEB.anti_affinity_to(ZONE, app="db"), strange)
    status = PLUGIN.pre_filter(CycleState(), PodInfo.of(wants), cluster_of(*NODES))
    assert status is not None
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message.startswith("parsing pod: ")


# Dry runs with other pods.

names = st.sampled_from(["a1", "a2", "b1", "bare"])
kinds = st.sampled_from(
    [
        WEB,
        DB,
        DB.labels(tier="back"),
        DB.anti_affinity_to(ZONE, app="web"),
        WEB.anti_affinity_to(HOST, app="web").anti_affinity_to(ZONE, tier="back"),
    ]
)
incomings = st.sampled_from(
    [
        WEB,
        WEB.affinity_to(ZONE, app="web"),
        WEB.affinity_to(ZONE, app="db").affinity_to(HOST, tier="back"),
        WEB.anti_affinity_to(ZONE, app="web").anti_affinity_to(HOST, app="db"),
        WEB.affinity_to(ZONE, app="db").anti_affinity_to(HOST, app="web"),
    ]
)


@given(
    incomings,
    st.lists(st.tuples(kinds, names), max_size=5),
    st.lists(st.tuples(st.booleans(), kinds, names), max_size=5),
)
def test_pods_in_a_dry_run_count_like_real_ones(
    kind: PodBuilder,
    there: list[tuple[PodBuilder, str]],
    changes: list[tuple[bool, PodBuilder, str]],
) -> None:
    placed = [_named(p, f"p{i}").on(n) for i, (p, n) in enumerate(there)]
    cluster, info, state = cluster_of(*NODES, *placed), PodInfo.of(_named(kind, "new")), CycleState()
    if PLUGIN.pre_filter(state, info, cluster) is SKIP:
        return
    before = _filtered(state, info, cluster)
    imagined = state.clone()
    for i, (adding, added, name) in enumerate(changes):
        if adding:
            one = _named(added, f"more-{i}").on(name)
            PLUGIN.add_pod(imagined, info, PodInfo.of(one), cluster.one_node(_row(cluster, name)))
            placed.append(one)
            cluster.add_pod(one)
        elif placed:
            gone = placed.pop(0)
            on = cluster.one_node(_row(cluster, gone.spec.node_name))
            PLUGIN.remove_pod(imagined, info, PodInfo.of(gone), on)
            cluster.remove_pod(gone)
        fresh = CycleState()
        skipped = PLUGIN.pre_filter(fresh, info, cluster) is SKIP
        assert _filtered(imagined, info, cluster) == ({} if skipped else _filtered(fresh, info, cluster))
    assert _filtered(state, info, cluster) == before


def _named(of: PodBuilder, name: str) -> PodBuilder:
    return msgspec.structs.replace(of, metadata=msgspec.structs.replace(of.metadata, name=name, uid=name))


def _row(cluster: ClusterState, name: str) -> int:
    row = cluster.row(name)
    assert row is not None
    return row


def _filtered(state: CycleState, info: PodInfo, cluster: ClusterState) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for rejection in PLUGIN.filter(state, info, cluster.all_nodes()):
        for row in np.flatnonzero(rejection.where).tolist():
            found.setdefault(cluster.node_name(row), []).append(rejection.reason)
    return found


# Scores.


def test_preferred_affinity_raises_the_score_and_anti_affinity_lowers_it() -> None:
    drawn = WEB.affinity_to(ZONE, preferred=10, app="db")
    assert scores(PLUGIN, drawn, *NODES, DB.on("a1")) == {"a1": 100, "a2": 100, "b1": 0, "bare": 0}
    repelled = WEB.anti_affinity_to(ZONE, preferred=10, app="db")
    assert scores(PLUGIN, repelled, *NODES, DB.on("a1")) == {"a1": 0, "a2": 0, "b1": 100, "bare": 100}


def test_weights_of_all_terms_and_pods_add_up() -> None:
    drawn = WEB.affinity_to(ZONE, preferred=4, app="db").affinity_to(HOST, preferred=1, app="db")
    there = (DB.on("a1"), _named(DB, "db2").on("a1"), _named(DB, "db3").on("b1"))
    # 10, 8 and 5 of 10, truncated.
    assert scores(PLUGIN, drawn, *NODES, *there) == {"a1": 100, "a2": 80, "b1": 50, "bare": 0}
    third = WEB.affinity_to(HOST, preferred=1, app="db")
    assert scores(PLUGIN, third, A1, B1, BARE, *there, _named(DB, "db4").on("a1")) == {
        "a1": 100,
        "b1": 33,
        "bare": 0,
    }


def test_preferences_of_pods_on_the_nodes_count_as_much() -> None:
    friend = DB.affinity_to(ZONE, preferred=3, app="web").on("a1")
    foe = _named(DB, "foe").anti_affinity_to(ZONE, preferred=1, app="web").on("b1")
    assert scores(PLUGIN, WEB, *NODES, friend, foe) == {"a1": 100, "a2": 100, "b1": 0, "bare": 25}


def test_required_affinity_of_pods_on_nodes_counts_with_the_hard_weight() -> None:
    clingy = DB.affinity_to(ZONE, app="web").on("a1")
    repelled = WEB.anti_affinity_to(HOST, preferred=2, app="db")
    assert scores(PLUGIN, WEB, *NODES, clingy) == {"a1": 100, "a2": 100, "b1": 0, "bare": 0}
    assert scores(PLUGIN, repelled, *NODES, clingy) == {"a1": 0, "a2": 100, "b1": 50, "bare": 50}
    heavy = InterPodAffinity(hard_pod_affinity_weight=10)
    assert scores(heavy, repelled, *NODES, clingy) == {"a1": 80, "a2": 100, "b1": 0, "bare": 0}
    weightless = InterPodAffinity(hard_pod_affinity_weight=0)
    assert scores(weightless, WEB, *NODES, clingy) is None


def test_preferences_of_pods_on_nodes_may_be_ignored_for_pods_without_any() -> None:
    plugin = InterPodAffinity(ignore_preferred_terms_of_existing_pods=True)
    friend = DB.affinity_to(ZONE, preferred=3, app="web").on("a1")
    assert scores(plugin, WEB, *NODES, friend) is None
    opinionated = WEB.affinity_to(ZONE, preferred=1, app="nobody")
    assert scores(plugin, opinionated, *NODES, friend) == {"a1": 100, "a2": 100, "b1": 0, "bare": 0}


def test_weights_that_cancel_each_other_out_are_still_scored() -> None:
    torn = WEB.affinity_to(ZONE, preferred=1, app="db").anti_affinity_to(ZONE, preferred=1, app="db")
    assert scores(PLUGIN, torn, A1, B1, DB.on("a1")) == {"a1": 0, "b1": 0}


def test_preferences_that_no_pod_in_any_domain_meets_are_skipped() -> None:
    drawn = WEB.affinity_to(ZONE, preferred=1, app="db")
    assert scores(PLUGIN, drawn, *NODES) is None
    assert scores(PLUGIN, drawn, *NODES, DB.on("bare")) is None


# What wakes a pod.


def _pod_event(waiting: Pod, action: Action, old: Pod | None, new: Pod | None) -> bool:
    return wakes(PLUGIN, waiting, Resource.ASSIGNED_POD, action, old, new)


def test_a_new_pod_that_the_affinity_selects_wakes_the_pod() -> None:
    waiting = WEB.affinity_to(ZONE, app="db").affinity_to(HOST, tier="back")
    assert _pod_event(waiting, Action.ADD, None, DB.labels(tier="back").on("a1"))
    assert not _pod_event(waiting, Action.ADD, None, DB.on("a1"))
    assert not _pod_event(waiting, Action.ADD, None, DB.labels(tier="back"))
    assert not _pod_event(waiting, Action.DELETE, DB.labels(tier="back").on("a1"), None)


def test_the_end_of_a_pod_that_the_anti_affinity_selects_wakes_the_pod() -> None:
    waiting = WEB.anti_affinity_to(ZONE, app="db")
    assert _pod_event(waiting, Action.DELETE, DB.on("a1"), None)
    assert not _pod_event(waiting, Action.DELETE, WEB.on("a1"), None)
    assert not _pod_event(waiting, Action.ADD, None, DB.on("a1"))


def test_the_end_of_a_pod_with_anti_affinity_to_the_pod_wakes_it() -> None:
    jealous = DB.anti_affinity_to(ZONE, app="web").on("a1")
    assert _pod_event(WEB, Action.DELETE, jealous, None)
    assert not _pod_event(pod("x").labels(app="other"), Action.DELETE, jealous, None)


def test_label_changes_wake_if_they_fulfill_affinity_or_end_a_conflict() -> None:
    label = Action.UPDATE_POD_LABEL
    db, other = DB.on("a1"), DB.labels(app="other").on("a1")
    assert _pod_event(WEB.affinity_to(ZONE, app="db"), label, other, db)
    assert not _pod_event(WEB.affinity_to(ZONE, app="db"), label, db, other)
    assert _pod_event(WEB.anti_affinity_to(ZONE, app="db"), label, db, other)
    assert not _pod_event(WEB.anti_affinity_to(ZONE, app="db"), label, other, db)


def test_its_own_new_labels_wake_it() -> None:
    assert wakes(PLUGIN, WEB, Resource.UNSCHEDULED_POD, Action.UPDATE_POD_LABEL, WEB, WEB.labels(app="x"))


def test_with_a_namespace_selector_matching_pods_of_any_namespace_wake_it() -> None:
    waiting = WEB.affinity_to(ZONE, namespace_labels={"team": "blue"}, app="db")
    assert _pod_event(waiting, Action.ADD, None, pod("db", namespace="other").labels(app="db").on("a1"))
    plain = WEB.affinity_to(ZONE, app="db")
    assert not _pod_event(plain, Action.ADD, None, pod("db", namespace="other").labels(app="db").on("a1"))


def _node_event(waiting: Pod, old: Node | None, new: Node) -> bool:
    action = Action.ADD if old is None else Action.UPDATE_NODE_LABEL
    return wakes(PLUGIN, waiting, Resource.NODE, action, old, new)


def test_nodes_that_join_a_domain_wake_pods_with_affinity() -> None:
    waiting = WEB.affinity_to(ZONE, app="db")
    assert _node_event(waiting, None, A1)
    assert not _node_event(waiting, None, BARE)
    assert _node_event(waiting, node("a1"), A1)
    assert _node_event(waiting, zoned("a1", "b"), A1)
    assert not _node_event(waiting, A1, node("a1"))
    assert not _node_event(waiting, A1, A1.labels(more="yes"))


def test_new_nodes_and_nodes_that_leave_a_domain_wake_pods_with_anti_affinity() -> None:
    waiting = WEB.anti_affinity_to(ZONE, app="db")
    assert _node_event(waiting, None, A1)
    assert _node_event(waiting, None, BARE)
    assert _node_event(waiting, A1, node("a1"))
    assert _node_event(waiting, zoned("a1", "b"), A1)
    assert not _node_event(waiting, node("a1"), A1)
    assert not _node_event(waiting, A1, A1.labels(more="yes"))
