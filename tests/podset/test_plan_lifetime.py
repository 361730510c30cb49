"""A plan shrinks with its pods and is deleted with the last one, with or without restarts."""

import pytest
from msgspec.structs import replace
from tests.podset.simulated_sets import WORKERS, Sets, member, plan_by_hand, trigger, worker

from longshore.api import Pod
from longshore.api.pod_set import PLANNING, SCHEDULE
from longshore.framework.effects import Bind, CreateObject
from longshore.podset.plan_entries import AWAITED
from longshore.sim import Faults
from longshore.testing import pod

THREE = (member("a"), member("b"), member("c"))
FIRED = trigger(state=SCHEDULE)


def bound_set() -> Sets:
    sets = Sets(*WORKERS, FIRED, *THREE)
    sets.after(5.0)
    assert sets.entries() == sets.nodes()
    return sets


def test_the_entry_of_a_deleted_pod_goes_and_the_others_stay() -> None:
    sets = bound_set()
    sets.take_away(member("b"))
    sets.after(5.0)
    assert sets.entries().keys() == {"a", "c"}
    assert sets.entries() == sets.nodes()


def test_the_plan_goes_with_the_last_pod_and_the_trigger_stays() -> None:
    sets = bound_set()
    sets.take_away(*THREE)
    sets.after(5.0)
    assert sets.plan() is None
    assert sets.trigger().spec.state == SCHEDULE


def test_the_entry_of_a_pod_goes_as_soon_as_its_deletion_begins() -> None:
    sets = bound_set()
    leaving = sets.pod("a")
    meta = replace(leaving.metadata, deletion_timestamp="2027-01-15T08:00:00Z")
    sets.add(replace(leaving, metadata=meta))
    sets.after(5.0)
    assert sets.entries().keys() == {"b", "c"}


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_the_entry_of_a_pod_that_has_ended_goes(phase: str) -> None:
    sets = bound_set()
    ended = sets.pod("a")
    sets.add(replace(ended, status=replace(ended.status, phase=phase)))
    sets.after(5.0)
    assert sets.entries().keys() == {"b", "c"}


@pytest.mark.parametrize("left", [0, 1])
def test_entries_of_pods_that_went_while_no_scheduler_ran_are_removed_after_the_start(left: int) -> None:
    sets = bound_set()
    for each in THREE[left:]:
        sets.cluster.server.delete(each)
    sets.start_again()
    sets.after(10.0)
    assert sets.entries() == sets.nodes()
    assert (sets.plan() is None) == (left == 0)


def test_a_plan_whose_trigger_and_pods_went_while_no_scheduler_ran_is_deleted() -> None:
    sets = bound_set()
    for each in (*THREE, sets.trigger()):
        sets.cluster.server.delete(each)
    sets.start_again()
    sets.after(10.0)
    assert sets.plan() is None
    assert sets.engine.deadline is None


def test_a_plan_outlives_its_trigger() -> None:
    sets = bound_set()
    sets.take_away(sets.trigger())
    sets.after(60.0)
    assert sets.entries() == sets.nodes()


def test_a_plan_belongs_to_the_controllers_of_its_pods_or_to_the_pods_themselves() -> None:
    sets = Sets(
        *WORKERS, FIRED, member("a").owner("ReplicaSet", "web"), member("b").owner("ReplicaSet", "web")
    )
    sets.add(member("c"))
    sets.after(2.0)
    owners = sets.stored_plan().metadata.owner_references
    assert {(each.kind, each.name) for each in owners} == {("ReplicaSet", "web"), ("Pod", "c")}


def test_a_plan_with_too_many_owners_names_none() -> None:
    sets = Sets(worker("n1", cpu="64"), trigger(), *(member(f"p{n}", cpu="100m") for n in range(60)))
    sets.release()
    sets.after(2.0)
    assert len(sets.entries()) == 60
    assert sets.stored_plan().metadata.owner_references == ()


def test_a_recreated_pod_keeps_its_node_while_its_entry_exists() -> None:
    sets = bound_set()
    before = sets.node_of("a")
    sets.take_away(member("a"))
    sets.add(member("a").uid("second"))
    sets.after(5.0)
    assert sets.node_of("a") == sets.entries()["a"] == before


def test_a_pod_created_again_later_is_planned_again() -> None:
    sets = bound_set()
    sets.take_away(member("a"))
    sets.after(5.0)
    sets.add(worker("n4", cpu="64"), member("a", cpu="5").uid("second"))
    sets.after(5.0)
    assert sets.entries() == sets.nodes()
    assert sets.node_of("a") == "n4"


