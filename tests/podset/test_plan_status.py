"""The status of a plan: its quality, its planner, and its progress."""

import pytest
from msgspec.structs import replace
from tests.podset.simulated_sets import (
    EPOCH,
    WORKERS,
    Sets,
    conditions,
    member,
    plan_by_hand,
    trigger,
    worker,
)

from longshore.api.pod_set import PACK, SCHEDULE, Condition, SchedulePlan, UnplacedPod
from longshore.api.timestamps import format_timestamp
from longshore.framework.effects import PatchObject
from longshore.sim import Faults


def status_writes(sets: Sets) -> list[PatchObject]:
    return [each for each in sets.asked_for(PatchObject) if each.kind is SchedulePlan and each.subresource]


def test_the_status_says_how_good_the_plan_is_and_who_made_it() -> None:
    sets = Sets(*WORKERS, trigger(), *(member(f"p{n}") for n in range(3)))
    sets.release()
    sets.after(5.0)
    status = sets.stored_plan().status
    assert (status.objective, status.bound, status.gap) == (0.25, 0.25, 0.0)
    assert status.planner == "built-in"
    assert (status.planned, status.following, status.unplaced) == (3, 3, ())
    assert conditions(sets.stored_plan())["Complete"].status == "True"


def test_the_objective_is_that_of_the_trigger() -> None:
    sets = Sets(*WORKERS, trigger(objective=PACK), *(member(f"p{n}", cpu="2") for n in range(3)))
    sets.release()
    sets.after(5.0)
    status = sets.stored_plan().status
    assert (status.objective, status.bound, status.gap) == (2.0, 2.0, 0.0)


def test_the_status_names_pods_that_are_left_out_with_the_reason() -> None:
    sets = Sets(*WORKERS, trigger(), member("a"), member("big", cpu="16"))
    sets.release()
    sets.after(5.0)
    plan = sets.stored_plan()
    (unplaced,) = plan.status.unplaced
    assert unplaced == UnplacedPod("big", unplaced.reason)
    assert "Insufficient cpu" in unplaced.reason
    complete = conditions(plan)["Complete"]
    assert (complete.status, complete.reason, complete.message) == (
        "False",
        "PodsLeftOut",
        "1 pod has no node",
    )
    sets.add(worker("huge", cpu="32"))
    sets.after(5.0)
    assert conditions(sets.stored_plan())["Complete"].status == "True"
    assert sets.stored_plan().status.unplaced == ()


def test_a_pod_left_out_that_went_while_no_scheduler_ran_is_no_longer_listed() -> None:
    sets = Sets(*WORKERS, trigger(), member("a"), member("big", cpu="16"))
    sets.release()
    sets.after(5.0)
    assert conditions(sets.stored_plan())["Complete"].status == "False"
    sets.cluster.server.delete(member("big"))
    sets.start_again()
    sets.after(5.0)
    told = conditions(sets.stored_plan())
    assert (told["Complete"].status, told["Complete"].message) == ("True", "")
    assert sets.stored_plan().status.unplaced == ()
    assert told["PlannerAnswered"].status == "True"


def test_a_plan_that_other_pods_have_joined_has_no_bound() -> None:
    sets = Sets(worker("n1"), worker("n2"), trigger(), *(member(f"p{n}", cpu="2") for n in range(3)))
    sets.release()
    sets.after(5.0)
    status = sets.stored_plan().status
    assert (status.objective, status.bound, status.gap) == (1.0, 0.75, 0.25)
    sets.add(member("late", cpu="100m"))
    sets.after(5.0)
    status = sets.stored_plan().status
    assert (status.objective, status.bound, status.gap) == (1.0, None, None)
    sets.start_again()
    sets.after(5.0)
    assert sets.stored_plan().status == status


def test_a_plan_with_entries_by_hand_has_no_bound() -> None:
    sets = Sets(*WORKERS, plan_by_hand({"a": "n1"}), trigger(state=SCHEDULE), member("a"), member("b"))
    sets.after(5.0)
    status = sets.stored_plan().status
    assert (status.planner, status.bound, status.gap) == ("built-in", None, None)


def test_a_plan_that_was_not_stored_is_not_reported() -> None:
    sets = Sets(*WORKERS, trigger(state=SCHEDULE), member("a"))
    sets.after(5.0)
    before = sets.stored_plan().status
    sets.break_writes(Faults(failed=1.0, until=sets.now + 2.0))
    sets.add(member("late", cpu="3"))
    sets.after(1.0)
    sets.take_away(member("late", cpu="3"))
    sets.after(60.0)
    assert sets.stored_plan().status == before


