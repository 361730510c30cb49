"""A trigger with a quiet time fires when no pod has joined its set for that long."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.podset.simulated_sets import EPOCH, WORKERS, Sets, conditions, member, trigger

from longshore.api.pod_set import PLANNING, SCHEDULE, ScheduleTrigger
from longshore.api.timestamps import format_timestamp
from longshore.framework.effects import PatchObject
from longshore.sim import Faults


def fired_at(sets: Sets, *, within: float) -> float | None:
    """Return the time at which the trigger fires, None if it does not."""
    end = sets.now + within
    while sets.now < end:
        if sets.trigger().spec.state == SCHEDULE:
            return sets.now
        sets.after(0.25)
    return None


def flips(sets: Sets) -> list[PatchObject]:
    return [
        each for each in sets.asked_for(PatchObject) if "spec" in each.patch and each.kind is ScheduleTrigger
    ]


def test_it_counts_from_the_creation_of_the_last_pod() -> None:
    sets = Sets(*WORKERS, trigger(quiet="6s"))
    for number, at in enumerate((0.0, 3.0, 6.0, 9.0)):
        sets.create(member(f"p{number}"), at=at)
    sets.run(until=14.0)
    assert sets.trigger().spec.state == PLANNING
    assert fired_at(sets, within=3.0) == 15.0
    sets.after(1.0)
    assert all(sets.nodes().values())
    assert len(flips(sets)) == 1
    assert sets.reasons_told("go")[0] == "Fired"


def test_a_set_without_pods_fires_by_the_age_of_its_trigger() -> None:
    sets = Sets(*WORKERS, trigger(quiet="30s"))
    assert fired_at(sets, within=60.0) == 30.0


def test_the_first_pod_is_bound_within_a_second_of_the_end_of_the_quiet_time() -> None:
    sets = Sets(
        *WORKERS,
        trigger(quiet="10s"),
        member("a"),
        member("b"),
        bind_latency=0.05,
        write_latency=0.05,
        watch_latency=0.1,
        answer_latency=0.05,
    )
    sets.run(until=10.0)
    assert sets.node_of("a") == ""
    sets.run(until=11.0)
    assert all(sets.nodes().values())


def test_another_quiet_time_counts_from_when_it_was_set() -> None:
    sets = Sets(*WORKERS, trigger(quiet="1h"), member("a"))
    sets.after(100.0)
    sets.set_quiet_time("3s")
    assert fired_at(sets, within=10.0) == 103.0


def test_a_quiet_time_that_is_set_later_counts_from_that_time() -> None:
    sets = Sets(*WORKERS, trigger(), member("a"))
    sets.after(100.0)
    sets.set_quiet_time("3s")
    assert fired_at(sets, within=10.0) == 103.0


def test_without_its_quiet_time_it_no_longer_fires() -> None:
    sets = Sets(*WORKERS, trigger(quiet="10s"), member("a"))
    sets.after(9.0)
    sets.set_quiet_time(None)
    assert fired_at(sets, within=60.0) is None
    assert sets.engine.deadline is None


def test_a_quiet_time_that_is_not_a_duration_is_reported_and_does_not_fire() -> None:
    sets = Sets(*WORKERS, trigger(quiet="2minutes"), member("a"))
    assert fired_at(sets, within=600.0) is None
    assert conditions(sets.trigger())["QuietTimeValid"].status == "False"
    assert sets.reasons_told("go") == ["NotADuration"]


def test_a_quiet_time_of_nothing_fires_at_once() -> None:
    sets = Sets(*WORKERS, member("a"), trigger(quiet="0s"))
    assert sets.trigger().spec.state == SCHEDULE


def test_a_trigger_deleted_before_its_time_leaves_nothing_behind() -> None:
    sets = Sets(*WORKERS, trigger(quiet="10s"), member("a"))
    sets.after(9.0)
    sets.take_away(sets.trigger())
    asked = len(sets.asked)
    sets.after(60.0)
    # The pod's condition says that there is no trigger. That is the only effect.
    assert {type(effect).__name__ for effect in sets.asked[asked - 2 :]} == {"RecordEvent", "SetCondition"}
    assert len(sets.asked) == asked
    assert sets.engine.deadline is None


def test_set_back_to_planning_it_fires_again_after_the_quiet_time() -> None:
    sets = Sets(*WORKERS, trigger(quiet="10s"), member("a"))
    assert fired_at(sets, within=60.0) == 10.0
    sets.run(until=100.0)
    sets.set_state(PLANNING)
    sets.add(member("b"))
    assert fired_at(sets, within=60.0) == 110.0
    sets.after(1.0)
    assert all(sets.nodes().values())


def test_a_pod_that_comes_after_it_was_set_back_prolongs_the_wait() -> None:
    sets = Sets(*WORKERS, trigger(quiet="10s", state=SCHEDULE))
    sets.run(until=100.0)
    sets.set_state(PLANNING)
    sets.create(member("a"), at=107.0)
    assert fired_at(sets, within=60.0) == 117.0


def test_a_change_at_the_moment_of_firing_does_not_keep_it_from_firing() -> None:
    sets = Sets(*WORKERS, trigger(quiet="10s"), member("a"), write_latency=0.5)
    sets.run(until=10.2)
    changed = sets.trigger()
    sets.add(replace(changed, metadata=replace(changed.metadata, annotations={"seen": "yes"})))
    assert fired_at(sets, within=5.0) is not None
    assert sets.trigger().metadata.annotations == {"seen": "yes"}


def test_a_trigger_whose_quiet_time_is_removed_at_the_moment_of_firing_does_not_fire() -> None:
    sets = Sets(*WORKERS, trigger(quiet="10s"), member("a"), write_latency=0.5)
    sets.run(until=10.2)
    sets.set_quiet_time(None)
    assert fired_at(sets, within=60.0) is None


@pytest.mark.parametrize("kind", ["failed", "conflict", "lost"])
def test_a_flip_that_went_wrong_is_tried_again(kind: str) -> None:
    faults = Faults(**{kind: 1.0}, until=12.0)
    sets = Sets(*WORKERS, trigger(quiet="10s"), member("a"), write_faults=faults)
    at = fired_at(sets, within=20.0)
    assert at == 10.0 if kind == "lost" else at is not None and at <= 13.0


def test_a_watch_that_lags_does_not_make_it_fire_twice() -> None:
    sets = Sets(*WORKERS, trigger(quiet="10s"), member("a"), watch_latency=2.0)
    sets.create(member("b"), at=9.0)
    sets.run(until=60.0)
    assert all(sets.nodes().values())
    assert len(flips(sets)) == 1


def test_a_restart_does_not_restart_the_wait() -> None:
    sets = Sets(*WORKERS, trigger(quiet="10s"), member("a"))
    sets.after(4.0)
    sets.start_again()
    sets.after(3.0)
    assert fired_at(sets, within=20.0) == 10.0


def test_a_wait_that_ended_while_no_scheduler_ran_is_over() -> None:
    sets = Sets(*WORKERS, trigger(quiet="10s"), member("a"))
    sets.after(4.0)
    sets.agenda.now = 50.0
    sets.start_again()
    assert fired_at(sets, within=20.0) == 50.25


def test_a_restart_does_not_forget_that_the_trigger_was_set_back() -> None:
    sets = Sets(*WORKERS, trigger(quiet="20s"), member("a"))
    sets.run(until=100.0)
    sets.set_state(PLANNING)
    sets.run(until=110.0)
    sets.start_again()
    assert fired_at(sets, within=60.0) == 120.0


def test_a_trigger_that_was_set_back_while_no_scheduler_ran_waits_from_the_start_on() -> None:
    sets = Sets(*WORKERS, trigger(quiet="20s"), member("a"))
    sets.run(until=100.0)
    # No scheduler runs meanwhile.
    old = sets.trigger()
    sets.cluster.server.put(replace(old, spec=replace(old.spec, state=PLANNING)))
    sets.start_again()
    assert fired_at(sets, within=60.0) == 120.0


def test_a_quiet_time_changed_while_no_scheduler_ran_counts_from_the_start_on() -> None:
    sets = Sets(*WORKERS, trigger(quiet="1h"), member("a"))
    sets.run(until=100.0)
    old = sets.trigger()
    labels = {**old.metadata.labels, "planner.ciena.io/quiet-time": "20s"}
    sets.cluster.server.put(replace(old, metadata=replace(old.metadata, labels=labels)))
    sets.start_again()
    assert fired_at(sets, within=60.0) == 120.0


def test_a_restart_does_not_change_the_wait_after_the_last_pod_has_gone() -> None:
    def scene(*, restart: bool) -> float | None:
        sets = Sets(*WORKERS, trigger(quiet="20s"), member("a"))
        sets.create(member("b"), at=10.0)
        sets.run(until=12.0)
        sets.take_away(member("b"))
        if restart:
            sets.start_again()
        return fired_at(sets, within=60.0)

    assert scene(restart=False) == scene(restart=True) == 20.0


def test_the_status_shows_the_end_of_the_wait_while_it_lasts() -> None:
    sets = Sets(*WORKERS, trigger(quiet="90s"), member("a"))
    sets.after(2.0)
    assert sets.trigger().status.fire_at == format_timestamp(EPOCH + 90.0)
    sets.create(member("b"), at=30.0)
    sets.run(until=32.0)
    assert sets.trigger().status.fire_at == format_timestamp(EPOCH + 120.0)
    sets.run(until=125.0)
    assert sets.trigger().status.fire_at is None


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(1, 14), min_size=1, max_size=4),
    st.lists(st.floats(0.0, 1.0), max_size=4),
    st.integers(0, 1000),
)
def test_restarts_at_any_moment_do_not_change_when_it_fires(
    gaps: list[int], restarts: list[float], seed: int
) -> None:
    sets = Sets(*WORKERS, trigger(quiet="15s"), watch_latency=0.05, write_latency=0.05)
    last = 0.0
    for number, gap in enumerate(gaps):
        last += gap
        sets.create(member(f"p{number}", cpu="100m"), at=last)
    end = last + 15.0
    for share in sorted(restarts):
        sets.run(until=share * (end - 0.1))
        sets.start_again(seed)
    sets.run(until=end - 0.01)
    assert sets.trigger().spec.state == PLANNING
    sets.run(until=end + 0.1)
    assert sets.trigger().spec.state == SCHEDULE
