"""The metrics of an engine after events and decisions."""

import pytest
from tests.engine.stage import configuration, engine_of, profile
from tests.serve.engines import Observed, roomy

from longshore.cluster import PodInfo
from longshore.engine import Bind, Done, Engine, Failed
from longshore.framework import CycleState, Status, Wait
from longshore.testing import node, pod

LONGSHORE = {"profile": "longshore"}


@pytest.fixture
def observed() -> Observed:
    return Observed(Engine())


def attempts(observed: Observed, result: str) -> float | None:
    return observed.value("scheduler_schedule_attempts_total", result=result, **LONGSHORE)


def test_a_bound_pod_is_a_scheduled_attempt(observed: Observed) -> None:
    observed.add(roomy(), pod("web"))
    observed.bind_all()
    assert attempts(observed, "scheduled") == 1
    assert attempts(observed, "unschedulable") == 0
    assert observed.value("scheduler_pod_scheduling_attempts_count") == 1


def test_a_pod_that_plugins_refuse_is_an_unschedulable_attempt(observed: Observed) -> None:
    observed.add(roomy(), pod("web").requests(cpu="100"))
    observed.advance()
    assert attempts(observed, "unschedulable") == 1
    assert attempts(observed, "error") == 0


def test_without_any_node_an_attempt_is_unschedulable_and_no_error(observed: Observed) -> None:
    observed.add(pod("web"))
    observed.advance()
    assert attempts(observed, "unschedulable") == 1


def test_a_bind_that_fails_is_an_error(observed: Observed) -> None:
    observed.add(roomy(), pod("web"))
    [request] = [request for request in observed.advance() if isinstance(request.effect, Bind)]
    observed.engine.receive(Done(request.id, Failed("no answer")), now=0.0)
    assert attempts(observed, "error") == 1


def test_the_duration_of_an_attempt_ends_with_the_answer_to_its_bind() -> None:
    observed = Observed(Engine(), tick=1.0)
    observed.metrics._next_after = 10**9  # plugins are not measured
    observed.add(roomy(), pod("web"))
    observed.bind_all()
    # The clock is read when it begins, at the decision, and at the end.
    labels = {"result": "scheduled", **LONGSHORE}
    assert observed.value("scheduler_scheduling_attempt_duration_seconds_sum", **labels) == 2.0
    assert observed.value("scheduler_scheduling_algorithm_duration_seconds_sum") == 1.0


def test_the_sli_starts_when_a_pod_is_queued_and_has_the_attempts(observed: Observed) -> None:
    observed.add(pod("web").requests(cpu="2"))
    observed.advance()
    observed.now = 5.0
    observed.add(roomy())
    observed.bind_all()
    assert observed.value("scheduler_pod_scheduling_sli_duration_seconds_sum", attempts="2") == 5.0
    assert observed.value("scheduler_pod_scheduling_sli_duration_seconds_count", attempts="1") is None


def test_pending_pods_are_counted_by_queue_and_refusing_plugin(observed: Observed) -> None:
    observed.add(roomy(), pod("gated").gates("later"), pod("huge").requests(cpu="100"), pod("fits"))
    observed.advance()
    observed.add(pod("new"))
    by_queue = {
        queue: observed.value("scheduler_pending_pods", queue=queue)
        for queue in ("active", "backoff", "unschedulable", "gated")
    }
    assert by_queue == {"active": 1, "backoff": 0, "unschedulable": 1, "gated": 1}
    assert observed.value("longshore_pods_in_flight") == 1
    assert observed.value("longshore_binds_in_flight") == 1
    assert observed.value("scheduler_unschedulable_pods", plugin="NodeResourcesFit", **LONGSHORE) == 1
    assert observed.value("scheduler_unschedulable_pods", plugin="SchedulingGates", **LONGSHORE) == 1


def test_gated_pods_are_counted_in_the_unschedulable_queue(observed: Observed) -> None:
    observed.add(pod("gated").gates("later"))
    incoming = "scheduler_queue_incoming_pods_total"
    assert observed.value(incoming, queue="unschedulable", event="UnschedulablePodAdd") == 1


def test_assumed_pods_are_counted_until_the_watch_tells_of_them(observed: Observed) -> None:
    observed.add(roomy(), pod("web"))
    observed.bind_all()
    assert observed.value("scheduler_cache_size", type="assumed_pods") == 1
    observed.add(pod("web").on("node-1"))
    assert observed.value("scheduler_cache_size", type="assumed_pods") == 0
    assert observed.value("scheduler_cache_size", type="pods") == 1
    assert observed.value("scheduler_cache_size", type="nodes") == 1


