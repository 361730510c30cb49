"""The plan of a released set: one write before any bind, which considers all pods together."""

from collections import Counter

import pytest
from msgspec.structs import replace
from tests.podset.simulated_sets import (
    WORKERS,
    Sets,
    conditions,
    member,
    plan_by_hand,
    planner,
    trigger,
    worker,
)

from longshore.api import Service
from longshore.api.pod_set import PACK, PLANNING, POD_SET_LABEL, SCHEDULE
from longshore.engine.cycle.reporting import REASON_UNSCHEDULABLE
from longshore.framework.effects import Bind, CreateObject
from longshore.testing import PodBuilder, pod

HOSTNAME = "kubernetes.io/hostname"


def entries_of(create: CreateObject) -> dict[str, str]:
    return {entry["pod"]: entry["node"] for entry in create.body["spec"]["plan"]}


def test_a_plan_is_stored_by_one_write_before_the_first_bind() -> None:
    sets = Sets(*WORKERS, trigger(), *(member(f"p{n}") for n in range(12)))
    sets.after(20.0)
    sets.release()
    sets.after(5.0)
    (written,) = sets.plan_writes()
    assert isinstance(written, CreateObject)
    assert entries_of(written) == sets.nodes()
    first_bind = next(n for n, effect in enumerate(sets.asked) if isinstance(effect, Bind))
    assert sets.asked.index(written) < first_bind


def test_a_plan_has_the_name_that_pallet_gives_it() -> None:
    sets = Sets(*WORKERS, trigger(podset="planner-podset", state=SCHEDULE))
    sets.add(member("a", podset="planner-podset"))
    sets.after(1.0)
    assert sets.stored_plan("planner-podset").metadata.name == "planner-podset-d4cd7dc68"


def test_a_set_whose_name_is_no_name_for_objects_is_planned_too() -> None:
    sets = Sets(*WORKERS, trigger(podset="My_Set", state=SCHEDULE), member("a", podset="My_Set"))
    sets.after(1.0)
    assert sets.entries("My_Set") == sets.nodes()
    assert sets.stored_plan("My_Set").metadata.labels == {POD_SET_LABEL: "My_Set"}


def test_no_node_is_filled_beyond_what_it_has() -> None:
    sets = Sets(*WORKERS, trigger(), *(member(f"p{n}", cpu="2") for n in range(6)))
    sets.release()
    sets.after(5.0)
    (written,) = sets.plan_writes()
    assert isinstance(written, CreateObject)
    assert Counter(entries_of(written).values()) == {"n1": 2, "n2": 2, "n3": 2}
    assert all(sets.nodes().values())


def test_one_pod_too_many_is_left_out_and_the_others_go() -> None:
    sets = Sets(*WORKERS, trigger(), *(member(f"p{n}", cpu="2") for n in range(7)))
    sets.release()
    sets.after(5.0)
    pending = [name for name, node in sets.nodes().items() if not node]
    assert len(pending) == 1
    assert sets.entries() == {name: node for name, node in sets.nodes().items() if node}
    assert sets.condition(pending[0])[0] == REASON_UNSCHEDULABLE


def test_a_pod_too_large_for_any_node_goes_when_one_comes_that_is_large_enough() -> None:
    sets = Sets(*WORKERS, trigger(), member("big", cpu="100"), member("b"), member("c"))
    sets.release()
    sets.after(5.0)
    assert sets.entries().keys() == {"b", "c"}
    assert sets.condition("big")[0] == REASON_UNSCHEDULABLE
    assert "Insufficient cpu" in sets.condition("big")[1]
    sets.add(worker("huge", cpu="128"))
    sets.after(3.0)
    assert sets.node_of("big") == sets.entries()["big"] == "huge"


