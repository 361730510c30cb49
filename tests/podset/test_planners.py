"""Planner services: which one is called, the request, and how its answer is used."""

from collections.abc import Mapping

import pytest
from msgspec.structs import replace
from tests.podset.simulated_sets import (
    WORKERS,
    Planner,
    Sets,
    address,
    conditions,
    member,
    plan_by_hand,
    planner,
    trigger,
    worker,
)

from longshore.api.plan_request import PlanRequest
from longshore.api.pod_set import PLANNING, SCHEDULE
from longshore.framework.effects import Bind, CallPlanner
from longshore.podset.texts import REASON_PLANNER
from longshore.testing import pod

TWO = (member("a"), member("b"))
NO_FALLBACK = {"plannerFallback": "none"}


def all_on(node: str, *names: str) -> Planner:
    return lambda _request: dict.fromkeys(names or ("a", "b"), node)


def broken(_request: PlanRequest) -> Mapping[str, str]:
    raise RuntimeError("out of order")


def test_the_plan_of_a_service_is_stored_and_obeyed() -> None:
    sets = Sets(*WORKERS, planner(), trigger(), *TWO, planners={address(): all_on("n3")})
    sets.release()
    sets.after(1.0)
    assert sets.entries() == sets.nodes() == {"a": "n3", "b": "n3"}
    sets.after(2.0)
    assert sets.stored_plan().status.planner == "planner-system/planner"
    assert conditions(sets.stored_plan())["PlannerAnswered"].status == "True"


def test_a_service_is_asked_once_for_a_set_with_the_nodes_of_its_first_pod() -> None:
    nodes = (*WORKERS, worker("control-plane").taint("node-role.kubernetes.io/control-plane"))
    full = pod("filler").requests(cpu="4").on("n2")
    sets = Sets(*nodes, full, planner(), trigger(), *TWO, planners={address(): all_on("n3")})
    sets.release()
    sets.after(5.0)
    assert sets.requests() == [PlanRequest("default", "batch", "a", ("n1", "n3"))]
    assert [call.seconds for call in sets.asked_for(CallPlanner)] == [15.0]


def test_nodes_with_tolerated_taints_are_named_only_if_there_are_no_others() -> None:
    tainted = worker("n4").taint("special")
    tolerant = member("a").tolerate("special")
    sets = Sets(
        worker("n1"), tainted, planner(), trigger(), tolerant, planners={address(): all_on("n1", "a")}
    )
    sets.release()
    sets.after(1.0)
    assert sets.requests()[0].eligible_nodes == ("n1",)
    alone = Sets(tainted, planner(), trigger(), tolerant, planners={address(): all_on("n4", "a")})
    alone.release()
    alone.after(1.0)
    assert alone.requests()[0].eligible_nodes == ("n4",)
    assert alone.nodes() == {"a": "n4"}


def test_while_the_set_is_held_no_planner_is_asked() -> None:
    sets = Sets(*WORKERS, planner(), trigger(), *TWO, planners={address(): all_on("n3")})
    sets.after(600.0)
    assert sets.requests() == []


def test_a_pod_outside_sets_is_bound_without_asking() -> None:
    sets = Sets(*WORKERS, planner(), pod("free").scheduler("podset-planner-scheduler"))
    sets.after(5.0)
    assert sets.node_of("free")
    assert sets.requests() == []


def test_a_stored_entry_is_obeyed_without_asking() -> None:
    sets = Sets(*WORKERS, planner(), plan_by_hand({"a": "n3"}), planners={address(): all_on("n1")})
    sets.add(trigger(state=SCHEDULE), member("a"))
    sets.after(1.0)
    assert sets.node_of("a") == "n3"
    assert sets.requests() == []


def test_a_stored_entry_that_is_invalid_is_asked_about_without_its_node() -> None:
    sets = Sets(*WORKERS, planner(), plan_by_hand({"a": "n1"}), trigger(), member("a"))
    sets.start_planner(address(), all_on("n3", "a"))
    sets.add(worker("n1").unschedulable())
    sets.release()
    sets.after(1.0)
    assert sets.requests() == [PlanRequest("default", "batch", "a", ("n2", "n3"))]
    assert sets.entries() == sets.nodes() == {"a": "n3"}


