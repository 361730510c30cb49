"""Spreading over domains: the nodes that hard constraints exclude and soft ones prefer."""

import hypothesis.strategies as st
import msgspec
import numpy as np
import pytest
from hypothesis import given
from tests.plugins.one_plugin import cluster_of, concerned, rejections, scores, wakes

from longshore.api import (
    LabelSelector,
    LabelSelectorRequirement,
    Node,
    Pod,
    ReplicaSet,
    Service,
    TopologySpreadConstraint,
)
from longshore.cluster import ClusterState, PodInfo
from longshore.framework import SKIP, Action, Code, CycleState, Resource, Status
from longshore.plugins.podtopologyspread.plugin import REASON, REASON_MISSING_LABEL, PodTopologySpread
from longshore.testing import (
    NodeBuilder,
    PodBuilder,
    node,
    pod,
    replica_set,
    replication_controller,
    service,
    stateful_set,
)

PLUGIN = PodTopologySpread()
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
TOO_MANY = Status.unschedulable(REASON)
MISSING = Status.unresolvable(REASON_MISSING_LABEL)


def zoned(name: str, zone: str) -> NodeBuilder:
    return node(name).labels(**{ZONE: zone})


def webs(*nodes: str, namespace: str = "default") -> list[PodBuilder]:
    """One pod of the application on each of the nodes."""
    return [pod(f"web-{i}", namespace=namespace).labels(app="web").on(n) for i, n in enumerate(nodes)]


def constrained(incoming: PodBuilder, **fields: object) -> PodBuilder:
    """The pod with other fields in its last constraint."""
    *others, last = incoming.spec.topology_spread_constraints
    constraints = (*others, msgspec.structs.replace(last, **fields))
    return incoming._with(topology_spread_constraints=constraints)


A1, A2, B1 = zoned("a1", "a"), zoned("a2", "a"), zoned("b1", "b")
NODES = (A1, A2, B1)
WEB = pod("new").labels(app="web")
OVER_ZONES = WEB.spread(ZONE, app="web")


def test_pods_are_kept_out_of_domains_that_have_too_many() -> None:
    assert rejections(PLUGIN, OVER_ZONES, *NODES) == {}
    assert rejections(PLUGIN, OVER_ZONES, *NODES, *webs("a1")) == {"a1": TOO_MANY, "a2": TOO_MANY}
    assert rejections(PLUGIN, OVER_ZONES, *NODES, *webs("a1", "b1")) == {}


def test_a_larger_skew_allows_more() -> None:
    twice = WEB.spread(ZONE, max_skew=2, app="web")
    assert rejections(PLUGIN, twice, *NODES, *webs("a1")) == {}
    assert rejections(PLUGIN, twice, *NODES, *webs("a1", "a2")) == {"a1": TOO_MANY, "a2": TOO_MANY}


def test_a_pod_that_does_not_match_itself_adds_nothing_to_the_skew() -> None:
    other = pod("new").labels(app="db").spread(ZONE, app="web")
    assert rejections(PLUGIN, other, *NODES, *webs("a1")) == {}
    assert rejections(PLUGIN, other, *NODES, *webs("a1", "a2")) == {"a1": TOO_MANY, "a2": TOO_MANY}


def test_a_node_without_the_label_is_rejected_and_preemption_does_not_help() -> None:
    assert rejections(PLUGIN, OVER_ZONES, *NODES, node("bare")) == {"bare": MISSING}


def test_pods_of_other_namespaces_and_terminating_pods_do_not_count() -> None:
    [going] = webs("a1")
    elsewhere = webs("a1", namespace="other")
    assert rejections(PLUGIN, OVER_ZONES, *NODES, going.deleting(), *elsewhere) == {}


def test_pods_on_an_unknown_node_do_not_count() -> None:
    assert rejections(PLUGIN, OVER_ZONES, *NODES, *webs("gone")) == {}


def test_an_empty_selector_counts_no_pods_though_the_pod_itself_matches() -> None:
    everyone = WEB.spread(ZONE)
    assert rejections(PLUGIN, everyone, *NODES, *webs("a1", "a1", "a1")) == {}
    never = constrained(everyone, max_skew=0)
    assert set(rejections(PLUGIN, never, *NODES)) == {"a1", "a2", "b1"}


def test_no_selector_matches_no_pod() -> None:
    nobody = constrained(OVER_ZONES, label_selector=None, max_skew=0)
    assert rejections(PLUGIN, nobody, *NODES, *webs("a1")) == {}


