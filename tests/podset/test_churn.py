"""After any events and some rest, plans agree with the pods, and no pod of a set is forgotten."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, note, settings
from msgspec.structs import replace
from tests.podset.simulated_sets import WORKERS, Sets, address, member, planner, trigger, worker

from longshore.api import Pod
from longshore.api.pod_set import PLANNING, POD_SET_LABEL, SCHEDULE, SchedulePlan, ScheduleTrigger
from longshore.cluster import PodInfo
from longshore.podset.controller import PodSetController
from longshore.podset.members import GATE, Member
from longshore.podset.stages import Stage
from longshore.sim import Faults
from longshore.testing import NodeBuilder, pod

END = 30.0
REST = 10.0
SETS = ("one", "two")
NODES = ("n1", "n2", "n3")
# This node is cordoned: pods are only bound to it by hand.
ASIDE = "aside"
# The stages that a pod without a node may have at rest. In other stages it is on its way to a node.
AT_REST = {Stage.HELD, Stage.LEFT_OUT, Stage.BARRED, Stage.ALONE}

# Steps take a simulation and a unique number.
Happening = partial[None]


def put_pod(sets: Sets, number: int, *, name: str, podset: str, cpu: str, gated: bool) -> None:
    made = member(name, podset=podset, cpu=cpu).uid(f"uid-{number}")
    sets.delete(made)
    sets.create(made.gates(GATE) if gated else made)


def change_pod(sets: Sets, _number: int, *, name: str, podset: str, kind: str) -> None:
    found = sets.cluster.pods.get(f"default/{name}")
    if found is None:
        return
    meta = found.metadata
    match kind:
        case "delete":
            sets.delete(found)
        case "terminate":
            sets.update(replace(found, metadata=replace(meta, deletion_timestamp="2027-01-15T08:00:00Z")))
        case "end":
            sets.update(replace(found, status=replace(found.status, phase="Failed")))
        case "bind elsewhere":
            sets.update(replace(found, spec=replace(found.spec, node_name=found.spec.node_name or ASIDE)))
        case "move":
            sets.update(replace(found, metadata=replace(meta, labels={**meta.labels, POD_SET_LABEL: podset})))


def change_node(sets: Sets, _number: int, *, name: str, kind: str) -> None:
    changed: Mapping[str, NodeBuilder] = {
        "cordon": worker(name).unschedulable(),
        "taint": worker(name).taint("broken"),
        "mend": worker(name),
    }
    if kind == "delete":
        sets.delete(worker(name))
    else:
        sets.create(changed[kind])


def set_state(sets: Sets, _number: int, *, podset: str, state: str, whole: bool) -> None:
    found = sets.cluster.others.get(ScheduleTrigger, {}).get(f"default/{podset}")
    if isinstance(found, ScheduleTrigger):
        sets.update(replace(found, spec=replace(found.spec, state=state, all_or_nothing=whole)))


def drop_trigger(sets: Sets, _number: int, *, podset: str) -> None:
    sets.delete(trigger(podset, podset=podset))


def drop_plan(sets: Sets, _number: int, *, podset: str) -> None:
    found = sets.plan(podset)
    if found is not None:
        sets.delete(found)


def answer(kind: str, sets: Sets) -> Mapping[str, str]:
    names = [each.metadata.name for each in sets.cluster.pods.values()]
    match kind:
        case "broken":
            raise RuntimeError("out of order")
        case "none":
            return {}
        case "nonsense":
            return dict.fromkeys(names, "nowhere")
    return dict.fromkeys(names, "n1")


def change_planner(sets: Sets, _number: int, *, kind: str) -> None:
    if kind == "gone":
        sets.delete(planner())
    else:
        sets.create(planner())
        sets.start_planner(address(), lambda _request: answer(kind, sets))


def start_again(sets: Sets, _number: int, *, seed: int) -> None:
    sets.start_again(seed)


@st.composite
def happenings(draw: st.DrawFn) -> Happening:
    podset, other = draw(st.permutations(SETS))
    name = draw(st.sampled_from("abcdef"))
    node = draw(st.sampled_from(NODES))
    match draw(st.sampled_from(["pod"] * 4 + ["change", "node", "trigger", "planner", "plan", "restart"])):
        case "pod":
            cpu, gated = draw(st.sampled_from(["500m", "1", "3"])), draw(st.booleans())
            return partial(put_pod, name=name, podset=podset, cpu=cpu, gated=gated)
        case "change":
            kind = draw(st.sampled_from(["delete", "delete", "terminate", "end", "move", "bind elsewhere"]))
            return partial(change_pod, name=name, podset=other, kind=kind)
        case "node":
            kind = draw(st.sampled_from(["cordon", "taint", "mend", "delete"]))
            return partial(change_node, name=node, kind=kind)
        case "trigger":
            state, whole = draw(st.sampled_from([PLANNING, SCHEDULE, SCHEDULE])), draw(st.booleans())
            if draw(st.integers(0, 5)) == 0:
                return partial(drop_trigger, podset=podset)
            return partial(set_state, podset=podset, state=state, whole=whole)
        case "planner":
            kind = draw(st.sampled_from(["gone", "broken", "none", "nonsense", "all on one"]))
            return partial(change_planner, kind=kind)
        case "plan":
            return partial(drop_plan, podset=podset)
    seed = draw(st.integers(0, 100))
    return partial(start_again, seed=seed)


LATENCY = st.sampled_from([0.0, 0.01, 0.2])
CHANCE = st.sampled_from([0.0, 0.1, 0.3])


@st.composite
def scenes(draw: st.DrawFn) -> Sets:
    def faults() -> Faults:
        return Faults(draw(CHANCE), draw(CHANCE), draw(CHANCE), until=END)

    scenario: dict[str, Any] = {
        "args": {"plannerFallback": draw(st.sampled_from(["built-in", "built-in", "none"]))},
        "bind_latency": draw(LATENCY),
        "write_latency": draw(LATENCY),
        "answer_latency": draw(LATENCY),
        "watch_latency": draw(LATENCY),
        "faults": faults(),
        "write_faults": faults(),
        "plan_time": draw(st.sampled_from([0.0, 1.0, 20.0])),
        "seed": draw(st.integers(0, 1000)),
    }
    states = {name: draw(st.sampled_from([PLANNING, SCHEDULE])) for name in SETS}
    note(f"{scenario} {states}")
    triggers = [trigger(name, podset=name, state=states[name]) for name in SETS]
    aside = worker(ASIDE, cpu="64").unschedulable()
    return Sets(*WORKERS, aside, *triggers, pod("outside").requests(cpu="1"), strict=False, **scenario)


def living(sets: Sets, podset: str) -> dict[str, Pod]:
    return {
        each.metadata.name: each
        for each in sets.cluster.pods.values()
        if each.metadata.labels.get(POD_SET_LABEL) == podset
        and not each.terminal
        and each.metadata.deletion_timestamp is None
    }


def assert_plans_tell_the_truth(sets: Sets) -> None:
    for podset in SETS:
        pods = living(sets, podset)
        entries = sets.entries(podset)
        assert entries.keys() <= pods.keys()
        for name, node in entries.items():
            assert pods[name].spec.node_name in ("", node)
    assert len(sets.cluster.others.get(SchedulePlan, {})) <= len(SETS)


def assert_no_node_is_too_full(sets: Sets) -> None:
    for name in NODES:
        tenants = [each for each in sets.cluster.pods.values() if each.spec.node_name == name]
        assert sum(PodInfo.of(each).requests.get("cpu", 0) for each in tenants if not each.terminal) <= 4000


def members(sets: Sets) -> dict[str, Member]:
    """The members by UID, as the controller knows them."""
    (controller,) = (each for each in sets.engine.controllers if isinstance(each, PodSetController))
    found = {}
    for each in sets.cluster.pods.values():
        state = controller.state_of(each)
        if state is not None:
            found.update({member.uid: member for member in state.members})
    return found


def assert_no_room_is_promised_twice(sets: Sets) -> None:
    """Check that the pods on a node and those promised to it fit together, as the engine sees them."""
    cluster = sets.engine.cluster
    for name in NODES:
        row = cluster.row(name)
        if row is not None:
            there = {each.pod.metadata.uid: each for each in cluster.nominations.on(name)}
            there.update({each.pod.metadata.uid: each for each in cluster.pods_on(row)})
            assert sum(each.requests.get("cpu", 0) for each in there.values()) <= 4000


def assert_no_pod_is_forgotten(sets: Sets) -> None:
    """Check that at rest each pod has a node, or a stage that says what it waits for."""
    known = members(sets)
    # Without a fallback, a planner service that fails is called again and again.
    asked = set() if sets.planned_anyhow else {Stage.UNPLANNED}
    for podset in SETS:
        for each in living(sets, podset).values():
            if not each.spec.node_name:
                assert known[each.metadata.uid].stage in AT_REST | asked
    assert all(member.pod.key in sets.cluster.pods for member in known.values())
    for podset in SETS:
        plan = sets.plan(podset)
        if plan is not None and sets.planned_anyhow:
            unplaced = {each.pod: each.reason for each in plan.status.unplaced}
            pods = living(sets, podset).values()
            stuck = [known[each.metadata.uid] for each in pods if not each.spec.node_name]
            why = {each.name: each.why.message for each in stuck if each.why is not None}
            assert unplaced == why


WAIT = st.sampled_from([0.0, 0.005, 0.1, 1.0, 5.0])


@settings(max_examples=60, deadline=None)
@given(scenes(), st.lists(st.tuples(WAIT, happenings()), max_size=25))
def test_after_some_rest_plans_tell_the_truth_and_no_pod_is_stranded(
    sets: Sets, history: list[tuple[float, Happening]]
) -> None:
    for number, (wait, happen) in enumerate(history):
        sets.after(wait)
        happen(sets, number)
        assert_no_node_is_too_full(sets)
        if all(each.func is not start_again for _, each in history):
            # The next scheduler does not know yet what the killed one has promised.
            assert_no_room_is_promised_twice(sets)
    # Planners may be slow, and failed work is tried again after a while.
    sets.run(until=max(sets.now, END) + 25.0 + REST)
    assert_no_node_is_too_full(sets)
    assert_plans_tell_the_truth(sets)
    assert_no_pod_is_forgotten(sets)
    sets.create(*WORKERS, worker("n4", cpu="64"))
    sets.delete(planner())
    sets.create(*(trigger(name, podset=name, state=SCHEDULE) for name in SETS))
    sets.after(60.0)
    for podset in SETS:
        nodes = {name: each.spec.node_name for name, each in living(sets, podset).items()}
        assert all(nodes.values())
        entries = sets.entries(podset)
        if sets.planned_anyhow:
            assert entries == nodes
        else:
            # Pods that were bound while there was no planner have no entry.
            assert entries.items() <= nodes.items()
    assert sets.node_of("outside")
    sets.after(600.0)
    assert sets.engine.deadline is None