@pytest.mark.parametrize("times", ["7" * 5000, "²"])
def test_a_condition_changed_by_another_client_does_no_harm(times: str) -> None:
    sets = Sets(*WORKERS, trigger(state=SCHEDULE), member("a"))
    sets.after(5.0)
    plan = sets.stored_plan()
    told = Condition("PlannedAgain", "True", "NodeInvalid", f"{times} times, the last because")
    sets.add(replace(plan, status=replace(plan.status, conditions=(*plan.status.conditions, told))))
    entries = {"a": sets.node_of("a"), "b": "gone"}
    sets.add(replace(sets.stored_plan(), spec=plan_by_hand(entries).spec), member("b"))
    sets.after(5.0)
    assert sets.node_of("b")
    assert conditions(sets.stored_plan())["PlannedAgain"].message.startswith("1 time, the last because gone ")


def test_the_status_names_the_first_hundred_pods_that_are_left_out() -> None:
    sets = Sets(worker("n1"), trigger(), member("a"), *(member(f"p{n}", cpu="16") for n in range(150)))
    sets.release()
    sets.after(5.0)
    assert len(sets.stored_plan().status.unplaced) == 100
    assert conditions(sets.stored_plan())["Complete"].message == "150 pods have no node"


def test_followed_entries_are_counted_as_pods_are_bound() -> None:
    sets = Sets(*WORKERS, trigger(), member("a"), member("b"), bind_latency=5.0)
    sets.release()
    sets.after(3.0)
    assert (sets.stored_plan().status.planned, sets.stored_plan().status.following) == (2, 0)
    sets.after(6.0)
    assert sets.stored_plan().status.following == 2


def test_a_plan_by_hand_is_counted_too() -> None:
    sets = Sets(*WORKERS, plan_by_hand({"a": "n1", "later": "n2"}), trigger(state=SCHEDULE), member("a"))
    sets.after(5.0)
    status = sets.stored_plan().status
    assert (status.planned, status.following, status.planner) == (2, 1, None)


def test_the_status_of_a_plan_outlives_a_restart() -> None:
    sets = Sets(*WORKERS, trigger(), member("a"), member("b"))
    sets.release()
    sets.after(5.0)
    before = sets.stored_plan().status
    sets.start_again()
    sets.after(5.0)
    assert sets.stored_plan().status == before


def test_that_it_was_planned_again_is_remembered_after_a_restart() -> None:
    sets = Sets(*WORKERS, plan_by_hand({"a": "n1", "b": "gone"}), trigger(state=SCHEDULE), member("b"))
    sets.after(5.0)
    assert conditions(sets.stored_plan())["PlannedAgain"].message.startswith("1 time, the last because gone ")
    sets.start_again()
    sets.add(member("c"))
    sets.after(5.0)
    assert conditions(sets.stored_plan())["PlannedAgain"].message.startswith("1 time, the last because gone ")
    sets.add(worker("n1").unschedulable(), member("a"))
    sets.after(5.0)
    assert conditions(sets.stored_plan())["PlannedAgain"].message.startswith("2 times, the last because n1 ")


def test_the_time_of_a_condition_is_that_of_its_last_change() -> None:
    sets = Sets(*WORKERS, trigger(), member("a"))
    sets.after(10.0)
    sets.release()
    sets.after(5.0)
    written = conditions(sets.stored_plan())["Complete"].last_transition_time
    assert format_timestamp(EPOCH + 10.0) <= written <= format_timestamp(EPOCH + 12.0)
    sets.add(member("b"))
    sets.after(5.0)
    assert conditions(sets.stored_plan())["Complete"].last_transition_time == written


def test_a_status_is_written_once_a_second_at_most() -> None:
    sets = Sets(worker("n1", cpu="64"), trigger(state=SCHEDULE))
    for number in range(50):
        sets.create(member(f"p{number}", cpu="100m"), at=number * 0.1)
    sets.after(10.0)
    assert sets.stored_plan().status.following == 50
    assert len(status_writes(sets)) <= 8


@pytest.mark.parametrize("kind", ["failed", "conflict", "lost"])
def test_a_status_that_was_not_written_is_written_again(kind: str) -> None:
    sets = Sets(*WORKERS, trigger(), member("a"))
    sets.release()
    sets.break_writes(Faults(**{kind: 1.0}, until=10.0))
    sets.after(20.0)
    assert sets.stored_plan().status.following == 1
    assert sets.engine.deadline is None