def test_the_planner_of_a_set_comes_before_the_one_for_all_sets() -> None:
    sets = Sets(
        *WORKERS,
        planner("for-all"),
        planner("for-x", "set-x", namespace="elsewhere"),
        trigger("x", podset="set-x", state=SCHEDULE),
        trigger("y", podset="set-y", state=SCHEDULE),
        planners={
            address("for-all"): all_on("n1", "x", "x2", "y"),
            address("for-x", "elsewhere"): all_on("n2", "x"),
        },
    )
    sets.add(member("x", podset="set-x"), member("y", podset="set-y"))
    sets.after(1.0)
    assert sets.nodes() == {"x": "n2", "y": "n1"}
    sets.take_away(planner("for-x", "set-x", namespace="elsewhere"))
    sets.add(member("x2", podset="set-x"))
    sets.after(1.0)
    assert sets.node_of("x2") == "n1"


def test_without_a_planner_service_the_plan_is_made_and_stored_here() -> None:
    disabled = planner()
    disabled = replace(
        disabled, metadata=replace(disabled.metadata, labels={"planner.ciena.io/default": "disabled"})
    )
    sets = Sets(*WORKERS, disabled, trigger(), *TWO, planners={address(): all_on("n3")})
    sets.release()
    sets.after(3.0)
    assert sets.requests() == []
    assert sets.entries() == sets.nodes()
    assert sets.stored_plan().status.planner == "built-in"


def test_a_planner_outside_the_allowed_namespaces_is_not_asked() -> None:
    sets = Sets(
        *WORKERS,
        planner("evil", "batch", namespace="tenant"),
        planner("good"),
        trigger(),
        *TWO,
        args={"plannerNamespaces": ["planner-system"]},
        planners={address("evil", "tenant"): all_on("n1"), address("good"): all_on("n3")},
    )
    sets.release()
    sets.after(1.0)
    assert set(sets.nodes().values()) == {"n3"}


@pytest.mark.parametrize("key", ["planner-system/planner", "*"])
def test_the_address_of_a_planner_can_be_configured(key: str) -> None:
    sets = Sets(
        *WORKERS,
        planner(),
        trigger(),
        *TWO,
        args={"plannerAddresses": {key: "127.0.0.1:7777"}},
        planners={"127.0.0.1:7777": all_on("n3")},
    )
    sets.release()
    sets.after(1.0)
    assert set(sets.nodes().values()) == {"n3"}


def test_of_several_planners_the_best_answer_counts() -> None:
    sets = Sets(
        *WORKERS,
        *(planner(name) for name in ("full", "half", "spread")),
        trigger(),
        *TWO,
        planners={
            address("full"): all_on("n1"),
            address("half"): all_on("n2", "a"),
            # Its fullest node has more room than those of the other two.
            address("spread"): lambda _request: {"a": "n2", "b": "n3"},
        },
    )
    sets.release()
    sets.after(1.0)
    assert sets.nodes() == {"a": "n2", "b": "n3"}


def test_if_one_of_two_planners_fails_the_other_is_followed_and_the_failure_is_reported() -> None:
    sets = Sets(
        *WORKERS,
        planner("bad"),
        planner("good"),
        trigger(),
        *TWO,
        planners={address("bad"): broken, address("good"): all_on("n3")},
    )
    sets.release()
    sets.after(3.0)
    assert set(sets.nodes().values()) == {"n3"}
    answered = conditions(sets.stored_plan())["PlannerAnswered"]
    assert "out of order" in answered.message
    assert answered.reason == "AnotherAnswered"


TROUBLES: dict[str, tuple[Planner | None, str]] = {
    "down": (None, "is not there"),
    "broken": (broken, "out of order"),
    "empty": (lambda _request: {}, "no valid node for default/a, default/b"),
    "leaves the pod out": (lambda _request: {"b": "n3"}, "no valid node for default/a"),
    "unknown node": (all_on("nowhere"), "there is no such node"),
    "infeasible node": (all_on("full"), "Insufficient cpu"),
    "unknown pods": (lambda _request: {"a": "n1", "b": "n1", "c": "n1"}, ""),
    "too much on one node": (all_on("tiny"), "Insufficient cpu"),
}
CROWD = (worker("full"), worker("tiny", cpu="1"), pod("filler").requests(cpu="4").on("full"))


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_set_is_planned_despite_an_invalid_answer_which_is_reported(
    trouble: str,
) -> None:
    answer, told = TROUBLES[trouble]
    planners = {} if answer is None else {address(): answer}
    sets = Sets(*WORKERS, *CROWD, planner(), trigger(), *TWO, planners=planners)
    sets.release()
    sets.after(3.0)
    nodes = {name: sets.node_of(name) for name in "ab"}
    assert sets.entries() == nodes
    assert "" not in nodes.values()
    answered = conditions(sets.stored_plan())["PlannerAnswered"]
    assert answered.status == ("False" if told else "True")
    assert told in answered.message
    assert ("PlannerFailed" in sets.reasons_told("go")) == bool(told)