def test_a_pod_created_again_whose_node_is_gone_is_planned_again() -> None:
    sets = bound_set()
    gone = sets.node_of("a")
    sets.take_away(worker(gone), member("a"))
    sets.add(member("a").uid("second"))
    sets.after(5.0)
    assert sets.entries() == sets.nodes()
    assert sets.node_of("a") not in ("", gone)


def test_a_plan_deleted_by_hand_is_created_again_with_the_next_pod() -> None:
    sets = bound_set()
    sets.take_away(sets.stored_plan())
    sets.after(10.0)
    sets.add(member("d"))
    sets.after(5.0)
    assert sets.entries() == sets.nodes()
    assert len(sets.entries()) == 4


def test_a_plan_deleted_while_its_pods_are_being_bound_is_created_again() -> None:
    sets = Sets(*WORKERS, FIRED, *THREE, bind_latency=0.5)
    sets.after(0.2)
    assert len(sets.asked_for(Bind)) == 3
    sets.take_away(sets.stored_plan())
    sets.after(10.0)
    assert sets.entries() == sets.nodes()
    assert all(sets.nodes().values())


def test_a_plan_by_hand_for_pods_to_come_is_left_alone() -> None:
    sets = Sets(*WORKERS, trigger(), plan_by_hand({"x": "n1", "y": "n2"}))
    sets.after(60.0)
    sets.start_again()
    sets.after(60.0)
    assert sets.entries() == {"x": "n1", "y": "n2"}
    assert sets.plan_writes() == []


def test_entries_for_pods_to_come_outlive_a_restart_and_others_do_not() -> None:
    sets = Sets(*WORKERS, FIRED, plan_by_hand({"x": "n1", "y": "n2"}), member("x"))
    sets.after(5.0)
    assert sets.stored_plan().metadata.annotations[AWAITED] == "y"
    sets.cluster.server.delete(member("x"))
    sets.start_again()
    sets.after(5.0)
    assert sets.entries() == {"y": "n2"}
    sets.add(member("y"))
    sets.after(1.0)
    assert sets.node_of("y") == "n2"
    sets.after(5.0)
    sets.cluster.server.delete(member("y"))
    sets.start_again()
    sets.after(5.0)
    assert sets.plan() is None


def left_by_pallet(age: float, *pods: Pod, state: str = SCHEDULE) -> Sets:
    """Find a plan from another writer, with entries of deleted pods, this long after it was made."""
    sets = Sets(*WORKERS)
    for thing in (trigger(state=state), *pods, plan_by_hand({"a": "n1", "b": "n2", "gone": "n3"})):
        sets.cluster.server.put(thing)
    sets.after(age)
    sets.start_again()
    sets.after(10.0)
    return sets


def test_entries_that_pallet_has_left_behind_go() -> None:
    sets = left_by_pallet(3600.0, member("a").on("n1"), member("b").on("n2"))
    assert sets.entries() == {"a": "n1", "b": "n2"}


def test_entries_left_by_pallet_are_removed_when_the_set_is_held_or_planned() -> None:
    held = left_by_pallet(3600.0, member("a").on("n1"), state=PLANNING)
    assert held.entries() == {"a": "n1"}
    joined = left_by_pallet(3600.0, member("a").on("n1"), member("c"))
    assert joined.entries() == joined.nodes()


def test_a_plan_that_pallet_has_left_behind_goes() -> None:
    assert left_by_pallet(3600.0).plan() is None


def test_entries_by_hand_for_pods_to_come_are_not_taken_for_left_behind() -> None:
    """The plan is recent, or the set is held and none of its pods is bound."""
    young = left_by_pallet(300.0, member("a").on("n1"))
    assert young.entries() == {"a": "n1", "b": "n2", "gone": "n3"}
    held = left_by_pallet(3600.0, state=PLANNING)
    held.add(member("a"))
    held.after(10.0)
    held.release()
    held.after(3600.0)
    held.start_again()
    held.after(10.0)
    assert held.nodes() == {"a": "n1"}
    assert held.entries() == {"a": "n1", "b": "n2", "gone": "n3"}


def test_an_entry_added_for_a_future_pod_while_no_scheduler_ran_is_kept() -> None:
    sets = bound_set()
    plan = sets.stored_plan()
    entries = {entry.pod: entry.node for entry in plan.spec.plan} | {"later": "n3"}
    sets.cluster.server.put(replace(plan, spec=plan_by_hand(entries).spec))
    sets.start_again()
    sets.after(5.0)
    assert sets.entries() == entries
    assert sets.stored_plan().metadata.annotations[AWAITED] == "later"


