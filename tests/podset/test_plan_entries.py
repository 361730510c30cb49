"""What is known about a plan: what is stored, what the watch tells late, and what ought to be stored."""

from typing import Any

from msgspec.structs import replace
from tests.podset.stage import member, plan_by_hand

from longshore.api import Change, Pod
from longshore.api.pod_set import SCHEDULER_NAME, PlanEntry, SchedulePlan, SchedulePlanSpec
from longshore.framework.effects import CreateObject, DeleteObject, PatchObject, Succeeded
from longshore.podset.plan_entries import AWAITED, DIGEST, GATE, SetPlan, annotations, awaited_pods
from longshore.podset.sets import PodSet, Sets
from longshore.podset.storing import store


def known(*pods: Pod, plan: SchedulePlan | None = None) -> SetPlan:
    sets = Sets()
    for thing in (*pods, *([] if plan is None else [plan])):
        sets.changed(Change(None, thing))
    podset = sets.get(("default", "batch")) or PodSet("default", "batch")
    found = SetPlan(podset, SCHEDULER_NAME)
    found.told(now=0.0)
    return found


def ours(entries: dict[str, str], awaited: str = "", version: str = "7") -> SchedulePlan:
    """A plan as we write it."""
    plan = plan_by_hand(entries)
    told = annotations(entries, awaited.split(",") if awaited else ())
    return replace(
        plan, metadata=replace(plan.metadata, annotations=told, resource_version=version, uid="plan")
    )


def stored_by(plan: SetPlan, entries: dict[str, str]) -> Any:
    errand = store(plan, entries)
    effect = next(errand)
    try:
        errand.send(Succeeded())
    except StopIteration as end:
        assert end.value == Succeeded()
    return effect


def test_a_pod_that_has_a_node_is_where_it_is_whatever_the_plan_says() -> None:
    plan = known(member("a").on("n2"), member("b"), plan=ours({"a": "n1", "b": "n1"}))
    assert plan.revised() == {"a": "n2", "b": "n1"}


def test_a_bound_pod_of_ours_without_an_entry_gets_one_and_that_of_others_does_not() -> None:
    plan = known(member("a").on("n2"), member("b").scheduler("other").on("n1"))
    assert plan.revised() == {"a": "n2"}


def test_entries_of_a_plan_of_ours_whose_pods_are_not_there_are_dropped() -> None:
    assert known(member("a"), plan=ours({"a": "n1", "gone": "n1"})).revised() == {"a": "n1"}


def test_entries_of_a_plan_by_hand_whose_pods_are_not_there_are_kept() -> None:
    plan = known(member("a"), plan=plan_by_hand({"a": "n1", "later": "n1"}))
    assert plan.revised() == {"a": "n1", "later": "n1"}
    plan.gone.add("later")
    assert plan.revised() == {"a": "n1"}


def test_new_entries_take_the_place_of_those_without_which_they_were_made() -> None:
    plan = known(member("a"), member("b"), plan=ours({"a": "n1", "b": "n1"}))
    assert list(plan.revised({"b": "n3", "a": "n2"}, without={"a", "b"}).items()) == [
        ("b", "n3"),
        ("a", "n2"),
    ]


def test_what_the_watch_tells_after_a_write_may_be_older() -> None:
    plan = known(member("a"), plan=ours({"a": "n1"}))
    plan.wrote({"a": "n2"}, now=10.0)
    assert not plan.told(now=11.0)
    assert plan.entries == {"a": "n2"}
    assert plan.watch_due == 15.0
    assert plan.told(now=15.0)
    assert plan.entries == {"a": "n1"}
    assert plan.watch_due is None


def test_once_the_watch_has_told_of_the_write_it_is_believed() -> None:
    plan = known(member("a"), plan=ours({"a": "n1"}))
    plan.wrote({"a": "n2"}, now=10.0)
    plan.podset.plan = ours({"a": "n2"})
    assert not plan.told(now=10.1)
    plan.podset.plan = ours({"a": "n3"})
    assert plan.told(now=10.2)
    assert plan.entries == {"a": "n3"}


def test_a_watch_that_was_quicker_than_the_answer_is_believed_at_once() -> None:
    plan = known(member("a"), plan=ours({"a": "n1"}))
    plan.writing = {"a": "n2"}
    plan.podset.plan = ours({"a": "n2"})
    assert not plan.told(now=10.0)
    assert plan.entries == {"a": "n2"}
    plan.writing = None
    plan.wrote({"a": "n2"}, now=10.1)
    plan.podset.plan = ours({"a": "n3"})
    assert plan.told(now=10.2)


def test_a_refused_node_is_no_entry_any_more() -> None:
    plan = known(member("a"), plan=ours({"a": "n1"}))
    assert plan.entry(member("a")) == "n1"
    plan.refused["uid-default-a"] = {"n1"}
    assert plan.entry(member("a")) is None
    assert plan.entry(member("a").uid("second")) == "n1"


def test_of_several_entries_of_one_pod_the_first_counts() -> None:
    entries = (PlanEntry("a", "n1"), PlanEntry("b", "n2"), PlanEntry("a", "n3"))
    twice = replace(plan_by_hand({}), spec=SchedulePlanSpec(entries))
    assert list(known(member("a"), plan=twice).entries.items()) == [("a", "n1"), ("b", "n2")]


def test_pods_of_other_schedulers_and_with_other_gates_are_not_ours() -> None:
    plan = known()
    assert plan.is_ours(member("a").gates(GATE))
    assert not plan.is_ours(member("a").gates(GATE, "example.com/other"))
    assert not plan.is_ours(member("a").scheduler("other"))


def test_a_plan_that_was_never_ours_awaits_nobody_in_particular() -> None:
    assert awaited_pods(plan_by_hand({"a": "n1"})) is None
    assert awaited_pods(ours({"a": "n1"})) == frozenset()
    assert awaited_pods(ours({"a": "n1", "b": "n1"}, "a,b")) == frozenset("ab")


def test_a_plan_that_was_changed_by_hand_is_not_as_we_have_written_it() -> None:
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


def test_a_stored_plan_is_replaced_only_in_the_version_that_is_known() -> None:
    effect = stored_by(known(member("a"), plan=ours({"a": "n1"}, version="41")), {"a": "n2"})
    assert isinstance(effect, PatchObject)
    assert effect.patch["metadata"]["resourceVersion"] == "41"
    assert effect.patch["spec"] == {"plan": [{"pod": "a", "node": "n2"}]}


def test_a_plan_without_entries_is_deleted_if_it_is_still_that_one() -> None:
    effect = stored_by(known(plan=ours({"a": "n1"})), {})
    assert effect == DeleteObject(SchedulePlan, "default", "batch-db87db886", "plan")


def test_more_names_than_fit_into_an_annotation_are_not_told_and_any_entry_may_await_its_pod() -> None:
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
