"""The API server refuses writes for a while or forever: other sets continue, and retries are rare."""

import pytest
from tests.podset.simulated_sets import WORKERS, Sets, conditions, member, plan_by_hand, trigger, worker

from longshore.api import Pod
from longshore.api.pod_set import PLANNING, SCHEDULE, SchedulePlan, UnplacedPod
from longshore.engine.cycle.reporting import REASON_UNSCHEDULABLE
from longshore.framework.effects import (
    Conflict,
    CreateObject,
    Effect,
    Failed,
    Outcome,
    PatchObject,
    SetCondition,
    Succeeded,
)
from longshore.podset.members import GATE
from longshore.podset.texts import REASON_STORE, REASON_WAITING
from longshore.testing import pod

FORBIDDEN = Failed("scheduleplans is forbidden: no right to create", 403, "Forbidden")


def is_plan_write(effect: Effect) -> bool:
    writes = isinstance(effect, CreateObject | PatchObject) and effect.kind is SchedulePlan
    return writes and not (isinstance(effect, PatchObject) and effect.subresource)


def is_status_write(effect: Effect) -> bool:
    return isinstance(effect, PatchObject) and effect.kind is SchedulePlan and bool(effect.subresource)


def refuse_plans(effect: Effect) -> Outcome | None:
    return FORBIDDEN if is_plan_write(effect) else None


def refused(*pods: Pod, all_or_nothing: bool = False) -> Sets:
    """A released set on one node of 4 CPUs, whose plan cannot be stored."""
    sets = Sets(worker("only"), trigger(all_or_nothing=all_or_nothing), *(pods or (member("a", cpu="3"),)))
    sets.after(1.0)
    sets.cluster.answer = refuse_plans
    sets.release()
    return sets


@pytest.mark.parametrize("whole", [False, True])
def test_a_plan_that_cannot_be_stored_keeps_no_room(whole: bool) -> None:
    sets = refused(all_or_nothing=whole)
    sets.add(pod("free").requests(cpu="2"))
    sets.after(1.0)
    assert sets.node_of("free") == "only"


def test_others_get_the_room_that_was_kept_until_the_plan_was_refused() -> None:
    sets = Sets(worker("only"), trigger(), member("a", cpu="3"), write_latency=1.0)
    sets.cluster.answer = refuse_plans
    sets.release()
    sets.after(0.1)
    sets.add(pod("free").requests(cpu="2"))
    sets.after(0.5)
    assert sets.node_of("free") == ""
    sets.after(1.0)
    assert sets.node_of("free") == "only"


def test_a_plan_that_cannot_be_stored_is_tried_again_ever_less_often() -> None:
    sets = refused()
    sets.after(60.0)
    assert len(sets.plan_writes()) == 6
    sets.after(3600.0)
    assert 60 <= len(sets.plan_writes()) <= 70
    assert sets.reasons_told("go").count("PlanNotStored") == 1
    sets.cluster.answer = None
    sets.after(61.0)
    assert sets.nodes() == sets.entries() == {"a": "only"}


def test_a_refused_plan_is_tried_again_soon_after_an_earlier_success() -> None:
    sets = refused(member("a"))
    sets.after(100.0)
    sets.cluster.answer = None
    sets.after(100.0)
    assert sets.node_of("a") == "only"
    sets.cluster.answer = refuse_plans
    sets.add(member("b"))
    sets.after(0.5)
    sets.cluster.answer = None
    sets.after(1.0)
    assert sets.node_of("b") == "only"


def test_its_pods_say_why_they_wait_and_autoscalers_add_no_nodes_for_them() -> None:
    sets = refused(member("a"), member("b"))
    sets.after(10.0)
    for name in "ab":
        reason, message = sets.condition(name)
        assert reason == REASON_STORE != REASON_UNSCHEDULABLE
        assert message == f"the plan of the set could not be stored: {FORBIDDEN.message}"
    told = len(sets.asked_for(SetCondition))
    sets.after(600.0)
    assert len(sets.asked_for(SetCondition)) == told
    sets.set_state(PLANNING)
    sets.after(5.0)
    assert sets.condition("a")[0] == REASON_WAITING