def test_only_the_first_violated_constraint_is_reported() -> None:
    both = OVER_ZONES.spread(HOST, app="web")
    lacking_host = msgspec.structs.replace(
        zoned("a3", "a"), metadata=msgspec.structs.replace(node("a3").metadata, labels={ZONE: "a"})
    )
    lacking_zone = node("bare")
    refused = rejections(PLUGIN, both, *NODES, lacking_host, lacking_zone, *webs("a1"))
    assert refused == {"a1": TOO_MANY, "a2": TOO_MANY, "a3": TOO_MANY, "bare": MISSING}


def test_nodes_that_lack_one_of_the_keys_do_not_count_for_any_constraint() -> None:
    racked = [n.labels(rack="r1") for n in NODES]
    both = OVER_ZONES.spread("rack", max_skew=9, app="web")
    assert "b1" not in rejections(PLUGIN, both, *racked, zoned("b2", "b"), *webs("b2", "b2"))


def test_nodes_that_the_pod_may_not_use_do_not_count_by_default() -> None:
    choosy = OVER_ZONES.node_selector(disk="ssd")
    nodes = (A1.labels(disk="ssd"), A2, B1, zoned("c1", "c").labels(disk="ssd"))
    # The pod on a2 does not count, so that only the empty zones a and c are left.
    assert rejections(PLUGIN, choosy, *nodes, *webs("a2")) == {}
    ignoring = constrained(choosy, node_affinity_policy="Ignore")
    assert set(rejections(PLUGIN, ignoring, *nodes, *webs("a2"))) == {"a1", "a2"}
    required = OVER_ZONES.node_affinity("disk", "In", "ssd")
    assert rejections(PLUGIN, required, *nodes, *webs("a2")) == {}


def test_tainted_nodes_count_by_default() -> None:
    nodes = (A1, B1, zoned("c1", "c").taint("team"))
    assert set(rejections(PLUGIN, OVER_ZONES, *nodes, *webs("a1", "b1"))) == {"a1", "b1"}
    honouring = constrained(OVER_ZONES, node_taints_policy="Honor")
    assert rejections(PLUGIN, honouring, *nodes, *webs("a1", "b1")) == {}
    assert set(rejections(PLUGIN, honouring.tolerate("team"), *nodes, *webs("a1", "b1"))) == {"a1", "b1"}


def test_with_fewer_domains_than_min_domains_the_lowest_count_is_0() -> None:
    assert rejections(PLUGIN, OVER_ZONES, *NODES, *webs("a1", "b1")) == {}
    three = WEB.spread(ZONE, min_domains=3, app="web")
    assert set(rejections(PLUGIN, three, *NODES, *webs("a1", "b1"))) == {"a1", "a2", "b1"}
    assert rejections(PLUGIN, three, *NODES, zoned("c1", "c"), *webs("a1", "b1", "c1")) == {}


def test_labels_named_by_match_label_keys_narrow_the_selection() -> None:
    newer = constrained(OVER_ZONES.labels(version="2"), match_label_keys=("version", "absent"))
    old, new = webs("a1", "b1")
    assert rejections(PLUGIN, newer, *NODES, old.labels(version="1")) == {}
    assert set(rejections(PLUGIN, newer, *NODES, new.labels(version="2"))) == {"b1"}


def test_match_label_keys_do_not_replace_the_selector() -> None:
    contradicting = constrained(
        pod("new").labels(app="db").spread(ZONE, app="web"), match_label_keys=("app",)
    )
    assert rejections(PLUGIN, contradicting, *NODES, *webs("a1", "a1", "a1")) == {}


def test_a_value_that_no_node_has_any_longer_is_not_a_domain() -> None:
    cluster = cluster_of(*NODES, *webs("a1", "b1"))
    state, info = CycleState(), PodInfo.of(OVER_ZONES)
    assert PLUGIN.pre_filter(state, info, cluster) is None
    cluster.add_node(zoned("c1", "c"))
    assert _refused(CycleState(state.memo), OVER_ZONES, cluster) == {"a1", "a2", "b1"}
    cluster.remove_node("c1")
    assert _refused(CycleState(state.memo), OVER_ZONES, cluster) == set()


def _refused(state: CycleState, incoming: Pod, cluster: ClusterState) -> set[str]:
    info = PodInfo.of(incoming)
    assert PLUGIN.pre_filter(state, info, cluster) is None
    return _filtered(state, info, cluster)


