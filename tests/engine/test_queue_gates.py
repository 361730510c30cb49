"""Pods that plugins gate, and pods that plugins activate."""

import pytest
from tests.engine.queues import ANYTHING, FIT, NODE_ADDED, POD_GONE, Scene

from longshore.framework import Action, ClusterEvent, Resource, WakeOn
from longshore.testing import pod

A, B = pod("a"), pod("b")


def test_a_gated_pod_is_not_tried_and_no_attempt_is_counted() -> None:
    scene = Scene(A.gates("wait"))
    assert not scene.queue.has_active
    assert scene.queue.pop() is None
    entry = scene.queue.find(A)
    assert entry is not None
    assert (entry.gated_by, entry.attempts) == ("SchedulingGates", 0)
    assert entry.rejectors == {"SchedulingGates"}
    assert scene.queue.next_due is None


def test_a_pod_is_active_as_soon_as_its_last_gate_is_removed() -> None:
    scene = Scene(A.gates("one", "two"))
    scene.queue.put(A.gates("two"), now=50.0)
    assert scene.place(A) == "gated"
    scene.queue.put(A, now=60.0)
    assert scene.heard[-1] == "active UnschedulablePodUpdatePodSchedulingGatesEliminated"
    entry = scene.popped()
    assert (entry.gated_by, entry.timestamp, entry.added) == ("", 0.0, 60.0)


@pytest.mark.parametrize("event", [NODE_ADDED, POD_GONE, ANYTHING])
def test_a_gate_is_not_asked_again_after_events_that_it_does_not_wake_on(
    event: ClusterEvent,
) -> None:
    scene = Scene(A.gates("wait"))
    scene.plugins.asked.clear()
    scene.queue.event(event, now=60.0)
    assert scene.plugins.asked == []


def test_the_gate_is_asked_first_after_an_event_that_it_wakes_on() -> None:
    scene = Scene()
    scene.plugins.wakes_on["Quota"] = (WakeOn(Resource.POD, Action.DELETE),)
    is_open = False
    scene.plugins.gates["Quota"] = lambda _pod: is_open
    scene.queue.put(A, now=0.0)
    scene.queue.event(POD_GONE, now=1.0)
    assert scene.plugins.asked == [("a", ""), ("a", "Quota")]
    assert scene.place(A) == "gated"
    is_open = True
    scene.queue.event(POD_GONE, now=2.0)
    assert scene.place(A) == "active"


def test_a_pod_can_pass_one_gate_and_be_gated_by_the_next() -> None:
    scene = Scene()
    scene.plugins.wakes_on["Quota"] = (WakeOn(Resource.POD, Action.DELETE),)
    scene.plugins.gates["Quota"] = lambda _pod: False
    scene.queue.put(A.gates("wait"), now=0.0)
    scene.queue.put(A, now=1.0)
    entry = scene.queue.find(A)
    assert entry is not None
    assert (entry.gated_by, entry.place) == ("Quota", "gated")


def test_a_rejected_pod_must_pass_the_gates_again() -> None:
    scene = Scene(A)
    entry = scene.rejected(now=10.0)
    scene.plugins.gates["Preemption"] = lambda _pod: False
    scene.queue.event(POD_GONE, now=10.5)
    assert scene.place(A) == "gated"
    assert entry.rejectors == {"Fit", "Preemption"}
    assert scene.heard[-1] == "gated AssignedPodDelete"


def test_a_pod_whose_backoff_is_over_is_not_gated_again() -> None:
    scene = Scene(A)
    scene.queue.fail(scene.popped(), now=10.0)
    scene.plugins.gates["Preemption"] = lambda _pod: False
    scene.queue.flush(now=12.0)
    assert scene.place(A) == "active"


def test_an_activated_pod_skips_backoff_and_hints() -> None:
    scene = Scene(A, B)
    scene.rejected(now=10.0)
    scene.queue.fail(scene.popped(), now=10.0)
    scene.queue.activate([A, B, pod("stranger")], now=10.1)
    assert (scene.place(A), scene.place(B)) == ("active", "active")
    assert scene.heard[-2:] == ["active ForceActivate", "active ForceActivate"]


def test_an_activated_pod_must_pass_the_gates() -> None:
    scene = Scene(A.gates("wait"))
    scene.queue.activate([A], now=10.0)
    assert scene.place(A) == "gated"


def test_only_the_pod_activated_while_in_flight_comes_back_after_backoff() -> None:
    scene = Scene(A, B)
    first, second = scene.popped(), scene.popped()
    scene.queue.activate([A], now=5.0)
    scene.queue.fail(first, now=10.0, rejectors=FIT)
    scene.queue.fail(second, now=10.0, rejectors=FIT)
    assert (scene.place(A), scene.place(B)) == ("backoff", "unschedulable")


def test_activating_an_active_pod_changes_nothing() -> None:
    scene = Scene(A)
    scene.queue.activate([A], now=1.0)
    assert scene.names() == ["a"]


def test_gated_pods_that_are_activated_together_are_tried_in_the_order_given() -> None:
    scene = Scene()
    is_open = False
    scene.plugins.gates["Plan"] = lambda _pod: is_open
    for number, name in enumerate("abc"):
        scene.queue.put(pod(name), now=float(number))
    is_open = True
    scene.queue.activate([pod("c"), pod("a"), pod("b")], now=10.0)
    assert scene.names() == ["c", "a", "b"]


def test_active_pods_can_be_held() -> None:
    scene = Scene(A, B, pod("c"))
    scene.queue.fail(scene.popped(), now=10.0)
    assert (scene.place(A), scene.place(B)) == ("backoff", "active")
    scene.plugins.wakes_on["Plan"] = ()
    scene.plugins.gates["Plan"] = lambda each: each.metadata.name == "c"
    scene.queue.hold([A, B, pod("c"), pod("stranger")])
    assert (scene.place(A), scene.place(B), scene.place(pod("c"))) == ("gated", "gated", "active")
    assert scene.heard[-1] == "gated Held"
    scene.queue.flush(now=600.0)
    assert scene.names() == ["c"]
    assert scene.queue.next_due is None


def test_a_pod_in_flight_is_not_held_before_it_comes_back() -> None:
    scene = Scene(A)
    entry = scene.popped()
    scene.plugins.gates["Plan"] = lambda _pod: False
    scene.queue.hold([A])
    assert scene.place(A) == "in flight"
    scene.queue.fail(entry, now=1.0)
    assert scene.place(A) == "gated"
