"""The status of a trigger about its set, and of a second trigger for the same set."""

import pytest
from msgspec.structs import replace
from tests.podset.simulated_sets import EPOCH, WORKERS, Sets, conditions, member, trigger

from longshore.api.pod_set import PLANNING, SCHEDULE, ScheduleTrigger
from longshore.api.timestamps import format_timestamp
from longshore.framework.effects import PatchObject
from longshore.sim import Faults

TWO = (member("a"), member("b"))


def status_writes(sets: Sets) -> list[PatchObject]:
    return [each for each in sets.asked_for(PatchObject) if each.kind is ScheduleTrigger and each.subresource]


def test_held_and_bound_pods_are_counted() -> None:
    sets = Sets(*WORKERS, trigger(), *TWO)
    sets.after(2.0)
    assert (sets.trigger().status.held, sets.trigger().status.bound) == (2, 0)
    sets.release()
    sets.after(2.0)
    assert (sets.trigger().status.held, sets.trigger().status.bound) == (0, 2)


def test_whether_it_has_fired_is_a_condition_with_a_time() -> None:
    sets = Sets(*WORKERS, trigger(), *TWO)
    sets.after(10.0)
    assert (conditions(sets.trigger())["Fired"].status, conditions(sets.trigger())["Fired"].reason) == (
        "False",
        "Held",
    )
    sets.release()
    sets.after(10.0)
    fired = conditions(sets.trigger())["Fired"]
    assert (fired.status, fired.last_transition_time) == ("True", format_timestamp(EPOCH + 10.0))


def test_a_condition_that_stays_keeps_its_time() -> None:
    sets = Sets(*WORKERS, trigger(), member("a"))
    sets.after(10.0)
    sets.add(member("b"))
    sets.after(10.0)
    assert sets.trigger().status.held == 2
    assert conditions(sets.trigger())["Fired"].last_transition_time == format_timestamp(EPOCH)


@pytest.mark.parametrize(("said", "told"), [("", "300ms"), ("2s", "2s"), ("1m30s", "1m30s")])
def test_the_status_shows_the_budget_in_force(said: str, told: str) -> None:
    sets = Sets(*WORKERS, trigger(budget=said))
    sets.after(2.0)
    assert sets.trigger().status.budget == told


def test_the_status_keeps_when_a_trigger_was_set_back_for_schedulers_that_start_later() -> None:
    sets = Sets(*WORKERS, trigger(quiet="1h", state=SCHEDULE))
    sets.after(50.0)
    sets.set_state(PLANNING)
    sets.after(10.0)
    status = sets.trigger().status
    assert (status.planning_since, status.quiet_time) == (format_timestamp(EPOCH + 50.0), "1h")


def test_a_status_is_written_once_a_second_at_most() -> None:
    sets = Sets(*WORKERS, trigger())
    sets.after(5.0)
    before = len(status_writes(sets))
    for number in range(100):
        sets.create(member(f"p{number}", cpu="10m"), at=sets.now + number * 0.03)
    sets.after(5.0)
    assert len(status_writes(sets)) - before <= 4
    assert sets.trigger().status.held == 100


@pytest.mark.parametrize("kind", ["failed", "conflict", "lost"])
def test_a_status_that_was_not_written_is_written_again(kind: str) -> None:
    sets = Sets(*WORKERS, trigger(), *TWO, write_faults=Faults(**{kind: 1.0}, until=5.0))
    sets.after(10.0)
    assert sets.trigger().status.held == 2
    assert sets.engine.deadline is None


def test_changes_during_the_write_of_a_status_are_written_too() -> None:
    # The watch is faster than the answer, which is common.
    sets = Sets(*WORKERS, trigger(quiet="10s"), member("a"), answer_latency=0.5)
    sets.create(member("b"), at=0.2)
    sets.after(5.0)
    assert sets.trigger().status.held == 2
    sets.after(7.0)
    assert sets.trigger().spec.state == SCHEDULE


def test_a_watch_that_lags_does_not_make_it_write_twice() -> None:
    sets = Sets(*WORKERS, trigger(), member("a"), watch_latency=4.0)
    sets.after(30.0)
    assert len(status_writes(sets)) <= 2
    assert sets.trigger().status.held == 1


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_of_two_triggers_the_first_by_name_counts_and_the_other_is_warned(order: tuple[str, str]) -> None:
    states = {"a": PLANNING, "b": SCHEDULE}
    sets = Sets(*WORKERS, *(trigger(name, state=states[name]) for name in order), member("x"))
    sets.after(60.0)
    assert sets.node_of("x") == ""
    assert conditions(sets.trigger("a"))["InUse"].status == "True"
    ignored = conditions(sets.trigger("b"))["InUse"]
    assert (ignored.status, ignored.reason) == ("False", "Ignored")
    assert ignored.message.endswith("the first by name counts, a")
    warnings = [event for event in sets.cluster.events if event.type == "Warning"]
    assert [(event.name, event.reason) for event in warnings] == [("b", "Ignored")]


def test_an_ignored_trigger_does_not_fire_after_its_quiet_time() -> None:
    sets = Sets(*WORKERS, trigger("a"), trigger("b", quiet="5s"), member("x"))
    sets.after(60.0)
    assert sets.trigger("b").spec.state == PLANNING
    assert sets.trigger("b").status.fire_at is None


def test_when_the_first_trigger_goes_the_other_one_counts() -> None:
    sets = Sets(*WORKERS, trigger("a"), trigger("b", state=SCHEDULE), member("x"))
    sets.after(10.0)
    sets.take_away(sets.trigger("a"))
    sets.after(2.0)
    assert sets.node_of("x")
    assert conditions(sets.trigger("b"))["InUse"].status == "True"


def test_a_trigger_that_comes_before_the_one_in_use_takes_over() -> None:
    sets = Sets(*WORKERS, trigger("b", state=SCHEDULE), member("x"))
    sets.after(1.0)
    sets.add(trigger("a"), member("y"))
    sets.after(5.0)
    assert sets.node_of("x")
    assert sets.node_of("y") == ""
    assert conditions(sets.trigger("b"))["InUse"].status == "False"


def test_a_trigger_without_the_label_of_a_set_is_left_alone() -> None:
    bare = trigger()
    sets = Sets(*WORKERS, replace(bare, metadata=replace(bare.metadata, labels={})))
    sets.after(60.0)
    assert sets.asked == []


def test_pods_of_other_schedulers_are_not_held() -> None:
    sets = Sets(*WORKERS, trigger(), *TWO, member("theirs").scheduler("another"))
    sets.after(2.0)
    assert sets.trigger().status.held == 2


@pytest.mark.parametrize("name", ["default", "pod-set", "quiet-time"])
def test_a_set_whose_name_means_something_else_as_a_label_is_warned(name: str) -> None:
    sets = Sets(*WORKERS, trigger(podset=name), trigger("second", podset=name))
    sets.after(5.0)
    usable = conditions(sets.trigger())["PodSetNameUsable"]
    assert (usable.status, usable.reason) == ("False", "ReservedName")
    assert f"planner.ciena.io/{name}" in usable.message
    assert sets.reasons_told("go") == ["ReservedName"]
    assert sets.reasons_told("second") == ["Ignored", "ReservedName"]


def test_any_other_name_of_a_set_is_not_reported() -> None:
    sets = Sets(*WORKERS, trigger())
    sets.after(5.0)
    assert "PodSetNameUsable" not in conditions(sets.trigger())