def test_the_large_pod_of_a_set_is_not_crowded_out_by_its_small_ones() -> None:
    sets = Sets(worker("n1"), worker("n2", cpu="2"), trigger())
    sets.add(*(member(f"small-{n}") for n in range(2)), member("z-large", cpu="4"))
    sets.release()
    sets.after(1.0)
    assert sets.nodes() == {"small-0": "n2", "small-1": "n2", "z-large": "n1"}


def apart(name: str, *, from_app: str, preferred: int | None = None) -> PodBuilder:
    return member(name).labels(app=name).anti_affinity_to(HOSTNAME, preferred=preferred, app=from_app)


def test_pods_that_must_not_share_a_node_do_not() -> None:
    sets = Sets(*WORKERS, trigger(state=SCHEDULE))
    sets.add(apart("app-1", from_app="app-2"), apart("app-2", from_app="app-1"))
    sets.after(1.0)
    assert sets.entries() == sets.nodes()
    assert len(set(sets.nodes().values())) == 2


def test_two_pods_are_kept_apart_if_only_one_of_them_requires_it() -> None:
    sets = Sets(*WORKERS, trigger(state=SCHEDULE))
    sets.add(apart("app-1", from_app="app-2"), member("app-2").labels(app="app-2"))
    sets.after(1.0)
    assert len({*sets.nodes().values()} - {""}) == 2


def test_with_a_single_node_only_one_of_two_pods_goes() -> None:
    sets = Sets(worker("only"), trigger(state=SCHEDULE))
    sets.add(apart("app-1", from_app="app-2"), apart("app-2", from_app="app-1"))
    sets.after(1.0)
    assert sorted(sets.nodes().values()) == ["", "only"]


@pytest.mark.parametrize("workers", [1, 3])
def test_pods_that_would_rather_not_share_a_node_do_so_only_if_they_have_to(workers: int) -> None:
    sets = Sets(*WORKERS[:workers], trigger(state=SCHEDULE))
    sets.add(apart("app-1", from_app="app-2", preferred=100), apart("app-2", from_app="app-1", preferred=100))
    sets.after(1.0)
    assert sets.entries() == sets.nodes()
    assert len(set(sets.nodes().values())) == min(workers, 2)


@pytest.mark.parametrize(("replicas", "nodes"), [(3, 3), (5, 3)])
def test_replicas_are_kept_apart_as_long_as_there_are_nodes(replicas: int, nodes: int) -> None:
    sets = Sets(*WORKERS, trigger())
    sets.add(*(member(f"web-{n}", cpu="100m").owner("ReplicaSet", "web") for n in range(replicas)))
    sets.release()
    sets.after(1.0)
    assert all(sets.nodes().values())
    assert len(set(sets.nodes().values())) == nodes


def test_pods_without_an_owner_may_share_a_node() -> None:
    sets = Sets(worker("only"), trigger(state=SCHEDULE), member("a"), member("b"))
    sets.after(1.0)
    assert sets.nodes() == {"a": "only", "b": "only"}


def test_pods_that_must_be_spread_are_tried_in_the_order_of_the_plan() -> None:
    sets = Sets(worker("n1"), worker("n2"), trigger())
    # Pods that were created later are planned earlier.
    for name in "fedcba":
        sets.add(member(name, cpu="500m").labels(app="web").spread(HOSTNAME, app="web"))
    sets.release()
    sets.after(1.0)
    assert Counter(sets.nodes().values()) == {"n1": 3, "n2": 3}
    assert len(sets.plan_writes()) == 1
    assert "FailedScheduling" not in {event.reason for event in sets.cluster.events}


def test_a_pod_that_must_be_near_another_one_of_the_set_follows_it() -> None:
    sets = Sets(*WORKERS, trigger())
    sets.add(member("a").affinity_to(HOSTNAME, app="db"), member("db").labels(app="db"))
    sets.release()
    sets.after(1.0)
    assert sets.node_of("a") == sets.node_of("db") != ""
    assert len(sets.plan_writes()) == 1


