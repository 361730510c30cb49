"""Whatever happened before, the state equals one that is built from what exists in the end."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import hypothesis.strategies as st
from hypothesis import HealthCheck, given, settings

from longshore.api import LabelSelector, Namespace, Node, Pod
from longshore.cluster import ClusterState, PodInfo, PodSelector, Term
from longshore.cluster.pod_counts import Tally
from longshore.testing import PodBuilder, namespace, pod
from longshore.testing.strategies import (
    HOSTNAME,
    IMAGES,
    LABELS,
    PORTS,
    TAINTS,
    ZONE,
    ZONES,
    choosy_pods,
    varied_nodes,
)

NAMES = ("n1", "n2", "n3", "n4")
RESOURCES = ("pods", "cpu", "memory", "example.com/gpu")
SELECTORS = tuple(
    PodSelector.of(
        namespaces,
        LabelSelector(wanted),
        namespace_selector=None if namespaces else LabelSelector({"team": "a"}),
        terminating=terminating,
    )
    for namespaces in (("default",), ())
    for wanted in ({}, {"app": "web"}, {"app": "db", "tier": "back"})
    for terminating in (True, False)
)
# Pods that the terms of others may select.
ASKING = tuple(pod("asking").labels(app=app, tier=tier) for app in LABELS["app"] for tier in LABELS["tier"])


@dataclass
class Truth:
    """What exists: nodes, pods with the node they are on, nominations, and the labels of the namespace."""

    nodes: dict[str, Node] = field(default_factory=dict)
    placed: dict[str, tuple[Pod, str]] = field(default_factory=dict)
    nominated: dict[str, tuple[Pod, str]] = field(default_factory=dict)
    namespace: Namespace | None = None

    def drop(self, gone: Pod) -> None:
        if gone.key in self.placed and self.placed[gone.key][0].metadata.uid == gone.metadata.uid:
            del self.placed[gone.key]


Step = Callable[[ClusterState, Truth], None]


@st.composite
def steps(draw: st.DrawFn) -> Step:
    name = draw(st.sampled_from(NAMES))
    node = draw(varied_nodes(name=draw(st.sampled_from(NAMES))))
    some: PodBuilder = draw(choosy_pods()).uid(draw(st.sampled_from(["first", "second"])))
    if draw(st.integers(0, 3)) == 0:
        some = some.deleting()

    def add_node(state: ClusterState, truth: Truth) -> None:
        state.add_node(node)
        truth.nodes[node.metadata.name] = node

    def remove_node(state: ClusterState, truth: Truth) -> None:
        state.remove_node(name)
        truth.nodes.pop(name, None)

    def add_pod(state: ClusterState, truth: Truth) -> None:
        state.add_pod(some.on(name))
        truth.placed[some.key] = (some, name)

    def end_pod(state: ClusterState, truth: Truth) -> None:
        state.add_pod(some.on(name).phase("Failed"))
        truth.drop(some)

    def remove_pod(state: ClusterState, truth: Truth) -> None:
        state.remove_pod(some)
        truth.drop(some)

    def assume(state: ClusterState, truth: Truth) -> None:
        state.remove_predecessor(some)
        state.assume(PodInfo.of(some), name)
        truth.placed[some.key] = (some, name)

    def assume_and_forget(state: ClusterState, truth: Truth) -> None:
        if some.key not in truth.placed:
            state.assume(PodInfo.of(some), name)
            state.forget(some)

    def nominate(state: ClusterState, truth: Truth) -> None:
        state.nominations.add(PodInfo.of(some), name)
        truth.nominated[some.metadata.uid] = (some, name)

    def withdraw_nomination(state: ClusterState, truth: Truth) -> None:
        state.nominations.remove(some.metadata.uid)
        truth.nominated.pop(some.metadata.uid, None)

    def label_namespace(state: ClusterState, truth: Truth) -> None:
        labeled = namespace("default", team=name)
        state.put(Namespace, truth.namespace, labeled)
        truth.namespace = labeled

    def label_namespace_as_selected(state: ClusterState, truth: Truth) -> None:
        labeled = namespace("default", team="a")
        state.put(Namespace, truth.namespace, labeled)
        truth.namespace = labeled

    def ask(state: ClusterState, _: Truth) -> None:
        """Read the columns that are created on first use and updated from then on."""
        by_name(state)

    return draw(
        st.sampled_from(
            [
                *(add_node, add_node, add_pod, add_pod, assume, ask),
                *(remove_node, end_pod, remove_pod, assume_and_forget, nominate, withdraw_nomination),
                *(label_namespace, label_namespace_as_selected),
            ]
        )
    )


def by_name(state: ClusterState) -> dict[str, object]:
    """Everything in the state, by names instead of rows and columns, without zeros."""
    rows = {name: row for name in NAMES if (row := state.row(name)) is not None}
    named: dict[str, object] = {name: of_node(state, name, row) for name, row in rows.items()}

    def counts(tally: Tally) -> dict[str, int]:
        return {name: int(tally.by_row[row]) for name, row in rows.items() if tally.by_row[row]}

    def carriers(found: Iterable[tuple[Term, Tally]]) -> dict[Term, dict[str, int]]:
        return {term: counts(tally) for term, tally in found}

    pod_counts = state.pod_counts
    named["pods selected"] = [(counts(t), t.total) for t in (pod_counts.pods(s) for s in SELECTORS)]
    named["in two ways"] = counts(pod_counts.pods(SELECTORS[0], SELECTORS[3]))
    named["terms"] = [
        [
            carriers(pod_counts.affinity_towards(each)),
            carriers(pod_counts.anti_affinity_against(each)),
            carriers(pod_counts.preferences_about(each)),
        ]
        for each in ASKING
    ]
    named["image spread"] = [state.images.find(image).nodes for image in IMAGES]
    named["examined"] = sorted(state.node_name(row) for row in state.tree.order.tolist())
    zones = state.domains.of(ZONE)
    sums = zones.sums(pod_counts.pods(SELECTORS[0]).by_row)
    named["by zone"] = {name: int(zones.at(sums, row)) for name, row in rows.items()}
    return named


def of_node(state: ClusterState, name: str, row: int) -> dict[str, object]:
    columns = {r: c for r in RESOURCES if (c := state.column(r)) is not None}
    every = slice(0, len(state.known))
    wanted = [(ZONE, zone) for zone in ZONES] + [("disk", "ssd"), (HOSTNAME, name)]
    return {
        "known": bool(state.known[row]),
        "cordoned": bool(state.unschedulable[row]),
        "allocatable": {
            r: int(state.allocatable[c, row]) for r, c in columns.items() if state.allocatable[c, row]
        },
        "requested": {r: int(state.requested[c, row]) for r, c in columns.items() if state.requested[c, row]},
        "nonzero": state.nonzero_requested[:, row].tolist(),
        "labels": [label for label in wanted if state.labels.matches_all(dict([label]), every)[row]],
        "taints": int(
            state.taints.count(lambda taints: sum(1 << TAINTS.index(t.key) for t in taints), every)[row]
        ),
        "ports": [
            (address, protocol, port)
            for address in ("0.0.0.0", "10.0.0.1", "10.0.0.2")
            for protocol in ("TCP", "UDP")
            for port in PORTS
            if state.ports.clashes([(address, protocol, port)], len(state.known))[row]
        ],
        "images": [int(state.images.find(image).sizes[row]) for image in IMAGES],
        "pods": sorted(info.pod.key for info in state.pods_on(row)),
        "nominated": sorted(info.pod.metadata.uid for info in state.nominations.on(name)),
    }


# Drawing long histories can be slow on a busy machine.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(steps(), max_size=40))
def test_the_state_equals_a_recomputation_from_scratch(history: list[Step]) -> None:
    state, truth = ClusterState(), Truth()
    for step in history:
        step(state, truth)

    fresh = ClusterState()
    if truth.namespace is not None:
        fresh.put(Namespace, None, truth.namespace)
    for node in truth.nodes.values():
        fresh.add_node(node)
    for placed, name in truth.placed.values():
        fresh.assume(PodInfo.of(placed), name)
    for nominee, name in truth.nominated.values():
        fresh.nominations.add(PodInfo.of(nominee), name)

    assert by_name(state) == by_name(fresh)
    assert state.node_count == len(truth.nodes)
    assert sorted(each.key for each in state.pods()) == sorted(truth.placed)