def test_preemption_counts_attempts_and_victims(observed: Observed) -> None:
    observed.add(node("n").allocatable(cpu="2", memory="8Gi", pods="9"))
    observed.add(*(pod(f"low-{number}").requests(cpu="1").on("n") for number in range(2)))
    observed.add(pod("high").requests(cpu="2").priority(100))
    observed.advance()
    assert observed.value("scheduler_preemption_attempts_total") == 1
    assert observed.value("scheduler_preemption_victims_sum") == 2


def test_an_attempt_counts_when_it_has_ended(observed: Observed) -> None:
    observed.add(roomy(), pod("web"))
    observed.advance()
    assert attempts(observed, "scheduled") == 0


class _Holds:
    """A Permit plugin that lets pods wait."""

    name = "Holds"

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> Status | Wait | None:
        return Wait(30.0)


def test_waiting_on_permit_is_measured_with_its_result() -> None:
    observed = Observed(engine_of(_Holds()))
    observed.add(roomy(), pod("web"), pod("db"))
    observed.advance()
    observed.now = 10.0
    observed.advance()
    observed.engine.allow(pod("web").metadata.uid, "Holds")
    observed.now = 30.0
    observed.advance()
    waited = "scheduler_permit_wait_duration_seconds_sum"
    assert observed.value(waited, result="Success") == 10.0
    assert observed.value(waited, result="Unschedulable") == 30.0


def test_a_measured_attempt_reports_the_time_of_plugins_and_points() -> None:
    observed = Observed(Engine(), tick=0.001)
    observed.add(roomy("a"), roomy("b"), pod("web"))
    observed.bind_all()
    took = "scheduler_plugin_execution_duration_seconds_count"
    fit = {"plugin": "NodeResourcesFit", "status": "Success"}
    assert observed.value(took, extension_point="Filter", **fit)
    assert observed.value(took, extension_point="Score", **fit)
    point = "scheduler_framework_extension_point_duration_seconds"
    for name in ("PreFilter", "Filter", "PreScore", "Score", "Bind"):
        labels = {"extension_point": name, "status": "Success", **LONGSHORE}
        assert observed.value(f"{point}_count", **labels) == 1, name
    evaluated = {"plugin": "NodeResourcesFit", "extension_point": "Filter", **LONGSHORE}
    assert observed.value("scheduler_plugin_evaluation_total", **evaluated) == 1


def test_measured_or_not_plugins_are_left_as_they_were(observed: Observed) -> None:
    before = [vars(slot.plugin).copy() for slot in observed.engine.profiles["longshore"].filters]
    observed.add(roomy(), pod("web"))
    observed.bind_all()
    after = [vars(slot.plugin) for slot in observed.engine.profiles["longshore"].filters]
    assert [before_.keys() for before_ in before] == [after_.keys() for after_ in after]


def test_evaluations_add_up_to_the_attempts() -> None:
    """Each measured attempt counts for all attempts since the last measured one."""
    observed = Observed(Engine(), tick=0.001)
    observed.add(roomy())
    for number in range(100):
        observed.add(pod(f"web-{number}"))
        observed.bind_all()
    evaluated = {"plugin": "NodeResourcesFit", "extension_point": "Filter", **LONGSHORE}
    counted = observed.value("scheduler_plugin_evaluation_total", **evaluated)
    assert counted is not None
    assert 80 < counted <= 100


def test_a_plugin_that_raises_is_measured_as_an_error() -> None:
    class Broken:
        name = "Broken"

        def filter_node(self, *_: object) -> None:
            raise RuntimeError("no")

    observed = Observed(engine_of(Broken()))
    observed.add(roomy(), pod("web"))
    observed.advance()
    labels = {"plugin": "Broken", "extension_point": "Filter", "status": "Error"}
    assert observed.value("scheduler_plugin_execution_duration_seconds_count", **labels) == 1
    assert attempts(observed, "error") == 1


def test_profiles_have_labels_of_their_own() -> None:
    two = configuration(profile(name="one"), profile(name="two"))
    observed = Observed(Engine(two))
    observed.add(
        roomy(), pod("web").scheduler("one"), pod("db").scheduler("two"), pod("db-2").scheduler("two")
    )
    observed.bind_all()
    total = "scheduler_schedule_attempts_total"
    assert observed.value(total, result="scheduled", profile="one") == 1
    assert observed.value(total, result="scheduled", profile="two") == 2