def test_a_pod_that_fits_later_has_a_condition_if_its_entry_cannot_be_stored() -> None:
    sets = Sets(*WORKERS, trigger(state=SCHEDULE), member("a"), member("big", cpu="16"))
    sets.after(5.0)
    assert sets.condition("big")[0] == REASON_UNSCHEDULABLE
    sets.cluster.answer = refuse_plans
    sets.add(worker("huge", cpu="32"))
    sets.after(10.0)
    reason, message = sets.condition("big")
    assert reason == REASON_STORE
    assert sets.stored_plan().status.unplaced == (UnplacedPod("big", message),)
    sets.cluster.answer = None
    sets.after(61.0)
    assert sets.node_of("big") == "huge"


def test_pods_do_not_mention_a_plan_that_was_refused_once() -> None:
    sets = refused()
    sets.after(0.5)
    sets.cluster.answer = None
    sets.after(5.0)
    assert sets.reasons_told("a") == [REASON_WAITING, "Scheduled"]
    assert sets.node_of("a") == "only"


@pytest.mark.parametrize("outcome", [FORBIDDEN, Failed("status.gap: invalid", 422), Conflict("no", 409)])
def test_a_status_that_is_refused_is_tried_again_ever_less_often(outcome: Outcome) -> None:
    sets = Sets(*WORKERS, trigger(state=SCHEDULE))
    sets.cluster.answer = lambda effect: outcome if is_status_write(effect) else None
    sets.add(member("a"))
    sets.after(3600.0)
    assert 12 <= sum(map(is_status_write, sets.asked)) <= 22
    sets.cluster.answer = None
    sets.after(301.0)
    assert conditions(sets.stored_plan())["Complete"].status == "True"


def test_a_gate_that_cannot_be_removed_is_retried_with_backoff_and_others_go() -> None:
    sets = Sets(*WORKERS, trigger(), member("a").gates(GATE), member("b").gates(GATE))

    def refuse(effect: Effect) -> Outcome | None:
        return FORBIDDEN if isinstance(effect, PatchObject) and effect.name == "a" else None

    sets.cluster.answer = refuse
    sets.release()
    sets.after(1.0)
    assert sets.node_of("b")
    sets.after(3600.0)
    assert 12 <= sum(refuse(effect) is not None for effect in sets.asked) <= 22
    sets.cluster.answer = None
    sets.after(301.0)
    assert sets.node_of("a") == sets.entries()["a"]


def refuse_large_annotations(effect: Effect) -> Outcome | None:
    if not is_plan_write(effect) or not isinstance(effect, CreateObject | PatchObject):
        return None
    body = effect.body if isinstance(effect, CreateObject) else effect.patch
    said = sum(len(key) + len(value) for key, value in body["metadata"]["annotations"].items())
    return (
        Failed("metadata.annotations: Too long: may not be more than 262144 bytes") if said > 2**18 else None
    )


def test_a_manual_plan_for_more_future_pods_than_an_annotation_can_name() -> None:
    names = [f"{'x' * 200}-{number}" for number in range(1300)]
    entries = dict.fromkeys(names, "n2")
    sets = Sets(*WORKERS, trigger(state=SCHEDULE), plan_by_hand(entries))
    sets.cluster.answer = refuse_large_annotations
    sets.add(member(names[0], cpu="1m"), member("other", cpu="1m"))
    sets.after(5.0)
    assert sets.node_of(names[0]) == "n2"
    assert sets.entries() == entries | {"other": sets.node_of("other")}
    writes = len(sets.plan_writes())
    sets.start_again()
    sets.after(600.0)
    assert sets.entries() == entries | {"other": sets.node_of("other")}
    assert len(sets.plan_writes()) == writes
    sets.take_away(member("other"), member(names[0]))
    sets.after(5.0)
    assert sets.entries() == dict.fromkeys(names[1:], "n2")
    assert "PlanNotStored" not in sets.reasons_told("go")


def test_a_status_that_the_api_server_prunes_is_written_once() -> None:
    """Pallet's CRDs lack this field, so the write succeeds without effect."""
    sets = Sets(*WORKERS, trigger(state=SCHEDULE), plan_by_hand({"later": "n1"}))
    sets.cluster.answer = lambda effect: Succeeded() if is_status_write(effect) else None
    sets.add(member("a"), member("big", cpu="16"))
    sets.after(10.0)
    written = sum(map(is_status_write, sets.asked))
    assert written <= 4
    sets.after(3600.0)
    assert sum(map(is_status_write, sets.asked)) == written
    sets.cluster.answer = None
    sets.add(member("b"))
    sets.after(5.0)
    assert sets.stored_plan().status.following == 2