def _filtered(state: CycleState, info: PodInfo, cluster: ClusterState) -> set[str]:
    nodes = cluster.all_nodes()
    refused = np.logical_or.reduce([np.asarray(r.where) for r in PLUGIN.filter(state, info, nodes)])
    return {cluster.node_name(row) for row in np.flatnonzero(refused & cluster.known).tolist()}


def test_an_invalid_selector_is_an_error() -> None:
    requirement = LabelSelectorRequirement(key="x", operator="In")
    strange = constrained(OVER_ZONES, label_selector=LabelSelector(match_expressions=(requirement,)))
    status = PLUGIN.pre_filter(CycleState(), PodInfo.of(strange), cluster_of(*NODES))
    assert status is not None
    assert status.code is Code.ERROR


# Dry runs with other pods.

zones = st.sampled_from(["a", "b", "c"])
names = st.sampled_from(["n0", "n1", "n2", "n3"])


@given(
    st.lists(zones, min_size=4, max_size=4),
    st.lists(names, max_size=8),
    st.lists(st.booleans(), max_size=6),
    st.sampled_from([None, 1, 3]),
    names,
)
def test_pods_of_one_node_in_a_dry_run_count_like_real_ones(
    where: list[str], there: list[str], changes: list[bool], domains: int | None, on: str
) -> None:
    nodes = [zoned(f"n{i}", zone) for i, zone in enumerate(where)]
    incoming = WEB.spread(ZONE, min_domains=domains, app="web").spread(HOST, max_skew=2, app="web")
    cluster = cluster_of(*nodes, *webs(*there))
    info, state = PodInfo.of(incoming), CycleState()
    assert PLUGIN.pre_filter(state, info, cluster) is None
    before = _filtered(state, info, cluster)
    imagined = state.clone()
    row = cluster.row(on)
    assert row is not None
    placed = [p for p in cluster.pods() if p.spec.node_name == on]
    for i, adding in enumerate(changes):
        if adding:
            one = pod(f"more-{i}").labels(app="web").on(on)
            PLUGIN.add_pod(imagined, info, PodInfo.of(one), cluster.one_node(row))
            placed.append(one)
            cluster.add_pod(one)
        elif placed:
            gone = placed.pop()
            PLUGIN.remove_pod(imagined, info, PodInfo.of(gone), cluster.one_node(row))
            cluster.remove_pod(gone)
        assert _filtered(imagined, info, cluster) == _refused(CycleState(), incoming, cluster)
    assert _filtered(state, info, cluster) == before


def test_a_dry_run_with_pods_that_do_not_count_changes_nothing() -> None:
    choosy = OVER_ZONES.node_selector(disk="ssd")
    cluster = cluster_of(A1, B1.labels(disk="ssd"), zoned("c1", "c").labels(disk="ssd"))
    info, state = PodInfo.of(choosy), CycleState()
    assert PLUGIN.pre_filter(state, info, cluster) is None
    for other, on in (
        (pod("x").labels(app="db"), "b1"),
        (pod("x", namespace="other").labels(app="web"), "b1"),
        (WEB, "a1"),
    ):
        row = cluster.row(on)
        assert row is not None
        PLUGIN.add_pod(state, info, PodInfo.of(other), cluster.one_node(row))
    assert _filtered(state, info, cluster) == set()


def test_removing_a_terminating_pod_in_a_dry_run_is_counted_as_in_kube_scheduler() -> None:
    going = pod("going").labels(app="web").on("a1").deleting()
    cluster = cluster_of(*NODES, *webs("a1"), going)
    info, state = PodInfo.of(OVER_ZONES), CycleState()
    assert PLUGIN.pre_filter(state, info, cluster) is None
    assert _filtered(state, info, cluster) == {"a1", "a2"}
    row = cluster.row("a1")
    assert row is not None
    PLUGIN.remove_pod(state, info, PodInfo.of(going), cluster.one_node(row))
    assert _filtered(state, info, cluster) == set()


# Scores.


def test_the_fewer_pods_in_its_domain_the_better_a_node() -> None:
    soft = WEB.spread(ZONE, hard=False, app="web")
    assert scores(PLUGIN, soft, *NODES, *webs("a1", "a2", "b1")) == {"a1": 33, "a2": 33, "b1": 100}
    assert scores(PLUGIN, soft, *NODES) == {"a1": 100, "a2": 100, "b1": 100}


def test_over_hosts_the_pods_of_the_node_itself_count() -> None:
    soft = WEB.spread(HOST, hard=False, app="web")
    # 3 and 1 times ln 5, rounded to 5 and 2.
    assert scores(PLUGIN, soft, *NODES, *webs("a1", "a1", "a1", "b1")) == {"a1": 0, "a2": 100, "b1": 60}


