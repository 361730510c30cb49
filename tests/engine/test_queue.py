"""Which pod is tried next, and when."""

import pytest
from tests.engine.queues import FIT, NODE_ADDED, NODE_LABELLED, POD_GONE, Scene

from longshore.testing import pod

A, B, C = pod("a"), pod("b"), pod("c")


def test_the_most_important_pod_first_then_the_longest_waiting() -> None:
    assert Scene(B, A, C.priority(5), pod("d").priority(-1)).names() == ["c", "b", "a", "d"]


def test_pods_of_one_moment_are_tried_in_the_order_in_which_they_came() -> None:
    scene = Scene()
    for waiting in (B, C, A):
        scene.queue.put(waiting, now=1.0)
    assert scene.names() == ["b", "c", "a"]


def test_a_pod_put_twice_is_tried_once_in_its_newest_version() -> None:
    scene = Scene(A, A.labels(v="2"))
    assert scene.popped().pod.metadata.labels == {"v": "2"}
    assert scene.queue.pop() is None


def test_a_pod_whose_priority_changed_takes_its_new_place() -> None:
    scene = Scene(A, B)
    scene.queue.put(B.priority(9), now=2.0)
    assert scene.names() == ["b", "a"]


def test_a_pod_in_backoff_whose_priority_changed_takes_its_new_place() -> None:
    scene = Scene(A, B)
    first, second = scene.popped(), scene.popped()
    scene.queue.event(NODE_ADDED, now=2.0)
    scene.queue.fail(first, now=2.0, rejectors=FIT)
    scene.queue.fail(second, now=2.0, rejectors=FIT)
    scene.queue.put(B.priority(9), now=2.5)
    assert scene.place(B) == "backoff"
    assert scene.names() == ["b", "a"]


def test_the_shape_of_a_pod_is_dropped_when_its_spec_or_labels_change() -> None:
    scene = Scene(A)
    entry = scene.queue.find(A)
    assert entry is not None
    entry.shape_key = b"of the pod"
    scene.queue.put(A.condition("PodScheduled", "False"), now=1.0)
    assert entry.shape_key == b"of the pod"
    scene.queue.put(A.labels(v="2"), now=1.0)
    assert entry.shape_key is None


def test_pop_counts_attempts() -> None:
    scene = Scene(A)
    assert scene.popped().attempts == 1


def test_a_withdrawn_pod_is_not_tried() -> None:
    scene = Scene(A, B)
    scene.queue.withdraw(A)
    assert scene.names() == ["b"]


def test_a_successor_of_the_same_name_takes_the_place_of_the_pod() -> None:
    scene = Scene(A, A.uid("second"))
    assert scene.popped().pod.metadata.uid == "second"
    assert scene.queue.pop() is None


def test_withdrawing_a_pod_leaves_its_successor() -> None:
    scene = Scene(A.uid("second"))
    scene.queue.withdraw(A)
    assert scene.names() == ["a"]


def test_a_pod_withdrawn_while_in_flight_does_not_come_back() -> None:
    scene = Scene(A)
    entry = scene.popped()
    scene.queue.withdraw(A)
    assert scene.queue.find(A) is None
    assert scene.queue.holds(A)
    scene.queue.fail(entry, now=1.0)
    assert scene.queue.next_due is None
    assert not scene.queue.holds(A)


def test_a_pod_withdrawn_and_put_back_while_in_flight_is_tried_once() -> None:
    scene = Scene(A)
    entry = scene.popped()
    scene.queue.withdraw(A)
    scene.queue.put(A, now=0.5)
    assert scene.queue.pop() is None
    scene.queue.fail(entry, now=1.0)
    scene.queue.flush(now=3.0)
    assert scene.names() == ["a"]


def test_settling_a_pod_in_flight_does_not_touch_its_successor() -> None:
    scene = Scene(A)
    old = scene.popped()
    scene.queue.put(A.uid("second"), now=1.0)
    scene.rejected(now=1.0)
    scene.queue.settle(old)
    scene.queue.event(POD_GONE, now=100.0)
    assert scene.popped().pod.metadata.uid == "second"


def test_a_failure_of_a_predecessor_does_not_bring_it_back() -> None:
    scene = Scene(A)
    old = scene.popped()
    scene.queue.put(A.uid("second"), now=1.0)
    scene.queue.fail(old, now=1.0)
    scene.queue.flush(now=100.0)
    assert scene.names() == ["a"]


def test_a_pod_in_flight_ends_its_attempt_only_once() -> None:
    scene = Scene(A)
    entry = scene.rejected(now=1.0)
    scene.queue.fail(entry, now=2.0)
    assert (entry.rejections, entry.errors, entry.timestamp) == (1, 0, 1.0)


def test_a_withdrawn_pod_leaves_no_deadline_behind() -> None:
    scene = Scene(A)
    scene.queue.fail(scene.popped(), now=0.0)
    scene.queue.withdraw(A)
    assert scene.queue.next_due is None
    scene.queue.put(B, now=1.0)
    scene.rejected(now=1.0)
    scene.queue.withdraw(B)
    assert scene.queue.next_due is None
    assert not scene.queue.has_active


# Backoff.


@pytest.mark.parametrize(
    ("errors", "seconds"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (2000, 10)]
)
def test_backoff_doubles_up_to_ten_seconds(errors: int, seconds: int) -> None:
    scene = Scene(A)
    entry = scene.popped()
    entry.errors = errors - 1
    scene.queue.fail(entry, now=100.9)
    # At the end of the second in which it ends.
    over = 100 + seconds + 1.0
    assert scene.queue.next_due == over
    scene.queue.flush(now=over - 0.01)
    assert scene.queue.pop() is None
    scene.queue.flush(now=over)
    assert scene.queue.pop() is entry


