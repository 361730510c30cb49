"""However the state came about, it equals one built from what exists in the end."""

from collections.abc import Callable

import hypothesis.strategies as st
from hypothesis import given

from longshore.api import Node, Pod
from longshore.cluster import ClusterState, PodInfo
from longshore.testing.strategies import nodes, pods

NAMES = ("n1", "n2", "n3", "n4")

Step = Callable[[ClusterState, dict[str, Node], dict[str, tuple[Pod, str]]], None]


@st.composite
def steps(draw: st.DrawFn) -> Step:
    pod, node, name = (
        draw(pods()),
        draw(nodes(name=draw(st.sampled_from(NAMES)))),
        draw(st.sampled_from(NAMES)),
    )
    pod = pod.uid(draw(st.sampled_from(["first", "second"])))

    def add_node(state: ClusterState, known: dict[str, Node], _: dict[str, tuple[Pod, str]]) -> None:
        state.add_node(node)
        known[node.metadata.name] = node

    def remove_node(state: ClusterState, known: dict[str, Node], _: dict[str, tuple[Pod, str]]) -> None:
        state.remove_node(name)
        known.pop(name, None)

    def add_pod(state: ClusterState, _: dict[str, Node], placed: dict[str, tuple[Pod, str]]) -> None:
        state.add_pod(pod.on(name))
        placed[pod.key] = (pod, name)

    def end_pod(state: ClusterState, _: dict[str, Node], placed: dict[str, tuple[Pod, str]]) -> None:
        state.add_pod(pod.on(name).phase("Failed"))
        _drop(placed, pod)

    def remove_pod(state: ClusterState, _: dict[str, Node], placed: dict[str, tuple[Pod, str]]) -> None:
        state.remove_pod(pod)
        _drop(placed, pod)

    def assume(state: ClusterState, _: dict[str, Node], placed: dict[str, tuple[Pod, str]]) -> None:
        state.remove_predecessor(pod)
        state.assume(PodInfo.of(pod), name)
        placed[pod.key] = (pod, name)

    def assume_and_forget(
        state: ClusterState, _: dict[str, Node], placed: dict[str, tuple[Pod, str]]
    ) -> None:
        if pod.key not in placed:
            state.assume(PodInfo.of(pod), name)
            state.forget(pod)

    return draw(
        st.sampled_from([add_node, remove_node, add_pod, end_pod, remove_pod, assume, assume_and_forget])
    )


def _drop(placed: dict[str, tuple[Pod, str]], pod: Pod) -> None:
    if pod.key in placed and placed[pod.key][0].metadata.uid == pod.metadata.uid:
        del placed[pod.key]


def by_name(state: ClusterState) -> dict[str, object]:
    """Every number of the state under names instead of rows and columns; zeros are left out."""
    named: dict[str, object] = {}
    for name in NAMES:
        row = state.row(name)
        if row is None:
            continue
        columns = {r: state.column(r) for r in ("pods", "cpu", "memory", "example.com/gpu")}
        named[name] = (
            bool(state.known[row]),
            {
                r: int(state.allocatable[c, row])
                for r, c in columns.items()
                if c is not None and state.allocatable[c, row]
            },
            {
                r: int(state.requested[c, row])
                for r, c in columns.items()
                if c is not None and state.requested[c, row]
            },
            state.nonzero_requested[:, row].tolist(),
        )
    return named


@given(st.lists(steps(), max_size=40))
def test_columns_equal_a_recomputation_from_scratch(history: list[Step]) -> None:
    state, known, placed = ClusterState(), dict[str, Node](), dict[str, tuple[Pod, str]]()
    for step in history:
        step(state, known, placed)

    fresh = ClusterState()
    for node in known.values():
        fresh.add_node(node)
    for pod, name in placed.values():
        fresh.assume(PodInfo.of(pod), name)

    assert by_name(state) == by_name(fresh)
    assert state.node_count == len(known)
    assert sorted(pod.key for pod in state.pods()) == sorted(placed)