def test_nodes_that_lack_a_key_score_0() -> None:
    soft = WEB.spread(ZONE, hard=False, app="web")
    assert scores(PLUGIN, soft, A1, B1, node("bare"), *webs("a1")) == {"a1": 0, "b1": 100, "bare": 0}
    assert scores(PLUGIN, soft, node("bare"), node("bare2")) == {"bare": 0, "bare2": 0}


def test_pods_without_soft_constraints_are_not_scored() -> None:
    assert scores(PLUGIN, OVER_ZONES, *NODES, *webs("a1")) is None
    assert scores(PLUGIN, WEB, *NODES, *webs("a1")) is None


def test_pods_without_hard_constraints_are_not_filtered() -> None:
    soft = WEB.spread(ZONE, hard=False, app="web")
    assert PLUGIN.pre_filter(CycleState(), PodInfo.of(soft), cluster_of(*NODES)) is SKIP


# Defaults.


@pytest.mark.parametrize(
    "objects",
    [
        [service("s", app="web")],
        [service("s", app="web"), service("none"), service("other", app="db")],
        [replica_set("rs", app="web")],
    ],
)
def test_pods_of_a_service_or_a_controller_are_spread_by_default(objects: list[Service | ReplicaSet]) -> None:
    owned = WEB.owner("ReplicaSet", "rs")
    found = scores(PLUGIN, owned, *NODES, *webs("a1", "a1"), *objects)
    assert found is not None
    assert found["a1"] < found["a2"] < found["b1"]


def test_all_kinds_of_controllers_define_which_pods_belong_together() -> None:
    for owned, owner in (
        (WEB.owner("ReplicaSet", "o"), replica_set("o", app="web")),
        (WEB.owner("StatefulSet", "o"), stateful_set("o", app="web")),
        (
            WEB.owner("ReplicationController", "o", api_version="v1"),
            replication_controller("o", app="web"),
        ),
    ):
        assert scores(PLUGIN, owned, *NODES, *webs("a1"), owner) is not None
        assert scores(PLUGIN, owned, *NODES, *webs("a1")) is None
    unknown = WEB.owner("ReplicaSet", "o", api_version="example.com/v1")
    assert scores(PLUGIN, unknown, *NODES, *webs("a1"), replica_set("o", app="web")) is None


def test_services_of_other_namespaces_or_other_pods_do_not_matter() -> None:
    others = (service("s", namespace="other", app="web"), service("t", app="db"), service("u"))
    assert scores(PLUGIN, WEB, *NODES, *webs("a1"), *others) is None


def test_a_controller_that_contradicts_the_service_selects_no_pods() -> None:
    owned = WEB.owner("ReplicaSet", "rs")
    found = scores(PLUGIN, owned, *NODES, *webs("a1"), service("s", app="web"), replica_set("rs", app="db"))
    assert found == {"a1": 100, "a2": 100, "b1": 100}


def test_by_default_nodes_without_a_zone_count_too() -> None:
    found = scores(PLUGIN, WEB, node("n1"), node("n2"), *webs("n1"), service("s", app="web"))
    assert found is not None
    assert found["n1"] < found["n2"]


def test_a_service_or_controller_that_comes_later_is_noticed() -> None:
    cluster = cluster_of(*NODES, *webs("a1"))
    info, state = PodInfo.of(WEB.owner("ReplicaSet", "rs")), CycleState()
    nodes = cluster.all_nodes()
    assert PLUGIN.pre_score(state, info, nodes) is SKIP
    made = replica_set("rs", app="web")
    cluster.put(ReplicaSet, None, made)
    assert PLUGIN.pre_score(state, info, nodes) is None
    cluster.put(ReplicaSet, made, None)
    assert PLUGIN.pre_score(state, info, nodes) is SKIP
    cluster.put(Service, None, service("s", app="web"))
    assert PLUGIN.pre_score(state, info, nodes) is None


def test_the_profile_may_have_default_hard_constraints() -> None:
    plugin = PodTopologySpread(
        default_constraints=[
            TopologySpreadConstraint(max_skew=1, topology_key=ZONE, when_unsatisfiable="DoNotSchedule")
        ],
        defaulting_type="List",
    )
    there = (*NODES, *webs("a1"), service("s", app="web"))
    assert set(rejections(plugin, WEB, *there)) == {"a1", "a2"}
    assert rejections(plugin, WEB.spread(ZONE, max_skew=5, app="web"), *there) == {}
    assert rejections(plugin, WEB, *NODES, *webs("a1")) == {}
    assert scores(plugin, WEB, *there) is None


