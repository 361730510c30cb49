"""Binds that fail: the plan is followed, corrected or made again, and finally agrees with the pods."""

import pytest
from msgspec.structs import replace
from tests.podset.simulated_sets import (
    WORKERS,
    Sets,
    address,
    conditions,
    member,
    plan_by_hand,
    planner,
    trigger,
    worker,
)

from longshore.api.pod_set import SCHEDULE
from longshore.framework.effects import Bind, Effect, Failed, Outcome
from longshore.sim import Faults

FIRED = trigger(state=SCHEDULE)


def no_binds_to_n1(effect: Effect) -> Outcome | None:
    """Refuse binds to the node n1, as an admission policy does."""
    if isinstance(effect, Bind) and effect.node == "n1":
        return Failed("admission webhook denied the request", 403, "Forbidden")
    return None


@pytest.mark.parametrize("kind", ["failed", "conflict", "lost"])
def test_a_bind_that_goes_wrong_once_is_tried_again_on_the_planned_node(kind: str) -> None:
    sets = Sets(*WORKERS, FIRED, member("a"), faults=Faults(**{kind: 1.0}, until=0.5))
    planned = sets.entries()
    sets.after(10.0)
    assert sets.entries() == sets.nodes() == planned
    assert len(sets.plan_writes()) == 1


def test_a_pod_whose_bind_fails_after_its_plan_was_deleted_is_planned_again() -> None:
    faults = Faults(failed=1.0, until=0.5)
    sets = Sets(*WORKERS, FIRED, member("a"), faults=faults, bind_latency=0.2, answer_latency=0.1)
    sets.after(0.1)
    (bind,) = sets.asked_for(Bind)
    sets.delete(sets.stored_plan())
    sets.after(10.0)
    assert bind.name == "a"
    assert sets.entries() == sets.nodes() != {}


def test_a_pod_that_changes_is_not_tried_more_often_for_that() -> None:
    sets = Sets(*WORKERS, FIRED, member("a"), faults=Faults(failed=1.0))
    for number in range(40):
        sets.after(0.1)
        seen = replace(sets.pod("a").metadata, annotations={"seen": str(number)})
        sets.add(replace(sets.pod("a"), metadata=seen))
    # After 1 and 2 seconds.
    assert len(sets.asked_for(Bind)) <= 3


def test_a_node_that_no_pod_can_be_bound_to_is_given_up() -> None:
    sets = Sets(*WORKERS, FIRED, plan_by_hand({"a": "n1"}), member("a"), answer=no_binds_to_n1)
    sets.after(60.0)
    assert sets.entries() == sets.nodes()
    assert sets.node_of("a") in ("n2", "n3")
    assert len([bind for bind in sets.asked_for(Bind) if bind.node == "n1"]) == 3
    assert conditions(sets.stored_plan())["PlannedAgain"].message.endswith("n1 no longer fits a")


def test_a_planner_is_asked_again_without_a_node_that_was_given_up() -> None:
    sets = Sets(
        *WORKERS,
        planner(),
        FIRED,
        member("a"),
        planners={address(): lambda request: {"a": request.eligible_nodes[0]}},
        answer=no_binds_to_n1,
    )
    sets.after(60.0)
    assert [each.eligible_nodes for each in sets.requests()] == [("n1", "n2", "n3"), ("n2", "n3")]
    assert sets.entries() == sets.nodes() == {"a": "n2"}


def test_a_set_that_goes_as_a_whole_gives_it_up_too() -> None:
    whole = trigger(state=SCHEDULE, all_or_nothing=True)
    sets = Sets(*WORKERS, whole, *(member(f"p{n}", cpu="2") for n in range(4)), answer=no_binds_to_n1)
    sets.after(120.0)
    assert sets.entries() == sets.nodes()
    assert all(sets.nodes().values())


def test_a_set_without_another_node_keeps_trying() -> None:
    sets = Sets(worker("n1"), FIRED, member("a"), answer=no_binds_to_n1)
    sets.after(120.0)
    assert sets.node_of("a") == ""
    sets.add(worker("n2"))
    sets.after(30.0)
    assert sets.entries() == sets.nodes() == {"a": "n2"}


def test_the_plan_follows_a_pod_that_another_client_has_bound() -> None:
    sets = Sets(*WORKERS, FIRED, member("a"), bind_latency=1.0)
    (bind,) = sets.asked_for(Bind)
    elsewhere = "n3" if bind.node != "n3" else "n2"
    sets.cluster.server.perform(Bind.of(sets.pod("a"), elsewhere))
    sets.after(0.5)
    sets.add(sets.pod("a"))
    sets.after(10.0)
    assert sets.entries() == sets.nodes() == {"a": elsewhere}


def test_a_pod_deleted_while_it_is_being_bound_leaves_nothing_behind() -> None:
    sets = Sets(*WORKERS, FIRED, member("a"), bind_latency=1.0)
    sets.after(0.5)
    sets.take_away(member("a"))
    sets.after(10.0)
    assert sets.plan() is None
    assert sets.engine.deadline is None


def test_a_pod_whose_entry_could_not_be_stored_for_long_goes_when_it_can() -> None:
    sets = Sets(*WORKERS, FIRED, member("a"), member("big", cpu="8"))
    sets.after(5.0)
    # No pod waits on Permit that long.
    sets.break_writes(Faults(failed=1.0, until=sets.now + 1000.0))
    sets.add(worker("huge", cpu="16"))
    sets.after(1000.0)
    assert sets.node_of("big") == ""
    sets.after(61.0)
    assert sets.entries() == sets.nodes()
    assert sets.node_of("big") == "huge"
