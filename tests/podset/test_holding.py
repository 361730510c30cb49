"""A held pod is not scheduled, whatever event occurs, and its condition says what it waits for."""

import pytest
from msgspec.structs import replace
from tests.podset.simulated_sets import EPOCH, WORKERS, Sets, member, trigger, worker

from longshore.api.pod_set import PLANNING, POD_SET_LABEL, SCHEDULE
from longshore.api.timestamps import format_timestamp
from longshore.framework.effects import Bind, Evict
from longshore.podset.texts import REASON_WAITING
from longshore.sim import Faults
from longshore.testing import pod

TWO = (member("a"), member("b"))


def test_no_pod_is_evicted_for_a_held_one_of_higher_priority() -> None:
    sets = Sets(worker("only", cpu="1"), pod("low").requests(cpu="1"))
    sets.after(1.0)
    sets.add(trigger(), member("high").priority(1000))
    sets.after(600.0)
    assert sets.asked_for(Evict) == []
    assert sets.node_of("high") == ""


def test_no_pod_is_evicted_for_a_released_one_either() -> None:
    sets = Sets(worker("only", cpu="1"), pod("low").requests(cpu="1"))
    sets.after(1.0)
    sets.add(trigger(state=SCHEDULE), member("high").priority(1000))
    sets.after(600.0)
    assert sets.asked_for(Evict) == []
    assert sets.condition("high")[0] == "Unschedulable"


@pytest.mark.parametrize("seed", range(5))
def test_a_restart_does_not_let_a_held_pod_go(seed: int) -> None:
    sets = Sets(*WORKERS, trigger(), *TWO)
    sets.after(5.0)
    sets.start_again(seed)
    sets.after(600.0)
    assert sets.asked_for(Bind) == []


def test_after_a_restart_no_event_is_repeated() -> None:
    sets = Sets(*WORKERS, trigger(), *TWO)
    sets.after(5.0)
    told = len(sets.asked)
    sets.start_again()
    sets.after(600.0)
    assert len(sets.asked) == told


def test_a_pod_that_was_promised_a_node_is_held_all_the_same() -> None:
    nominated = member("a")
    nominated = replace(nominated, status=replace(nominated.status, nominated_node_name="n1"))
    sets = Sets(*WORKERS, trigger(), nominated)
    sets.after(60.0)
    assert sets.node_of("a") == ""


def test_a_trigger_that_is_deleted_holds_the_pods_that_come_afterwards() -> None:
    sets = Sets(*WORKERS, trigger(state=SCHEDULE), member("a"))
    sets.after(1.0)
    sets.take_away(sets.trigger())
    sets.add(member("b"))
    sets.after(60.0)
    assert sets.node_of("a")
    assert sets.node_of("b") == ""
    assert "no trigger" in sets.condition("b")[1]


def test_pods_get_a_new_condition_when_their_trigger_is_created() -> None:
    sets = Sets(*WORKERS, member("a"))
    sets.after(5.0)
    sets.add(trigger(quiet="90s"))
    # The trigger is younger than the pod.
    told = f"until the quiet time of 90s is over, not before {format_timestamp(EPOCH + 95.0)}"
    assert told in sets.condition("a")[1]
    assert sets.reasons_told("a") == [REASON_WAITING, REASON_WAITING]


def test_only_the_pod_that_joins_gets_a_condition_with_the_new_time() -> None:
    sets = Sets(*WORKERS, trigger(quiet="90s"), member("a"))
    sets.after(30.0)
    sets.add(member("b"))
    sets.after(5.0)
    assert f"not before {format_timestamp(EPOCH + 90.0)} (see" in sets.condition("a")[1]
    assert f"not before {format_timestamp(EPOCH + 120.0)} (see" in sets.condition("b")[1]
    assert sets.trigger().status.fire_at == format_timestamp(EPOCH + 120.0)
    assert sets.reasons_told("a") == [REASON_WAITING]


