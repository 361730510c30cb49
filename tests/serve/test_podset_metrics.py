"""The metrics about pod sets after events."""

from collections.abc import Mapping

import pytest
from tests.podset.simulated_sets import (
    WORKERS,
    Planner,
    Sets,
    address,
    member,
    plan_by_hand,
    planner,
    podset_engine,
    trigger,
)

from longshore.api.plan_request import PlanRequest
from longshore.api.pod_set import PLANNING, SCHEDULE
from longshore.engine import Engine
from longshore.podset.trigger_controller import TriggerController
from longshore.serve import Metrics, registry_of


class Watched(Sets):
    """Pod sets, and their metrics."""

    def value(self, name: str, **labels: str) -> float | None:
        return self._registry.get_sample_value(name, labels)

    def watch(self) -> "Watched":
        metrics = Metrics(self.engine)
        self.engine.observe(metrics)
        self._registry = registry_of(metrics)
        return self


def test_held_pods_and_sets_are_counted_until_they_are_released() -> None:
    sets = Watched(*WORKERS, trigger(), member("a"), member("b"), trigger("x", podset="x")).watch()
    assert sets.value("longshore_podset_held_pods") == 2
    assert sets.value("longshore_podset_sets", state="held") == 2
    sets.release()
    sets.after(1.0)
    assert sets.value("longshore_podset_held_pods") == 0
    assert sets.value("longshore_podset_sets", state="held") == 1
    assert sets.value("longshore_podset_sets", state="released") == 1


def test_a_plan_is_counted_by_its_planner_and_outcome() -> None:
    sets = Watched(*WORKERS).watch()
    built_in = {"planner": "built-in"}
    sets.add(trigger(state=SCHEDULE), member("a"))
    sets.after(5.0)
    assert sets.value("longshore_podset_plans_total", outcome="complete", **built_in) == 1
    sets.add(member("b"), member("big", cpu="100"))
    sets.after(5.0)
    assert sets.value("longshore_podset_plans_total", outcome="partial", **built_in) == 1
    sets.add(trigger("big", podset="big", state=SCHEDULE), member("bigger", podset="big", cpu="100"))
    sets.after(5.0)
    assert sets.value("longshore_podset_plans_total", outcome="none", **built_in) == 1
    assert sets.value("longshore_podset_planning_duration_seconds_count", **built_in) == 3


def test_a_scheduler_without_sets_has_no_set_metrics() -> None:
    sets = Watched(*WORKERS).watch()
    assert sets.value("longshore_podset_held_pods") == 0
    assert sets.value("longshore_podset_sets", state="released") == 0


def test_a_plan_made_again_is_counted_whatever_number_of_pods_it_is_about() -> None:
    by_hand = plan_by_hand({"a": "gone", "b": "gone"})
    sets = Watched(*WORKERS, trigger(), by_hand, member("a"), member("b")).watch()
    assert sets.value("longshore_podset_plans_again_total") == 0
    sets.release()
    sets.after(5.0)
    assert sets.entries() == sets.nodes()
    assert sets.value("longshore_podset_plans_again_total") == 1


def breaks(_request: PlanRequest) -> Mapping[str, str]:
    raise RuntimeError("out of order")


def leaves_out(_request: PlanRequest) -> Mapping[str, str]:
    return {}


@pytest.mark.parametrize(("answer", "failure"), [(breaks, "no-answer"), (leaves_out, "incomplete")])
def test_a_planner_service_that_fails_is_counted_by_its_name(answer: Planner, failure: str) -> None:
    sets = Watched(*WORKERS, planner(), trigger(), member("a"), planners={address(): answer}).watch()
    sets.release()
    sets.after(1.0)
    labels = {"planner": "planner-system/planner", "failure": failure}
    assert sets.value("longshore_podset_planner_failures_total", **labels) == 1


def fired(sets: Watched) -> tuple[float | None, ...]:
    """Return how many triggers fired by hand and by quiet time."""
    return tuple(sets.value("longshore_podset_triggers_fired_total", by=by) for by in ("hand", "quiet-time"))


def test_a_trigger_that_fires_is_counted_by_its_cause() -> None:
    sets = Watched(*WORKERS, trigger(quiet="10s"), member("a")).watch()
    sets.after(5.0)
    assert fired(sets) == (0, 0)
    sets.after(10.0)
    assert fired(sets) == (0, 1)
    sets.set_state(PLANNING)
    sets.after(5.0)
    sets.release()
    sets.after(5.0)
    assert fired(sets) == (1, 1)


def test_a_trigger_that_has_fired_is_not_counted_again_by_a_successor() -> None:
    sets = Watched(*WORKERS, trigger(quiet="1s"), member("a")).watch()
    sets.after(5.0)
    assert fired(sets) == (0, 1)
    sets.start_again()
    sets.watch()
    sets.after(5.0)
    assert fired(sets) == (0, 0)


def families(engine: Engine) -> set[str]:
    found = registry_of(Metrics(engine)).collect()
    return {family.name for family in found if family.name.startswith("longshore_podset_")}


def test_a_trigger_controller_alone_has_no_set_or_plan_metrics() -> None:
    assert families(Engine(controllers=[TriggerController])) == {"longshore_podset_triggers_fired"}


def test_a_scheduler_that_holds_no_sets_has_no_set_metrics() -> None:
    assert families(Engine()) == set()
    assert "longshore_podset_held_pods" in families(podset_engine())
