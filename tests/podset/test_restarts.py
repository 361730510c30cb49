"""The scheduler is killed at any moment between trigger and last bind: the next one follows the plan."""

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from tests.podset.simulated_sets import WORKERS, Sets, address, member, planner, trigger

from longshore.api.pod_set import SchedulePlan
from longshore.framework.effects import Bind, CreateObject
from longshore.podset.members import GATE
from longshore.sim import Faults
from longshore.testing import PodBuilder

END_OF_FAULTS = 10.0
LATENCY = st.sampled_from([0.0, 0.01, 0.1, 0.5])
CHANCE = st.sampled_from([0.0, 0.1, 0.3])


@st.composite
def faults(draw: st.DrawFn) -> Faults:
    return Faults(draw(CHANCE), draw(CHANCE), draw(CHANCE), until=END_OF_FAULTS)


@st.composite
def pods(draw: st.DrawFn) -> list[PodBuilder]:
    """Pods that fit on the nodes by any plan."""
    gated = draw(st.booleans())
    built = [member(f"p{n}") for n in range(draw(st.integers(1, 6)))]
    return [each.gates(GATE) for each in built] if gated else built


@st.composite
def scenes(draw: st.DrawFn) -> Sets:
    slow = draw(st.booleans())
    sets = Sets(
        *WORKERS,
        *([planner()] if slow else []),
        trigger(all_or_nothing=draw(st.booleans())),
        *draw(pods()),
        bind_latency=draw(LATENCY),
        write_latency=draw(LATENCY),
        answer_latency=draw(LATENCY),
        watch_latency=draw(LATENCY),
        faults=draw(faults()),
        write_faults=draw(faults()),
        planners={address(): lambda request: {request.scheduled_pod: "n3"}},
        plan_time=draw(st.sampled_from([0.0, 0.3])),
        seed=draw(st.integers(0, 1000)),
    )
    sets.after(2.0)
    return sets


@settings(max_examples=60, deadline=None)
@given(scenes(), st.lists(st.floats(0.0, 1.5), max_size=5), st.integers(0, 1000))
def test_every_pod_is_bound_once_where_the_one_plan_says(sets: Sets, lives: list[float], seed: int) -> None:
    sets.release()
    for life in lives:
        sets.after(life)
        sets.start_again(seed)
    sets.run(until=60.0)
    assert all(sets.nodes().values())
    assert sets.entries() == sets.nodes() == _landed(sets)
    assert len(sets.cluster.others[SchedulePlan]) == 1
    assert not any(pod.spec.scheduling_gates for pod in sets.cluster.pods.values())
    # No work is left, except for the periodic check.
    sets.after(60.0)
    assert sets.engine.deadline is None


def _landed(sets: Sets) -> dict[str, str]:
    return {key.partition("/")[2]: node for key, node in sets.bindings.items()}


@settings(max_examples=25, deadline=None)
@given(st.floats(0.0, 0.6), st.integers(0, 1000))
def test_without_faults_a_plan_is_made_once_however_often_the_scheduler_is_killed_after_it(
    life: float, seed: int
) -> None:
    sets = Sets(
        *WORKERS, trigger(), *(member(f"p{n}") for n in range(6)), bind_latency=0.3, write_latency=0.1
    )
    sets.after(2.0)
    sets.release()
    sets.after(0.15)
    stored = sets.entries()
    assert stored
    sets.after(life)
    sets.start_again(seed)
    sets.after(5.0)
    assert sets.entries() == sets.nodes() == stored
    assert sum(isinstance(write, CreateObject) for write in sets.plan_writes()) == 1


@pytest.mark.parametrize("seed", range(3))
def test_two_schedulers_for_a_moment_do_not_bind_a_pod_twice(seed: int) -> None:
    """Binds of the killed scheduler take effect after the next one has started."""
    sets = Sets(*WORKERS, trigger(), *(member(f"p{n}") for n in range(6)), bind_latency=2.0)
    sets.release()
    sets.after(1.0)
    assert len(sets.asked_for(Bind)) == 6
    sets.start_again(seed)
    sets.after(1.5)
    assert sets.entries() == sets.nodes() == _landed(sets)
    sets.after(60.0)
    assert sets.entries() == sets.nodes() == _landed(sets)
