"""Pods on other nodes than planned, and mismatches that count only with --strict."""

from tests.ask.test_preview import stored
from tests.podset.simulated_sets import member

from longshore.api import Pod, SchedulePlan
from longshore.ask.pod_sets import Found
from longshore.ask.verification import (
    NO_PLAN,
    NO_SUCH_POD,
    NOT_IN_THE_PLAN,
    PENDING,
    Verification,
    compare,
)
from longshore.testing import pod


def compared(*pods: Pod, plans: tuple[SchedulePlan, ...] = (), strict: bool = False) -> Verification:
    return compare(Found(pods, plans=plans), strict=strict)


def reasons(found: Verification) -> dict[str, str]:
    return {each.pod: each.reason for each in found.mismatches}


def test_pods_on_their_planned_nodes() -> None:
    found = compared(member("a").on("n1"), member("b").on("n2"), plans=(stored(a="n1", b="n2"),), strict=True)
    assert found.holds
    assert (found.plans, found.entries) == (1, 2)


def test_a_pod_elsewhere_in_the_second_of_two_plans() -> None:
    pods = (member("a").on("n1"), member("b", podset="letters").on("n1"))
    found = compared(*pods, plans=(stored(a="n1"), stored("letters", b="n2")))
    assert not found.holds
    [mismatch] = found.mismatches
    assert (mismatch.pod_set, mismatch.pod, mismatch.node, mismatch.runs_on) == ("letters", "b", "n2", "n1")
    assert mismatch.reason == "the pod is on n1"


def test_a_pod_that_does_not_exist() -> None:
    assert reasons(compared(plans=(stored(a="n1"),))) == {"a": NO_SUCH_POD}


def test_a_pod_of_the_same_name_elsewhere_is_another_one() -> None:
    there = member("a", namespace="other").on("n1")
    assert reasons(compared(there, plans=(stored(a="n1"),))) == {"a": NO_SUCH_POD}


def test_a_pod_without_a_node_is_a_mismatch_only_if_strict() -> None:
    plans = (stored(a="n1"),)
    assert compared(member("a"), plans=plans).holds
    assert reasons(compared(member("a"), plans=plans, strict=True)) == {"a": PENDING}


def test_a_pod_that_the_plan_lacks_is_a_mismatch_only_if_strict() -> None:
    pods, plans = (member("a").on("n1"), member("b").on("n1")), (stored(a="n1"),)
    assert compared(*pods, plans=plans).holds
    assert reasons(compared(*pods, plans=plans, strict=True)) == {"b": NOT_IN_THE_PLAN}


def test_a_set_without_a_plan_is_a_mismatch_only_if_strict() -> None:
    pods, plans = (member("a").on("n1"), member("held", podset="letters")), (stored(a="n1"),)
    assert compared(*pods, plans=plans).holds
    assert reasons(compared(*pods, plans=plans, strict=True)) == {"held": NO_PLAN}


def test_pods_that_are_never_planned_are_not_missed() -> None:
    pods = (
        member("a").on("n1"),
        member("ended").on("n1").phase("Succeeded"),
        member("foreign").scheduler("other").on("n1"),
        pod("alone").on("n1"),
    )
    assert compared(*pods, plans=(stored(a="n1"),), strict=True).holds


def test_no_plan_at_all_holds_unless_strict() -> None:
    assert compared(member("a")).holds
    assert not compared(strict=True).holds
