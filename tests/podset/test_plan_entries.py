"""The entries of a plan: the stored ones, those that the watch reports late, and the intended ones."""

from typing import Any

from msgspec.structs import replace
from tests.podset.simulated_sets import member, plan_by_hand

from longshore.api import Change, Pod
from longshore.api.pod_set import SCHEDULER_NAME, PlanEntry, SchedulePlan, SchedulePlanSpec
from longshore.framework.effects import CreateObject, DeleteObject, PatchObject, Succeeded
from longshore.podset.plan_entries import AWAITED, DIGEST, PlanEntries, annotations, awaited_pods
from longshore.podset.sets import PodSet, Sets


def known(*pods: Pod, plan: SchedulePlan | None = None) -> PlanEntries:
    """Return the entries of a set with these pods and this plan."""
    sets = Sets()
    for each in (*pods, *([] if plan is None else [plan])):
        sets.changed(Change(None, each))
    found = PlanEntries(sets.get(("default", "batch")) or PodSet("default", "batch"), SCHEDULER_NAME)
    found.watched(now=0.0)
    return found


def ours(entries: dict[str, str], awaited: str = "", version: str = "7") -> SchedulePlan:
    """Return a plan as the scheduler writes it."""
    plan = plan_by_hand(entries)
    told = annotations(entries, awaited.split(",") if awaited else ())
    return replace(
        plan, metadata=replace(plan.metadata, annotations=told, resource_version=version, uid="plan")
    )


def stored_by(plan: PlanEntries, entries: dict[str, str]) -> Any:
    errand = plan.store(entries)
    effect = next(errand)
    try:
        errand.send(Succeeded())
    except StopIteration as end:
        assert end.value == Succeeded()
    return effect


def test_the_entry_of_a_bound_pod_is_its_node_whatever_the_plan_says() -> None:
    plan = known(member("a").on("n2"), member("b"), plan=ours({"a": "n1", "b": "n1"}))
    assert plan.revised() == {"a": "n2", "b": "n1"}


def test_a_bound_pod_without_an_entry_gets_one_unless_it_has_another_scheduler() -> None:
    plan = known(member("a").on("n2"), member("b").scheduler("other").on("n1"))
    assert plan.revised() == {"a": "n2"}


def test_entries_that_the_scheduler_wrote_are_dropped_when_their_pods_are_gone() -> None:
    assert known(member("a"), plan=ours({"a": "n1", "gone": "n1"})).revised() == {"a": "n1"}


def test_entries_written_by_hand_are_kept_before_their_pods_exist() -> None:
    plan = known(member("a"), plan=plan_by_hand({"a": "n1", "later": "n1"}))
    assert plan.revised() == {"a": "n1", "later": "n1"}
    plan.gone.add("later")
    assert plan.revised() == {"a": "n1"}


def test_new_entries_replace_the_old_ones_and_keep_their_own_order() -> None:
    plan = known(member("a"), member("b"), plan=ours({"a": "n1", "b": "n1"}))
    assert list(plan.revised({"b": "n3", "a": "n2"}, without={"a", "b"}).items()) == [
        ("b", "n3"),
        ("a", "n2"),
    ]


def test_after_a_write_an_older_version_from_the_watch_is_ignored_for_a_while() -> None:
    plan = known(member("a"), plan=ours({"a": "n1"}))
    plan.wrote({"a": "n2"}, now=10.0)
    assert not plan.watched(now=11.0)
    assert plan.current == {"a": "n2"}
    assert plan.watch_due == 15.0
    assert plan.watched(now=15.0)
    assert plan.current == {"a": "n1"}
    assert plan.watch_due is None


def test_the_watch_is_believed_once_it_has_reported_the_write() -> None:
    plan = known(member("a"), plan=ours({"a": "n1"}))
    plan.wrote({"a": "n2"}, now=10.0)
    plan.podset.plan = ours({"a": "n2"})
    assert not plan.watched(now=10.1)
    plan.podset.plan = ours({"a": "n3"})
    assert plan.watched(now=10.2)
    assert plan.current == {"a": "n3"}


