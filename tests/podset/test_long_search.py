"""A long search for a plan: other pods are scheduled meanwhile, and changes of the set count."""

import pytest
from msgspec.structs import replace
from tests.podset.simulated_sets import WORKERS, Sets, conditions, member, trigger, worker

from longshore.api.pod_set import PLANNING
from longshore.framework.effects import Bind
from longshore.podset.texts import REASON_WAITING
from longshore.testing import pod

SEVEN = tuple(member(f"p{n}", cpu="2") for n in range(7))
PATIENT = trigger(all_or_nothing=True, budget="10m")


class Slow:
    """A stopwatch that advances by some seconds at each reading."""

    def __init__(self, seconds: float = 10.0) -> None:
        self.now = 0.0
        self._seconds = seconds

    def __call__(self) -> float:
        self.now += self._seconds
        return self.now


def searching() -> Sets:
    """A set with one pod too many, so that the planner searches. The first round has just ended."""
    sets = Sets(*WORKERS, PATIENT, *SEVEN)
    sets.engine.stopwatch = Slow()
    sets.release()
    sets.after(1.0)
    assert sets.condition("p0")[0] == REASON_WAITING
    return sets


def test_other_pods_are_bound_meanwhile() -> None:
    sets = searching()
    sets.add(pod("free").requests(cpu="1"))
    sets.after(0.1)
    assert sets.node_of("free")
    assert sets.condition("p0")[0] == REASON_WAITING
    sets.after(600.0)
    assert sets.condition("p0")[0] == "Unschedulable"


def test_room_that_comes_meanwhile_is_used() -> None:
    sets = searching()
    sets.add(worker("n4"))
    sets.after(60.0)
    assert sets.entries() == sets.nodes()
    assert all(sets.nodes().values())


def test_room_that_comes_too_late_for_the_last_round_is_used_in_the_next_plan() -> None:
    sets = Sets(*WORKERS, trigger(all_or_nothing=True, budget="100s"), *SEVEN)
    sets.engine.stopwatch = Slow()
    sets.release()
    sets.after(1.0)
    # The second round is cancelled in the middle, and does not use the new node.
    sets.add(worker("n4"))
    sets.after(120.0)
    assert all(sets.nodes().values())


@pytest.mark.parametrize("event", ["held", "deleted"])
def test_a_set_that_no_longer_needs_a_plan_ends_the_search(event: str) -> None:
    sets = searching()
    if event == "held":
        sets.set_state(PLANNING)
    else:
        sets.take_away(*SEVEN)
    sets.after(300.0)
    assert sets.asked_for(Bind) == []
    assert sets.plan() is None
    assert sets.engine.deadline is None


def test_a_pod_that_goes_meanwhile_lets_the_others_go() -> None:
    sets = searching()
    sets.take_away(SEVEN[0])
    sets.after(120.0)
    assert sets.entries() == sets.nodes()
    assert len(sets.nodes()) == 6
    assert all(sets.nodes().values())


def test_a_pod_is_planned_in_its_newest_version() -> None:
    sets = searching()
    sets.add(worker("reserved").taint("team"))
    before, tolerant = sets.pod("p3"), member("x").tolerate("team")
    sets.add(replace(before, spec=replace(before.spec, tolerations=tolerant.spec.tolerations)))
    sets.after(300.0)
    assert sets.node_of("p3") == "reserved"
    assert sets.entries() == sets.nodes()


def test_a_pod_bound_by_hand_meanwhile_stays_where_it_is() -> None:
    sets = searching()
    sets.add(worker("n4", cpu="2").unschedulable())
    sets.add(replace(sets.pod("p6"), spec=replace(sets.pod("p6").spec, node_name="n4")))
    sets.after(300.0)
    assert sets.node_of("p6") == "n4"
    assert sets.entries() == sets.nodes()
    assert all(sets.nodes().values())


def test_pods_left_out_of_the_best_plan_go_later() -> None:
    sets = Sets(*WORKERS, trigger(budget="10m"), *SEVEN)
    sets.engine.stopwatch = Slow()
    sets.release()
    sets.after(300.0)
    assert sum(bool(node) for node in sets.nodes().values()) == 6
    assert conditions(sets.stored_plan())["Complete"].status == "False"
    # Two rounds, without the time of other work in between.
    assert sets.stored_plan().status.seconds == 90.0


def test_a_restart_in_the_middle_starts_the_search_again() -> None:
    sets = searching()
    sets.start_again()
    sets.add(worker("n4"))
    sets.after(5.0)
    assert sets.entries() == sets.nodes()
    assert all(sets.nodes().values())


@pytest.mark.parametrize(
    ("written", "seconds", "shown"),
    [
        ("", 0.3, "300ms"),
        ("10s", 10.0, "10s"),
        ("40s", 40.0, "40s"),
        ("1h", 600.0, "10m0s"),
        ("soon", 0.3, "300ms"),
    ],
)
def test_a_search_lasts_as_long_as_the_budget_and_the_first_pod_waits_for_it(
    written: str, seconds: float, shown: str
) -> None:
    """Virtual time advances only in the pauses between rounds, by a quarter of a round's duration."""
    sets = Sets(*(worker(f"n{n}", cpu="10") for n in range(3)), trigger(budget=written))
    sets.add(*(member(f"p{n}", cpu=f"{1 + n % 9}") for n in range(20)))
    sets.engine.stopwatch = Slow(seconds / 100)
    sets.after(1.0)
    assert sets.trigger().status.budget == shown
    sets.release()
    sets.after(0.15 * seconds)
    assert sets.asked_for(Bind) == []
    sets.after(0.1 * seconds)
    assert sets.asked_for(Bind)
    sets.after(5.0)
    assert sets.stored_plan().status.seconds == pytest.approx(seconds, rel=0.05)
