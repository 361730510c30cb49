"""Triggers in unexpected situations: clocks that are set, refused writes, and odd statuses."""

import pytest
from msgspec.structs import replace
from tests.podset.simulated_sets import WORKERS, Sets, member, trigger
from tests.podset.test_quiet_time import fired_at

from longshore.api.pod_set import PLANNING, SCHEDULE, ScheduleTrigger, ScheduleTriggerStatus
from longshore.framework.effects import PatchObject
from longshore.sim import Faults

HOUR = 3600.0


def writes(sets: Sets) -> int:
    return sum(each.kind is ScheduleTrigger for each in sets.asked_for(PatchObject))


def test_a_clock_that_is_set_forward_ends_the_quiet_time_within_a_minute() -> None:
    sets = Sets(*WORKERS, trigger(quiet="30m"), member("a"))
    sets.after(10.0)
    sets.engine.epoch += HOUR
    found = fired_at(sets, within=100.0)
    assert found is not None
    assert found <= 70.0


def test_a_clock_that_is_set_back_does_not_end_the_quiet_time_early() -> None:
    sets = Sets(*WORKERS, trigger(quiet="2m0s"), member("a"))
    sets.after(10.0)
    sets.engine.epoch -= HOUR
    assert fired_at(sets, within=600.0) is None


def test_a_pod_created_after_the_machine_slept_has_its_whole_quiet_time_and_no_more() -> None:
    sets = Sets(*WORKERS, trigger(quiet="2m0s"))
    sets.engine.epoch += HOUR
    created = "2027-01-15T09:00:05Z"
    pod = member("a")
    sets.after(5.0)
    sets.add(replace(pod, metadata=replace(pod.metadata, creation_timestamp=created)))
    found = fired_at(sets, within=600.0)
    assert found is not None
    assert found <= 125.5


def test_a_status_that_is_refused_is_written_ever_more_rarely() -> None:
    sets = Sets(*WORKERS, trigger(), member("a"), write_faults=Faults(failed=1.0, until=HOUR))
    sets.after(HOUR)
    # After 1, 2, 4, … 256 seconds, and then every five minutes.
    assert 15 <= writes(sets) <= 25
    sets.after(300.0)
    assert sets.trigger().status.held == 1


def test_a_trigger_that_changes_is_written_at_once_whatever_was_refused_before() -> None:
    sets = Sets(*WORKERS, trigger(), member("a"), write_faults=Faults(failed=1.0, until=1000.0))
    sets.after(1001.0)
    sets.release()
    sets.after(2.0)
    assert [each.status for each in sets.trigger().status.conditions if each.type == "Fired"] == ["True"]


def test_a_status_that_is_refused_does_not_keep_it_from_firing() -> None:
    sets = Sets(*WORKERS, trigger(quiet="10m"), member("a"), write_faults=Faults(failed=1.0, until=599.0))
    found = fired_at(sets, within=700.0)
    assert found is not None
    assert found <= 601.0


@pytest.mark.parametrize("since", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "soon"])
def test_any_timestamp_in_a_status_is_tolerated(since: str) -> None:
    status = ScheduleTriggerStatus(planning_since=since)
    sets = Sets(*WORKERS, replace(trigger(quiet="10s"), status=status), member("a"), member("b"))
    sets.after(20.0)
    expected = PLANNING if since.startswith("9") else SCHEDULE
    assert sets.trigger().spec.state == expected
    sets.release()
    sets.after(1.0)
    assert all(sets.nodes().values())