def test_the_pods_that_a_planner_placed_keep_its_nodes() -> None:
    sets = Sets(*WORKERS, planner(), trigger(), *TWO, planners={address(): all_on("n3", "b")})
    sets.release()
    sets.after(1.0)
    assert sets.node_of("b") == "n3"
    assert sets.node_of("a") not in ("", "n3")


def test_a_planner_that_hangs_delays_neither_another_set_nor_other_pods() -> None:
    sets = Sets(
        *WORKERS,
        planner("slow", "batch"),
        trigger(),
        *TWO,
        planners={address("slow"): all_on("n3")},
        plan_time=3600.0,
    )
    sets.release()
    sets.after(1.0)
    sets.add(trigger("other", podset="other", state=SCHEDULE), member("o", podset="other"))
    sets.add(pod("free").requests(cpu="1"))
    sets.after(1.0)
    assert sets.node_of("o")
    assert sets.node_of("free")
    assert sets.node_of("a") == ""
    sets.after(14.0)
    assert sets.entries().items() <= sets.nodes().items()
    assert sets.node_of("a")
    assert "did not answer within 15 s" in conditions(sets.stored_plan())["PlannerAnswered"].message


def test_how_long_to_wait_for_a_planner_can_be_configured() -> None:
    sets = Sets(*WORKERS, planner(), trigger(), *TWO, args={"callTimeout": "2s"}, plan_time=3600.0)
    sets.start_planner(address(), all_on("n3"))
    sets.release()
    sets.after(3.0)
    assert all(sets.nodes().values())


@pytest.mark.parametrize("meanwhile", ["deleted", "bound by hand", "held", "planned by hand", "late"])
def test_changes_while_a_planner_works_count(meanwhile: str) -> None:
    planners = {address(): all_on("n3", "a", "b", "late")}
    sets = Sets(*WORKERS, planner(), trigger(), *TWO, planners=planners, plan_time=5.0)
    sets.release()
    sets.after(1.0)
    match meanwhile:
        case "deleted":
            sets.take_away(member("a"))
        case "bound by hand":
            sets.add(replace(sets.pod("a"), spec=replace(sets.pod("a").spec, node_name="n1")))
        case "held":
            sets.set_state(PLANNING)
        case "planned by hand":
            sets.add(plan_by_hand({"a": "n1"}))
        case "late":
            sets.add(member("late"))
    sets.after(20.0)
    expected = {
        "deleted": {"b": "n3"},
        "bound by hand": {"a": "n1", "b": "n3"},
        "held": {"a": "", "b": ""},
        "planned by hand": {"a": "n1", "b": "n3"},
        "late": {"a": "n3", "b": "n3", "late": "n3"},
    }[meanwhile]
    assert sets.nodes() == expected
    assert sets.entries() == {name: node for name, node in expected.items() if node}


def test_an_answer_is_checked_against_the_cluster_as_it_is_when_it_comes() -> None:
    sets = Sets(*WORKERS, planner(), trigger(), *TWO, planners={address(): all_on("n3")}, plan_time=5.0)
    sets.release()
    sets.after(1.0)
    sets.add(worker("n3").unschedulable())
    sets.after(10.0)
    assert "n3" not in sets.nodes().values()
    assert all(sets.nodes().values())


def test_without_fallback_pods_wait_for_their_planner_with_a_condition() -> None:
    sets = Sets(*WORKERS, planner(), trigger(), *TWO, args=NO_FALLBACK)
    sets.release()
    sets.after(60.0)
    assert sets.asked_for(Bind) == []
    reason, message = sets.condition("a")
    assert reason == REASON_PLANNER
    assert "planner planner-system/planner" in message
    assert 6 <= len(sets.requests()) <= 8
    # One event, although it was called several times.
    assert sets.reasons_told("a").count("FailedScheduling") == 1
    assert sets.reasons_told("go") == ["PlannerFailed"]


def test_without_fallback_pods_go_as_soon_as_their_planner_is_there() -> None:
    sets = Sets(*WORKERS, planner(), trigger(), *TWO, args=NO_FALLBACK)
    sets.release()
    sets.after(60.0)
    sets.start_planner(address(), all_on("n3"))
    sets.after(10.5)
    assert sets.entries() == sets.nodes() == {"a": "n3", "b": "n3"}