def test_a_rejection_ends_a_series_of_errors() -> None:
    scene = Scene(A)
    entry = scene.popped()
    scene.queue.fail(entry, now=0.0)
    scene.queue.flush(now=10.0)
    scene.rejected(now=10.0)
    assert (entry.rejections, entry.errors) == (1, 0)


def test_without_a_limit_there_is_no_backoff() -> None:
    scene = Scene(A, max_backoff=0.0)
    scene.queue.fail(scene.popped(), now=1.0)
    assert scene.place(A) == "active"


def test_a_pod_after_an_error_waits_for_its_backoff_even_if_no_other_is_active() -> None:
    scene = Scene(A)
    scene.queue.fail(scene.popped(), now=1.0)
    assert not scene.queue.has_active
    assert scene.queue.pop() is None


def test_a_rejected_pod_waits_for_its_backoff_only_while_others_are_active() -> None:
    scene = Scene(A, B)
    scene.rejected(now=10.0)
    scene.queue.event(POD_GONE, now=10.5)
    assert scene.place(A) == "backoff"
    assert scene.popped().pod.metadata.name == "b"
    assert scene.queue.has_active
    assert scene.popped().pod.metadata.name == "a"
    assert scene.heard[-1] == "active PopFromBackoffQ"


def test_backoffs_that_end_in_the_same_second_end_together_in_the_order_of_the_queue() -> None:
    scene = Scene(A, B.priority(5), C.priority(9))
    entries = [scene.popped(), scene.popped(), scene.popped()]
    scene.queue.event(NODE_ADDED, now=2.0)
    for entry, failed in zip(entries, (10.8, 10.5, 10.2), strict=True):
        scene.queue.fail(entry, now=failed, rejectors=FIT)
    assert scene.queue.next_due == 12.0
    assert scene.names() == ["c", "b", "a"]


def test_the_backoff_that_ends_in_an_earlier_second_is_taken_first() -> None:
    scene = Scene(A, B.priority(5))
    important, other = scene.popped(), scene.popped()
    scene.queue.event(NODE_ADDED, now=2.0)
    scene.queue.fail(other, now=10.0, rejectors=FIT)
    scene.queue.fail(important, now=11.0, rejectors=FIT)
    assert scene.names() == ["a", "b"]


@pytest.mark.parametrize(("now", "place"), [(11.9, "backoff"), (12.0, "active")])
def test_a_woken_pod_waits_for_the_rest_of_its_backoff(now: float, place: str) -> None:
    scene = Scene(A)
    scene.rejected(now=10.0)
    scene.queue.event(POD_GONE, now=now)
    assert scene.place(A) == place


def test_rejected_pods_are_tried_by_priority_then_age_when_a_node_comes() -> None:
    scene = Scene(A, B, C.priority(5))
    for _ in range(3):
        scene.rejected(now=10.0)
    assert scene.queue.pop() is None
    scene.queue.event(NODE_ADDED, now=60.0)
    assert scene.names() == ["c", "a", "b"]


def test_an_unschedulable_pod_is_tried_after_five_minutes_without_an_event() -> None:
    scene = Scene(A)
    scene.rejected(now=10.0)
    # The first sweep after 300 seconds, with one every 30 seconds.
    assert scene.queue.next_due == 330.0
    scene.queue.flush(now=329.9)
    assert scene.place(A) == "unschedulable"
    scene.queue.flush(now=330.0)
    assert scene.names() == ["a"]
    assert scene.heard[-1] == "active UnschedulableTimeout"


def test_the_longest_wait_of_unschedulable_pods_can_be_configured() -> None:
    scene = Scene(A, max_unschedulable_seconds=5.0)
    scene.rejected(now=10.0)
    assert scene.queue.next_due == 30.0


def test_a_pod_woken_in_time_is_not_overdue_later() -> None:
    scene = Scene(A)
    scene.rejected(now=10.0)
    scene.queue.event(POD_GONE, now=100.0)
    scene.queue.settle(scene.popped())
    assert scene.queue.next_due is None


def test_a_flush_of_overdue_pods_counts_as_an_event_for_pods_in_flight() -> None:
    scene = Scene(A, B)
    scene.rejected(now=10.0)
    entry = scene.popped()
    scene.queue.flush(now=330.0)
    scene.queue.fail(entry, now=331.0, rejectors=FIT)
    assert scene.place(B) == "backoff"


def test_the_observer_is_called_with_places_and_reasons() -> None:
    scene = Scene(A, B.gates("wait"))
    scene.rejected(now=10.0)
    scene.queue.event(NODE_LABELLED, now=10.2)
    scene.queue.event(POD_GONE, now=10.5)
    scene.queue.flush(now=12.0)
    scene.queue.fail(scene.popped(), now=13.0)
    assert scene.heard == [
        "active UnschedulablePodAdd",
        "gated UnschedulablePodAdd",
        "unschedulable ScheduleAttemptFailure",
        "backoff AssignedPodDelete",
        "active BackoffComplete",
        "backoff ScheduleAttemptFailure",
    ]


def test_counts_and_waiting_leave_out_the_pods_in_flight() -> None:
    scene = Scene(A, B, C.gates("wait"), pod("d"), pod("e"))
    scene.rejected(now=10.0)
    scene.queue.fail(scene.popped(), now=10.0)
    scene.popped()
    assert scene.queue.counts() == {"active": 1, "backoff": 1, "unschedulable": 1, "gated": 1}
    assert [entry.pod.metadata.name for entry in scene.queue.waiting()] == ["a", "b", "c", "e"]