def test_by_the_objective_of_its_trigger_a_set_is_packed() -> None:
    sets = Sets(*WORKERS, trigger(objective=PACK), *(member(f"p{n}") for n in range(4)))
    sets.release()
    sets.after(1.0)
    assert len(set(sets.nodes().values())) == 1


@pytest.mark.parametrize("planners", [(), (planner(),)])
def test_a_set_released_while_there_are_no_nodes_goes_when_there_are(planners: tuple[Service, ...]) -> None:
    sets = Sets(*planners, trigger(state=SCHEDULE), member("a"), member("b"))
    sets.after(60.0)
    assert sets.condition("a")[0] == REASON_UNSCHEDULABLE
    sets.add(worker("n1"))
    sets.after(5.0)
    assert sets.entries() == sets.nodes() == {"a": "n1", "b": "n1"}


def test_sets_released_together_do_not_plan_for_the_same_room() -> None:
    names = [f"set-{n}" for n in range(6)]
    sets = Sets(*(worker(f"n{n}", cpu="2") for n in range(6)), write_latency=0.05)
    sets.add(*(trigger(name, podset=name) for name in names))
    sets.add(*(member(f"{name}-{n}", podset=name) for name in names for n in range(2)))
    for name in names:
        old = sets.trigger(name)
        sets.create(replace(old, spec=replace(old.spec, state=SCHEDULE)))
    sets.after(5.0)
    assert Counter(sets.nodes().values()) == {f"n{n}": 2 for n in range(6)}
    # Each pod was planned once, and the plan was followed.
    assert len(sets.plan_writes()) == len(names)


def test_pods_outside_sets_do_not_take_the_room_of_a_set_that_is_being_stored() -> None:
    sets = Sets(worker("only", cpu="1"), trigger(), member("a"), write_latency=0.5)
    sets.release()
    sets.after(0.1)
    sets.add(pod("late").requests(cpu="1"))
    sets.after(5.0)
    assert sets.nodes() == {"a": "only", "late": ""}


def test_a_set_larger_than_a_hundred_pods_is_bound_at_once() -> None:
    sets = Sets(*(worker(f"n{n}", cpu="8") for n in range(30)), trigger())
    sets.add(*(member(f"p{n}") for n in range(200)))
    sets.release()
    sets.after(0.1)
    assert sets.entries() == sets.nodes()
    assert len(sets.plan_writes()) == 1


def test_two_pods_that_come_later_are_planned_next_to_the_first_ones() -> None:
    sets = Sets(*WORKERS, trigger(state=SCHEDULE), member("a"), member("b"))
    sets.after(5.0)
    sets.set_state(PLANNING)
    sets.add(member("c"), member("d"))
    sets.after(5.0)
    before = sets.entries()
    sets.release()
    sets.after(1.0)
    assert before.items() <= sets.entries().items()
    assert sets.entries() == sets.nodes()
    assert len(sets.plan_writes()) == 2


def test_a_plan_by_hand_is_obeyed_though_another_node_would_be_better() -> None:
    sets = Sets(*WORKERS, *(pod(f"load-{n}").requests(cpu="1").on("n3") for n in range(3)))
    sets.add(trigger(state=SCHEDULE), plan_by_hand({"p": "n3"}))
    sets.after(30.0)
    sets.add(member("p"))
    sets.after(1.0)
    assert sets.node_of("p") == "n3"
    assert sets.entries() == {"p": "n3"}


def test_a_plan_by_hand_without_the_label_is_found_by_its_name() -> None:
    sets = Sets(*WORKERS, plan_by_hand({"p": "n3"}, labeled=False))
    sets.add(member("p"))
    sets.after(5.0)
    sets.add(trigger(state=SCHEDULE))
    sets.after(1.0)
    assert sets.node_of("p") == "n3"