def test_the_profile_may_have_no_constraints_at_all() -> None:
    plugin = PodTopologySpread(defaulting_type="List")
    assert scores(plugin, WEB, *NODES, *webs("a1"), service("s", app="web")) is None
    assert not concerned(plugin, WEB)
    assert concerned(plugin, OVER_ZONES)


def test_pods_without_labels_owner_and_constraints_are_not_affected() -> None:
    assert not concerned(PLUGIN, pod("a"))
    assert concerned(PLUGIN, WEB)
    assert concerned(PLUGIN, pod("a").owner("ReplicaSet", "rs"))
    assert concerned(PLUGIN, pod("a").spread(ZONE, app="web"))


# What wakes a pod.


def _pod_event(action: Action, old: Pod | None, new: Pod | None, waiting: Pod = OVER_ZONES) -> bool:
    return wakes(PLUGIN, waiting, Resource.ASSIGNED_POD, action, old, new)


def test_new_and_deleted_matching_pods_wake_the_pod() -> None:
    [web] = webs("a1")
    assert _pod_event(Action.ADD, None, web)
    assert _pod_event(Action.DELETE, web, None)
    assert not _pod_event(Action.ADD, None, pod("x").labels(app="db").on("a1"))
    assert not _pod_event(Action.DELETE, pod("x").labels(app="db").on("a1"), None)


def test_pods_without_a_node_or_of_another_namespace_do_not_wake_the_pod() -> None:
    assert not _pod_event(Action.ADD, None, pod("x").labels(app="web"))
    assert _pod_event(Action.ADD, None, pod("x").labels(app="web").nominated("a1"))
    assert not _pod_event(Action.DELETE, pod("x", namespace="other").labels(app="web").on("a1"), None)


def test_a_label_change_wakes_if_the_pod_matches_now_or_no_longer() -> None:
    [web] = webs("a1")
    db = pod("web-0").labels(app="db").on("a1")
    assert _pod_event(Action.UPDATE_POD_LABEL, web, db)
    assert _pod_event(Action.UPDATE_POD_LABEL, db, web)
    assert not _pod_event(Action.UPDATE_POD_LABEL, web, web.labels(more="yes"))


def test_own_tolerations_wake_only_if_taints_are_honored() -> None:
    def woken(waiting: PodBuilder) -> bool:
        new = waiting.tolerate("team")
        return wakes(PLUGIN, waiting, Resource.UNSCHEDULED_POD, Action.UPDATE_POD_TOLERATION, waiting, new)

    assert woken(constrained(OVER_ZONES, node_taints_policy="Honor"))
    assert not woken(OVER_ZONES)


def _node_event(action: Action, old: Node | None, new: Node | None) -> bool:
    return wakes(PLUGIN, OVER_ZONES, Resource.NODE, action, old, new)


def test_new_and_deleted_nodes_with_the_keys_wake_the_pod() -> None:
    assert _node_event(Action.ADD, None, A1)
    assert _node_event(Action.DELETE, A1, None)
    assert not _node_event(Action.ADD, None, node("bare"))
    assert not _node_event(Action.DELETE, node("bare"), None)


def test_a_node_that_changes_its_domain_or_its_taints_wakes_the_pod() -> None:
    label, taint = Action.UPDATE_NODE_LABEL, Action.UPDATE_NODE_TAINT
    assert _node_event(label, node("a1"), A1)
    assert _node_event(label, A1, node("a1"))
    assert _node_event(label, A1, zoned("a1", "b"))
    assert not _node_event(label, A1, A1.labels(more="yes"))
    assert _node_event(taint, A1.taint("team"), A1)
    assert not _node_event(taint, node("a1").taint("team"), node("a1"))


def test_with_constraints_of_the_profile_any_pod_of_the_namespace_wakes() -> None:
    plugin = PodTopologySpread(
        default_constraints=[
            TopologySpreadConstraint(max_skew=1, topology_key=ZONE, when_unsatisfiable="DoNotSchedule")
        ],
        defaulting_type="List",
    )
    there = pod("x").on("a1")
    assert wakes(plugin, WEB, Resource.ASSIGNED_POD, Action.DELETE, there, None)
    elsewhere = pod("x", namespace="other").on("a1")
    assert not wakes(plugin, WEB, Resource.ASSIGNED_POD, Action.DELETE, elsewhere, None)
