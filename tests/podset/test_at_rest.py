"""Held and completed sets cost almost nothing while nothing happens: few timers, and no writes."""

from tests.podset.simulated_sets import WORKERS, Sets, member, trigger, worker

from longshore.api.pod_set import SCHEDULE
from longshore.testing import pod

SETS = [f"set-{n}" for n in range(200)]


def held(quiet: str = "") -> Sets:
    sets = Sets(*WORKERS)
    sets.create(*(trigger(name, podset=name, quiet=quiet) for name in SETS))
    sets.create(*(member(f"{name}-{n}", podset=name, cpu="1m") for name in SETS for n in range(20)))
    sets.after(5.0)
    return sets


def test_two_hundred_held_sets_of_twenty_pods_ask_for_nothing_and_wait_for_nothing() -> None:
    sets = held()
    assert len(sets.asked) >= len(SETS) * 20
    asked = len(sets.asked)
    assert sets.engine.deadline is None
    sets.after(3600.0)
    assert len(sets.asked) == asked
    assert sets.engine.deadline is None


def test_a_held_set_with_a_quiet_time_wakes_once_a_minute_without_writes() -> None:
    sets = held(quiet="2h")
    asked = len(sets.asked)
    assert sets.engine.deadline == 60.0
    sets.run(until=7199.5)
    assert len(sets.asked) == asked
    assert sets.engine.deadline == 7200.0


def test_events_of_one_set_cause_no_effects_for_the_others() -> None:
    sets = held()
    asked = len(sets.asked)
    sets.release("set-7")
    sets.after(60.0)
    about = {getattr(effect, "name", "") for effect in sets.asked[asked:]}
    assert about == {"set-7", *(f"set-7-{n}" for n in range(20)), sets.stored_plan("set-7").metadata.name}


def test_events_of_nodes_and_other_pods_cause_no_effects_for_held_sets() -> None:
    sets = held()
    asked = len(sets.asked)
    sets.add(worker("n4"), worker("n1").unschedulable(), pod("other").on("n2"))
    sets.take_away(pod("other"))
    sets.after(60.0)
    assert sets.asked[asked:] == []


def test_a_set_that_is_bound_asks_for_nothing_more() -> None:
    sets = Sets(*WORKERS, trigger(state=SCHEDULE), *(member(f"p{n}", cpu="10m") for n in range(20)))
    sets.after(10.0)
    asked = len(sets.asked)
    assert sets.engine.deadline is None
    sets.after(3600.0)
    assert len(sets.asked) == asked
