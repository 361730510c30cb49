"""What the metrics say about pod sets, after things have happened to them."""

from tests.podset.stage import WORKERS, Sets, member, trigger

from longshore.api.podset import SCHEDULE
from longshore.serve import Metrics, registry_of


class Watched(Sets):
    """The sets, and what is counted of them."""

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


def test_a_plan_is_counted_by_who_made_it_and_what_came_of_it() -> None:
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


def test_a_scheduler_without_sets_counts_none() -> None:
    sets = Watched(*WORKERS).watch()
    assert sets.value("longshore_podset_held_pods") == 0
    assert sets.value("longshore_podset_sets", state="released") == 0