def test_an_entry_by_hand_is_kept_when_the_other_pods_are_planned() -> None:
    sets = Sets(*WORKERS, trigger(), member("a"), member("b"))
    sets.add(plan_by_hand({"b": "n3", "later": "n2"}))
    sets.after(5.0)
    sets.release()
    sets.after(1.0)
    assert sets.entries() == sets.nodes() | {"later": "n2"}
    assert sets.node_of("b") == "n3"
    sets.add(member("later"))
    sets.after(1.0)
    assert sets.node_of("later") == "n2"


def test_an_entry_written_over_a_stored_one_is_obeyed() -> None:
    sets = Sets(*WORKERS, trigger(state=SCHEDULE), member("a"))
    sets.after(1.0)
    sets.set_state(PLANNING)
    sets.add(member("b"))
    plan = sets.stored_plan()
    by_hand = plan_by_hand({"b": "n3", "a": sets.node_of("a")})
    sets.add(replace(plan, spec=by_hand.spec))
    sets.release()
    sets.after(1.0)
    assert sets.node_of("b") == "n3"


def test_a_wrong_entry_about_a_bound_pod_is_corrected() -> None:
    sets = Sets(*WORKERS, trigger(state=SCHEDULE), member("a"))
    sets.after(10.0)
    plan = sets.stored_plan()
    elsewhere = "n3" if sets.node_of("a") != "n3" else "n2"
    sets.add(replace(plan, spec=plan_by_hand({"a": elsewhere}).spec))
    sets.after(5.0)
    assert sets.entries() == sets.nodes()


def change_of(kind: str, sets: Sets) -> None:
    n1 = worker("n1").labels(disk="ssd")
    match kind:
        case "deleted":
            sets.take_away(n1)
        case "cordoned":
            sets.add(n1.unschedulable())
        case "tainted":
            sets.add(n1.taint("broken"))
        case "filled":
            sets.add(pod("filler").requests(cpu="4").on("n1"))
        case "relabeled":
            sets.add(worker("n1"))


@pytest.mark.parametrize("kind", ["deleted", "cordoned", "tainted", "filled", "relabeled"])
def test_a_planned_node_that_became_invalid_while_held_is_not_used(kind: str) -> None:
    sets = Sets(worker("n1").labels(disk="ssd"), worker("n2").labels(disk="ssd"), worker("n3"))
    sets.add(trigger(), member("p").node_selector(disk="ssd"), plan_by_hand({"p": "n1"}))
    sets.after(5.0)
    change_of(kind, sets)
    sets.release()
    sets.after(5.0)
    assert sets.entries() == {"p": "n2"} == {"p": sets.node_of("p")}
    again = conditions(sets.stored_plan())["PlannedAgain"]
    assert again.message == "1 time, the last because n1 no longer fits p"


def test_a_node_that_became_invalid_while_the_plan_was_stored_is_not_used() -> None:
    sets = Sets(worker("n1", cpu="64"), worker("n2"), trigger(), member("p"), write_latency=0.5)
    sets.release()
    sets.after(0.1)
    (written,) = sets.plan_writes()
    assert isinstance(written, CreateObject)
    assert entries_of(written) == {"p": "n1"}
    sets.add(worker("n1", cpu="64").unschedulable())
    sets.after(5.0)
    assert sets.entries() == sets.nodes() == {"p": "n2"}


def test_a_planned_node_that_is_gone_and_no_other_in_its_place_leaves_no_entry() -> None:
    sets = Sets(worker("n1"), trigger(), member("p", cpu="3"), plan_by_hand({"p": "n1"}))
    sets.after(5.0)
    sets.take_away(worker("n1"))
    sets.add(worker("small", cpu="1"))
    sets.release()
    sets.after(5.0)
    assert sets.plan() is None
    assert sets.condition("p")[0] == REASON_UNSCHEDULABLE
    sets.add(worker("n4"))
    sets.after(3.0)
    assert sets.entries() == sets.nodes() == {"p": "n4"}