def test_a_late_write_of_a_killed_scheduler_leaves_no_entry_for_a_deleted_pod() -> None:
    sets = Sets(*WORKERS, FIRED, member("a"), write_latency=0.5)
    sets.after(5.0)
    sets.add(member("b"))
    sets.after(0.1)
    sets.take_away(member("b"))
    sets.start_again()
    sets.after(10.0)
    assert sets.entries() == sets.nodes() == {"a": sets.node_of("a")}


def test_a_pod_that_leaves_its_set_leaves_its_plan() -> None:
    sets = bound_set()
    moved = sets.pod("a")
    sets.add(replace(moved, metadata=replace(moved.metadata, labels={})))
    sets.after(5.0)
    assert sets.entries().keys() == {"b", "c"}


def test_a_pod_bound_by_hand_is_where_it_is() -> None:
    sets = Sets(*WORKERS, trigger(), *THREE)
    sets.add(replace(sets.pod("a"), spec=replace(sets.pod("a").spec, node_name="n3")))
    sets.release()
    sets.after(5.0)
    assert sets.node_of("a") == "n3"
    assert sets.entries() == sets.nodes()


def test_a_set_that_is_held_again_keeps_its_plan() -> None:
    sets = bound_set()
    before = sets.stored_plan()
    sets.set_state(PLANNING)
    sets.after(60.0)
    assert sets.stored_plan().spec == before.spec


@pytest.mark.parametrize("kind", ["failed", "conflict", "lost"])
def test_a_plan_that_could_not_be_stored_is_stored_later(kind: str) -> None:
    sets = Sets(*WORKERS, trigger(), *THREE, write_faults=Faults(**{kind: 1.0}, until=5.0))
    sets.release()
    sets.after(4.9)
    if kind != "lost":
        assert sets.asked_for(Bind) == []
    sets.after(3.0)
    assert sets.entries() == sets.nodes()
    assert all(sets.nodes().values())
    assert ("PlanNotStored" in sets.reasons_told("go")) == (kind == "failed")


def test_an_answer_that_was_lost_costs_no_second_plan() -> None:
    sets = Sets(*WORKERS, trigger(), *THREE, write_faults=Faults(lost=1.0, until=5.0))
    sets.release()
    sets.after(0.5)
    assert all(sets.nodes().values())
    assert len(sets.plan_writes()) == 1


def test_an_answer_that_was_lost_and_a_watch_that_is_late_cost_no_second_plan() -> None:
    sets = Sets(*WORKERS, trigger(), *THREE, watch_latency=0.3, write_faults=Faults(lost=1.0, until=1.0))
    sets.release()
    sets.after(5.0)
    assert all(sets.nodes().values())
    assert sets.entries() == sets.nodes()
    assert len([each for each in sets.plan_writes() if isinstance(each, CreateObject)]) == 1


@pytest.mark.parametrize("lag", [0.5, 2.0, 8.0])
def test_a_watch_that_is_late_does_not_make_it_plan_twice(lag: float) -> None:
    sets = Sets(*WORKERS, watch_latency=lag, bind_latency=0.0)
    sets.create(trigger(state=SCHEDULE), *THREE)
    sets.after(60.0)
    assert sets.entries() == sets.nodes()
    assert sum(isinstance(each, CreateObject) for each in sets.plan_writes()) == 1
    assert len(sets.asked_for(Bind)) == 3


def test_someone_elses_edit_right_after_ours_is_noticed() -> None:
    sets = Sets(*WORKERS, FIRED, *THREE, watch_latency=0.2)
    sets.after(1.0)
    plan = sets.stored_plan()
    entries = {entry.pod: entry.node for entry in plan.spec.plan} | {"later": "n3"}
    sets.add(replace(plan, spec=plan_by_hand(entries).spec))
    sets.after(10.0)
    sets.add(*(pod(f"load-{n}").requests(cpu="1").on("n3") for n in range(2)), member("later"))
    sets.after(2.0)
    assert sets.node_of("later") == "n3"


def test_the_last_pod_goes_before_the_watch_has_reported_its_plan() -> None:
    sets = Sets(*WORKERS, watch_latency=1.0)
    sets.create(trigger(state=SCHEDULE), member("a"))
    sets.after(1.5)
    assert sets.plan() is not None
    sets.delete(member("a"))
    sets.after(20.0)
    assert sets.plan() is None
    assert sets.engine.deadline is None
