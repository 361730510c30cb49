"""Who is tried next, and when."""

import pytest

from longshore.api import Pod
from longshore.engine.queue import Entry, Queue
from longshore.testing import pod

A, B, C = pod("a"), pod("b"), pod("c")


def queue_of(*pods: Pod) -> Queue:
    queue = Queue()
    for number, waiting in enumerate(pods):
        queue.put(waiting, now=float(number))
    return queue


def popped(queue: Queue) -> Entry:
    entry = queue.pop()
    assert entry is not None
    return entry


def names(queue: Queue) -> list[str]:
    """All that can be tried now, in order."""
    found = []
    while (entry := queue.pop()) is not None:
        found.append(entry.pod.metadata.name)
    return found


def test_the_most_important_pod_first_then_the_longest_waiting() -> None:
    assert names(queue_of(B, A, C.priority(5), pod("d").priority(-1))) == ["c", "b", "a", "d"]


def test_pods_of_one_moment_come_in_the_order_they_were_told() -> None:
    queue = Queue()
    for waiting in (B, C, A):
        queue.put(waiting, now=1.0)
    assert names(queue) == ["b", "c", "a"]


def test_a_pod_put_twice_is_tried_once_in_its_newest_version() -> None:
    queue = queue_of(A, A.labels(v="2"))
    assert popped(queue).pod.metadata.labels == {"v": "2"}
    assert queue.pop() is None


def test_a_pod_whose_priority_changed_takes_its_new_turn() -> None:
    queue = queue_of(A, B)
    queue.put(B.priority(9), now=2.0)
    assert names(queue) == ["b", "a"]


def test_a_withdrawn_pod_is_not_tried() -> None:
    queue = queue_of(A, B)
    queue.withdraw(A)
    assert names(queue) == ["b"]


def test_a_successor_of_the_same_name_takes_the_place_of_the_pod() -> None:
    queue = queue_of(A, A.uid("second"))
    assert popped(queue).pod.metadata.uid == "second"
    assert queue.pop() is None


def test_withdrawing_a_pod_leaves_its_successor() -> None:
    queue = queue_of(A.uid("second"))
    queue.withdraw(A)
    assert names(queue) == ["a"]


@pytest.mark.parametrize(
    ("failures", "seconds"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (2000, 10)]
)
def test_backoff_doubles_up_to_ten_seconds(failures: int, seconds: int) -> None:
    queue = queue_of(A)
    entry = popped(queue)
    entry.failures = failures - 1
    queue.back_off(entry, now=100.0)
    assert queue.next_ready == 100.0 + seconds
    queue.flush(now=100.0 + seconds - 0.01)
    assert queue.pop() is None
    queue.flush(now=100.0 + seconds)
    assert queue.pop() is entry


def test_an_unschedulable_pod_waits_until_it_is_woken() -> None:
    queue = queue_of(A)
    queue.set_aside(popped(queue), now=0.0)
    queue.flush(now=1000.0)
    assert queue.pop() is None
    assert queue.next_ready is None
    queue.wake(now=1000.0)
    assert names(queue) == ["a"]


def test_a_pod_woken_right_after_its_failure_sits_out_its_backoff() -> None:
    queue = queue_of(A)
    queue.set_aside(popped(queue), now=10.0)
    queue.wake(now=10.5)
    assert queue.pop() is None
    assert queue.next_ready == 11.0
    queue.flush(now=11.0)
    assert names(queue) == ["a"]


def test_room_made_during_the_flight_keeps_the_pod_from_being_set_aside() -> None:
    queue = queue_of(A)
    entry = popped(queue)
    queue.wake(now=0.5)
    queue.set_aside(entry, now=1.0)
    assert queue.next_ready == 2.0


def test_a_change_of_the_pod_during_its_flight_keeps_it_from_being_set_aside() -> None:
    queue = queue_of(A)
    entry = popped(queue)
    queue.put(A.requests(cpu="1"), now=0.5)
    queue.set_aside(entry, now=1.0)
    assert queue.next_ready == 2.0


def test_a_change_of_status_alone_does_not_disturb_an_unschedulable_pod() -> None:
    queue = queue_of(A)
    queue.set_aside(popped(queue), now=0.0)
    queue.put(A.condition("PodScheduled", "False"), now=50.0)
    assert queue.pop() is None
    queue.put(A.requests(cpu="1"), now=50.0)
    assert names(queue) == ["a"]


def test_a_pod_withdrawn_during_its_flight_does_not_come_back() -> None:
    queue = queue_of(A)
    entry = popped(queue)
    queue.withdraw(A)
    assert queue.find(A) is None
    queue.back_off(entry, now=1.0)
    assert queue.next_ready is None
    assert not queue.holds(A)


def test_a_pod_withdrawn_and_put_back_during_its_flight_is_tried_once() -> None:
    queue = queue_of(A)
    entry = popped(queue)
    queue.withdraw(A)
    queue.put(A, now=0.5)
    assert queue.pop() is None
    queue.back_off(entry, now=1.0)
    queue.flush(now=2.0)
    assert names(queue) == ["a"]


def test_the_end_of_a_flight_does_not_touch_the_successor() -> None:
    queue = queue_of(A)
    old = popped(queue)
    queue.put(A.uid("second"), now=1.0)
    queue.set_aside(popped(queue), now=1.0)
    queue.settle(old)
    queue.wake(now=100.0)
    assert popped(queue).pod.metadata.uid == "second"


def test_a_withdrawn_pod_leaves_no_deadline_behind() -> None:
    queue = queue_of(A)
    queue.back_off(popped(queue), now=0.0)
    queue.withdraw(A)
    assert queue.next_ready is None
    queue.put(B, now=1.0)
    queue.withdraw(B)
    assert not queue.has_active
