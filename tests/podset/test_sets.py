"""Which pods, triggers and plans belong together, as the watch reports them."""

from typing import Any

from msgspec.structs import replace
from tests.podset.simulated_sets import member, plan_by_hand, trigger

from longshore.api import Change, Pod
from longshore.api.meta import ApiObject
from longshore.api.pod_set import POD_SET_LABEL, SCHEDULE
from longshore.podset.sets import PodSet, Sets
from longshore.testing import pod

BATCH = ("default", "batch")


def known(*things: ApiObject) -> Sets:
    sets = Sets()
    for thing in things:
        sets.changed(Change(None, thing))
    return sets


def batch(sets: Sets) -> PodSet:
    found = sets.get(BATCH)
    assert found is not None
    return found


def names(pods: dict[str, Pod]) -> set[str]:
    return {each.metadata.name for each in pods.values()}


def test_pods_of_a_set_are_those_without_and_those_with_a_node() -> None:
    podset = batch(known(member("a"), member("b").on("n1"), member("c", podset="other"), pod("d")))
    assert (names(podset.pending), names(podset.bound)) == ({"a"}, {"b"})


def test_pods_that_have_ended_or_are_to_end_do_not_count() -> None:
    podset = batch(known(member("a").deleting(), member("b").on("n1").phase("Succeeded"), trigger()))
    assert (podset.pending, podset.bound) == ({}, {})


def test_a_bind_moves_a_pod_from_pending_to_assigned() -> None:
    sets = known(member("a"))
    sets.changed(Change(member("a"), member("a").on("n1")))
    assert (names(batch(sets).pending), names(batch(sets).bound)) == (set(), {"a"})


def test_a_pod_that_changes_its_label_concerns_two_sets() -> None:
    sets = known(member("a"))
    change: Change[Any] = Change(member("a"), member("a", podset="other"))
    assert [each.name for each in sets.changed(change)] == ["batch", "other"]
    assert batch(sets).pending == {}


def test_an_empty_label_is_no_set() -> None:
    assert list(known(pod("a").labels(**{POD_SET_LABEL: ""}))) == []


def test_of_several_triggers_the_first_by_name_counts() -> None:
    sets = known(trigger("b", state=SCHEDULE), trigger("a"))
    assert not batch(sets).released
    sets.changed(Change(trigger("a"), None))
    assert batch(sets).released


def test_a_plan_belongs_to_its_set_by_name_and_label() -> None:
    plan = plan_by_hand({"a": "n1"})
    assert batch(known(plan)).plan is plan
    assert batch(known(member("a"), plan)).plan is plan


def test_a_plan_without_the_label_is_found_when_its_set_is_known() -> None:
    plan = plan_by_hand({"a": "n1"}, labeled=False)
    sets = known(plan)
    assert list(sets) == []
    sets.changed(Change(None, member("a")))
    assert batch(sets).plan is plan
    sets.changed(Change(plan, None))
    assert batch(sets).plan is None


def test_a_plan_of_another_name_is_not_the_set_s() -> None:
    plan = plan_by_hand({"a": "n1"})
    other = replace(plan, metadata=replace(plan.metadata, name="mine"))
    assert batch(known(member("a"), other)).plan is None


def test_a_set_without_any_objects_is_forgotten() -> None:
    sets = known(member("a"))
    podset = batch(sets)
    sets.forget_if_empty(podset)
    assert sets.get(BATCH) is podset
    sets.changed(Change(member("a"), None))
    sets.forget_if_empty(podset)
    assert sets.get(BATCH) is None