def test_a_condition_promises_no_time_if_the_quiet_time_is_invalid() -> None:
    sets = Sets(*WORKERS, trigger(quiet="2minutes"), member("a"))
    assert "until its state is Schedule" in sets.condition("a")[1]


def test_a_pod_that_failed_to_be_bound_is_held_without_another_try() -> None:
    sets = Sets(*WORKERS, trigger(), member("a"), faults=Faults(failed=1.0))
    sets.release()
    sets.after(0.5)
    assert sets.condition("a")[0] == "SchedulerError"
    sets.set_state(PLANNING)
    tries = len(sets.asked_for(Bind))
    sets.after(600.0)
    assert len(sets.asked_for(Bind)) == tries
    assert sets.condition("a")[0] == REASON_WAITING
    assert "FailedScheduling" not in sets.reasons_told("a")[tries + 1 :]


def test_a_pod_left_out_says_that_it_is_held_when_its_set_is_held_again() -> None:
    sets = Sets(worker("small", cpu="1"), trigger(state=SCHEDULE), member("big", cpu="8"))
    sets.after(5.0)
    assert sets.condition("big")[0] == "Unschedulable"
    sets.set_state(PLANNING)
    assert sets.condition("big")[0] == REASON_WAITING
    sets.add(worker("large", cpu="16"))
    sets.after(600.0)
    assert sets.node_of("big") == ""


def test_a_pod_that_moves_to_a_held_set_is_held() -> None:
    sets = Sets(
        worker("small", cpu="1"),
        trigger(state=SCHEDULE),
        trigger("other", podset="other"),
        member("a", cpu="2"),
    )
    sets.after(5.0)
    sets.add(replace(sets.pod("a"), metadata=_labeled(sets, "other")))
    sets.add(worker("large"))
    sets.after(60.0)
    assert sets.node_of("a") == ""
    assert "pod set other is held" in sets.condition("a")[1]


def _labeled(sets: Sets, podset: str) -> object:
    meta = sets.pod("a").metadata
    return replace(meta, labels={**meta.labels, POD_SET_LABEL: podset})


def test_a_pod_that_moves_to_a_released_set_is_planned_there() -> None:
    sets = Sets(*WORKERS, trigger(), trigger("other", podset="other", state=SCHEDULE), member("a"))
    sets.after(5.0)
    sets.add(replace(sets.pod("a"), metadata=_labeled(sets, "other")))
    sets.after(1.0)
    assert sets.entries("other") == {"a": sets.node_of("a")}
    assert sets.plan("batch") is None


def test_a_pod_of_another_scheduler_is_neither_held_nor_planned() -> None:
    sets = Sets(*WORKERS, trigger(), member("ours"), member("theirs").scheduler("longshore"))
    sets.after(5.0)
    assert sets.node_of("theirs")
    sets.release()
    sets.after(1.0)
    assert sets.entries().keys() == {"ours"}


def test_pods_outside_sets_do_not_wait_for_a_set_that_is_held() -> None:
    sets = Sets(*WORKERS, trigger(), *TWO, pod("free").requests(cpu="1"))
    sets.after(0.1)
    assert sets.node_of("free")


def test_a_pod_with_a_failed_bind_before_the_hold_goes_at_the_release() -> None:
    sets = Sets(*WORKERS, trigger(), member("a"), faults=Faults(failed=1.0, until=1.0))
    sets.release()
    sets.after(0.5)
    sets.set_state(PLANNING)
    sets.after(60.0)
    sets.release()
    sets.after(1.0)
    assert sets.entries() == sets.nodes()
    assert all(sets.nodes().values())


def test_a_held_pod_keeps_no_room_though_its_bind_was_tried() -> None:
    sets = Sets(worker("only", cpu="1"), trigger(), member("a"), faults=Faults(failed=1.0, until=1.0))
    sets.release()
    sets.after(0.5)
    sets.set_state(PLANNING)
    sets.after(1.0)
    sets.add(pod("other").requests(cpu="1"))
    sets.after(1.0)
    assert sets.nodes() == {"a": "", "other": "only"}