def test_the_watch_is_believed_at_once_if_it_is_quicker_than_the_answer() -> None:
    plan = known(member("a"), plan=ours({"a": "n1"}))
    plan.writing = {"a": "n2"}
    plan.podset.plan = ours({"a": "n2"})
    assert not plan.watched(now=10.0)
    assert plan.current == {"a": "n2"}
    plan.writing = None
    plan.wrote({"a": "n2"}, now=10.1)
    plan.podset.plan = ours({"a": "n3"})
    assert plan.watched(now=10.2)


def test_of_several_entries_for_one_pod_the_first_counts() -> None:
    entries = (PlanEntry("a", "n1"), PlanEntry("b", "n2"), PlanEntry("a", "n3"))
    twice = replace(plan_by_hand({}), spec=SchedulePlanSpec(entries))
    assert list(known(member("a"), plan=twice).current.items()) == [("a", "n1"), ("b", "n2")]


def test_a_plan_that_no_scheduler_wrote_does_not_say_which_pods_it_awaits() -> None:
    assert awaited_pods(plan_by_hand({"a": "n1"})) is None
    assert awaited_pods(ours({"a": "n1"})) == frozenset()
    assert awaited_pods(ours({"a": "n1", "b": "n1"}, "a,b")) == frozenset("ab")


def test_a_plan_changed_by_hand_no_longer_says_which_pods_it_awaits() -> None:
    changed = replace(ours({"a": "n1"}), spec=plan_by_hand({"a": "n1", "later": "n2"}).spec)
    assert awaited_pods(changed) is None
    reordered = replace(ours({"a": "n1", "b": "n2"}), spec=plan_by_hand({"b": "n2", "a": "n1"}).spec)
    assert awaited_pods(reordered) == frozenset()


def test_the_first_plan_of_a_set_is_created_with_label_and_owners() -> None:
    effect = stored_by(known(member("a"), member("b")), {"a": "n1", "b": "n2", "later": "n1"})
    assert isinstance(effect, CreateObject)
    assert effect.name == "batch-db87db886"
    assert effect.body == {
        "metadata": {
            "labels": {"planner.ciena.io/pod-set": "batch"},
            "annotations": {AWAITED: "later", DIGEST: effect.body["metadata"]["annotations"][DIGEST]},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "uid-default-a"},
                {"apiVersion": "v1", "kind": "Pod", "name": "b", "uid": "uid-default-b"},
            ],
        },
        "spec": {
            "plan": [
                {"pod": "a", "node": "n1"},
                {"pod": "b", "node": "n2"},
                {"pod": "later", "node": "n1"},
            ]
        },
    }


def test_a_stored_plan_is_replaced_only_in_the_known_version() -> None:
    effect = stored_by(known(member("a"), plan=ours({"a": "n1"}, version="41")), {"a": "n2"})
    assert isinstance(effect, PatchObject)
    assert effect.patch["metadata"]["resourceVersion"] == "41"
    assert effect.patch["spec"] == {"plan": [{"pod": "a", "node": "n2"}]}


def test_a_plan_without_entries_is_deleted_by_its_uid() -> None:
    effect = stored_by(known(plan=ours({"a": "n1"})), {})
    assert effect == DeleteObject(SchedulePlan, "default", "batch-db87db886", "plan")


def test_with_too_many_names_for_an_annotation_any_entry_may_await_its_pod() -> None:
    entries = {f"{'x' * 200}-{number}": "n1" for number in range(1000)}
    *later, first = entries
    many = annotations(entries, later)
    assert len(many[AWAITED]) < 10
    assert annotations(entries, later[:900])[AWAITED].split(",") == sorted(later[:900])
    stored = plan_by_hand(entries)
    stored = replace(stored, metadata=replace(stored.metadata, annotations=many))
    assert awaited_pods(stored) == entries.keys()
    plan = known(member(first), plan=stored)
    assert plan.is_adopted(entries)
    assert plan.revised() == entries
    come = known(*(member(name) for name in entries if name not in later[:900]), plan=stored)
    assert not come.is_adopted(entries)
