"""Sets are held until the trigger fires, then planned as a whole and bound by the plan."""

import pytest
from tests.podset.simulated_sets import WORKERS, Sets, member, trigger, worker

from longshore.api.pod_set import PLANNING, POD_SET_LABEL, SCHEDULE
from longshore.framework.effects import Bind, Effect, Failed, Outcome
from longshore.podset.texts import REASON_WAITING
from longshore.testing import pod

THREE = (member("a"), member("b"), member("c"))


def test_a_set_is_held_while_its_trigger_is_planning() -> None:
    sets = Sets(*WORKERS, trigger(), *THREE)
    sets.after(600.0)
    assert set(sets.nodes().values()) == {""}
    assert sets.plan() is None
    reason, message = sets.condition("a")
    assert reason == REASON_WAITING
    assert "held by its trigger go until" in message
    assert [event.reason for event in sets.cluster.events if event.name == "a"] == [REASON_WAITING]


def test_a_set_is_held_even_if_only_one_node_fits() -> None:
    sets = Sets(worker("only"), trigger(), member("a"))
    sets.after(60.0)
    assert sets.node_of("a") == ""
    sets.release()
    sets.after(1.0)
    assert sets.entries() == sets.nodes() == {"a": "only"}


def test_a_released_set_is_bound_by_one_plan_that_agrees_with_the_pods() -> None:
    sets = Sets(*WORKERS, trigger(), *THREE)
    sets.after(20.0)
    sets.release()
    sets.after(1.0)
    assert sets.entries() == sets.nodes()
    assert set(sets.nodes().values()) == {"n1", "n2", "n3"}
    plan = sets.plan()
    assert plan is not None
    assert plan.metadata.labels[POD_SET_LABEL] == "batch"


def test_the_first_pod_is_bound_at_once_when_the_trigger_fires() -> None:
    sets = Sets(*WORKERS, trigger(), *THREE, bind_latency=0.0)
    sets.after(3600.0)
    sets.release()
    assert all(sets.nodes().values())


def test_without_a_trigger_a_set_is_held_and_says_which_label_is_missing() -> None:
    sets = Sets(*WORKERS, member("a"))
    sets.after(60.0)
    assert sets.node_of("a") == ""
    assert f"{POD_SET_LABEL}=batch" in sets.condition("a")[1]
    sets.add(trigger(state=SCHEDULE))
    sets.after(1.0)
    assert sets.node_of("a")


def test_sets_of_the_same_name_in_two_namespaces_are_two_sets() -> None:
    sets = Sets(
        *WORKERS,
        trigger(state=SCHEDULE),
        trigger(namespace="other"),
        member("a"),
        member("b", namespace="other"),
    )
    sets.after(5.0)
    assert sets.node_of("a")
    assert sets.pod("b", "other").spec.node_name == ""
    assert sets.entries(namespace="other") == {}
    sets.add(trigger(state=SCHEDULE, namespace="other"))
    sets.after(1.0)
    assert sets.entries() == {"a": sets.node_of("a")}
    assert sets.entries(namespace="other") == {"b": sets.pod("b", "other").spec.node_name}


@pytest.mark.parametrize("labels", [{}, {POD_SET_LABEL: ""}])
def test_a_pod_outside_any_set_is_bound_at_once(labels: dict[str, str]) -> None:
    sets = Sets(*WORKERS, pod("a").scheduler("podset-planner-scheduler").labels(**labels))
    sets.after(1.0)
    assert sets.node_of("a")
    assert sets.cluster.others == {}


def test_back_to_planning_holds_the_pods_that_are_not_bound() -> None:
    sets = Sets(*WORKERS, trigger(state=SCHEDULE), member("a"), member("b"))
    sets.after(1.0)
    bound = sets.nodes()
    sets.set_state(PLANNING)
    sets.add(member("c"))
    sets.after(60.0)
    assert sets.node_of("c") == ""
    assert sets.entries() == bound
    sets.release()
    sets.after(1.0)
    assert sets.entries() == sets.nodes()
    assert len(sets.entries()) == 3


def test_a_pod_that_comes_later_is_planned_at_once_without_moving_the_others() -> None:
    sets = Sets(*WORKERS, trigger(state=SCHEDULE), *THREE)
    sets.after(5.0)
    before = sets.entries()
    sets.add(member("d"))
    sets.after(1.0)
    assert sets.node_of("d")
    assert sets.entries() == before | {"d": sets.node_of("d")}


def test_a_trigger_set_back_while_pods_are_being_bound_holds_those_that_are_not() -> None:
    names = [f"p{number}" for number in range(6)]
    sets = Sets(*WORKERS, trigger(), *map(member, names))
    sets.after(1.0)
    late = names[3:]

    def refuse_late(effect: Effect) -> Outcome | None:
        return Failed("not now") if isinstance(effect, Bind) and effect.name in late else None

    sets.cluster.answer = refuse_late
    sets.release()
    sets.after(0.5)
    before = sets.entries()
    assert before.keys() == set(names)
    sets.set_state(PLANNING)
    sets.cluster.answer = None
    sets.after(600.0)
    bound = {name: before[name] for name in names[:3]}
    assert sets.nodes() == bound | dict.fromkeys(late, "")
    assert {sets.condition(name)[0] for name in late} == {REASON_WAITING}
    assert sets.entries() == before
    sets.release()
    sets.after(1.0)
    assert sets.nodes() == before
