"""Whatever happens to pods, nodes, triggers, plans and planners: after some rest plans tell the truth."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, note, settings
from msgspec.structs import replace
from tests.podset.stage import WORKERS, Sets, address, member, planner, trigger, worker

from longshore.api import Pod
from longshore.api.pod_set import PLANNING, POD_SET_LABEL, SCHEDULE, SchedulePlan, ScheduleTrigger
from longshore.cluster import PodInfo
from longshore.podset.members import GATE
from longshore.sim import Faults
from longshore.testing import NodeBuilder, pod

END = 30.0
REST = 10.0
SETS = ("one", "two")
NODES = ("n1", "n2", "n3")

# In a simulation, with a number of its own.
Happening = Callable[[Sets, int], None]


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
            kind = draw(st.sampled_from(["delete", "delete", "terminate", "end", "move"]))
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
    return Sets(*WORKERS, *triggers, pod("outside").requests(cpu="1"), strict=False, **scenario)


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


WAIT = st.sampled_from([0.0, 0.005, 0.1, 1.0, 5.0])


@settings(max_examples=60, deadline=None)
@given(scenes(), st.lists(st.tuples(WAIT, happenings()), max_size=25))
def test_after_some_rest_plans_tell_the_truth_and_nobody_is_stranded(
    sets: Sets, history: list[tuple[float, Happening]]
) -> None:
    for number, (wait, happen) in enumerate(history):
        sets.after(wait)
        happen(sets, number)
        assert_no_node_is_too_full(sets)
    # Planners may take their time, and what failed is tried again after a while.
    sets.run(until=max(sets.now, END) + 25.0 + REST)
    assert_no_node_is_too_full(sets)
    assert_plans_tell_the_truth(sets)
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
            # Those that went while there was no planner have none.
            assert entries.items() <= nodes.items()
    assert sets.node_of("outside")
    sets.after(600.0)
    assert sets.engine.deadline is None