def test_without_fallback_another_planner_is_asked_when_it_comes() -> None:
    sets = Sets(*WORKERS, planner(), trigger(), *TWO, args=NO_FALLBACK)
    sets.start_planner(address("new"), all_on("n3"))
    sets.release()
    sets.after(3.0)
    sets.add(planner("new", "batch"))
    sets.after(1.0)
    assert sets.entries() == sets.nodes() == {"a": "n3", "b": "n3"}


def test_without_fallback_pods_that_the_planner_leaves_out_stay_pending() -> None:
    planners = {address(): all_on("n3", "b")}
    sets = Sets(*WORKERS, planner(), trigger(), *TWO, args=NO_FALLBACK, planners=planners)
    sets.release()
    sets.after(30.0)
    assert sets.nodes() == {"a": "", "b": "n3"}
    assert sets.entries() == {"b": "n3"}
    assert "planner planner-system/planner: no valid node for default/a" in sets.condition("a")[1]


def test_without_fallback_and_planners_pods_are_scheduled_one_by_one_with_an_event() -> None:
    """Pallet does the same."""
    sets = Sets(*WORKERS, trigger(), *TWO, member("big", cpu="16"), args=NO_FALLBACK, strict=False)
    sets.after(5.0)
    assert sets.asked_for(Bind) == []
    sets.release()
    sets.after(5.0)
    assert sets.node_of("a")
    assert sets.node_of("b")
    assert sets.plan_writes() == []
    assert sets.reasons_told("go") == ["NoPlanner"]
    assert sets.condition("big")[0] == "Unschedulable"
    sets.add(worker("huge", cpu="32"), member("late"))
    sets.start_again()
    sets.after(10.0)
    assert all(sets.nodes().values())
    assert sets.plan() is None


def test_without_fallback_a_pod_without_a_node_is_planned_when_a_planner_comes() -> None:
    sets = Sets(*WORKERS, trigger(state=SCHEDULE), member("a", cpu="16"), args=NO_FALLBACK)
    sets.start_planner(address(), all_on("huge", "a"))
    sets.after(5.0)
    sets.add(planner())
    sets.add(worker("huge", cpu="32"))
    sets.after(15.0)
    assert sets.entries() == sets.nodes() == {"a": "huge"}


def test_without_fallback_and_planners_an_all_or_nothing_set_waits() -> None:
    whole = trigger(state=SCHEDULE, all_or_nothing=True)
    sets = Sets(*WORKERS, whole, *TWO, args=NO_FALLBACK, planners={address(): all_on("n3")})
    sets.after(30.0)
    assert sets.asked_for(Bind) == []
    assert sets.condition("a")[0] == REASON_PLANNER
    sets.add(planner())
    sets.after(2.0)
    assert sets.entries() == sets.nodes() == {"a": "n3", "b": "n3"}


def test_without_fallback_and_planners_a_stored_plan_is_followed() -> None:
    sets = Sets(*WORKERS, plan_by_hand({"a": "n3"}), trigger(), *TWO, args=NO_FALLBACK, strict=False)
    sets.release()
    sets.after(5.0)
    assert sets.node_of("a") == "n3"
    assert sets.node_of("b")
    assert sets.entries() == {"a": "n3"}


def test_several_planners_that_hang_are_waited_for_at_the_same_time() -> None:
    hanging = [planner(f"slow-{number}") for number in range(4)]
    planners = {address(f"slow-{number}"): all_on("n3") for number in range(4)}
    sets = Sets(*WORKERS, *hanging, trigger(), *TWO, planners=planners, plan_time=3600.0)
    sets.release()
    sets.after(16.0)
    assert all(sets.nodes().values())
    assert len(sets.requests()) == 4


def test_the_reason_of_a_condition_says_how_planners_have_answered() -> None:
    reasons = {}
    for fallback in ("built-in", "none"):
        planners = {address(): all_on("n3", "b")}
        sets = Sets(
            *WORKERS, planner(), trigger(), *TWO, args={"plannerFallback": fallback}, planners=planners
        )
        sets.release()
        sets.after(5.0)
        reasons[fallback] = conditions(sets.stored_plan())["PlannerAnswered"].reason
    assert reasons == {"built-in": "FellBack", "none": "NoFallback"}


def test_a_set_that_is_held_again_no_longer_asks_its_planner() -> None:
    sets = Sets(*WORKERS, planner(), trigger(), *TWO, args=NO_FALLBACK)
    sets.release()
    sets.after(15.0)
    sets.set_state(PLANNING)
    asked = len(sets.requests())
    sets.after(600.0)
    assert len(sets.requests()) == asked
    assert sets.engine.deadline is None
