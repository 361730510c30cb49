"""What wakes a rejected pod: events that the rejecting plugins wake on, and changes of the pod itself."""

from typing import Any

import msgspec
import pytest
from tests.engine.queues import (
    ANYTHING,
    FIT,
    NODE_ADDED,
    NODE_LABELLED,
    NODE_TAINTED,
    POD_ADDED,
    POD_GONE,
    Scene,
    own,
)

from longshore.api import Pod, Toleration
from longshore.framework import Action, ClusterEvent, Resource, WakeOn
from longshore.testing import pod

A, B = pod("a"), pod("b")
PENDING = frozenset({"Claims"})
CLAIMS_WAKE_ON_NODES = (WakeOn(Resource.NODE, Action.ADD),)


def never(_pod: Pod, _old: Any, _new: Any) -> bool:
    return False


def broken(_pod: Pod, _old: Any, _new: Any) -> bool:
    raise RuntimeError("a mistake in the plugin")


def test_only_events_that_the_rejecting_plugin_wakes_on_wake_a_pod() -> None:
    scene = Scene(A)
    scene.rejected(now=10.0)
    scene.queue.event(NODE_LABELLED, now=60.0)
    scene.queue.event(POD_ADDED, now=60.0)
    assert scene.place(A) == "unschedulable"
    scene.queue.event(POD_GONE, now=60.0)
    assert scene.place(A) == "active"
    assert scene.heard[-1] == "active AssignedPodDelete"


def test_another_pod_that_requests_less_wakes_a_pod_rejected_by_fit() -> None:
    scene = Scene(A)
    scene.rejected(now=10.0)
    web = pod("web").on("n1")
    smaller = ClusterEvent(Resource.ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN, web, web)
    scene.queue.event(smaller, now=60.0)
    assert scene.heard[-1] == "active AssignedPodUpdatePodScaleDown"


def test_only_hints_of_the_plugins_that_rejected_the_pod_are_called() -> None:
    scene = Scene(A)
    scene.plugins.wakes_on["Ports"] = (WakeOn(Resource.NODE, Action.UPDATE_NODE_LABEL),)
    scene.rejected(now=10.0)
    scene.queue.event(NODE_LABELLED, now=60.0)
    assert scene.place(A) == "unschedulable"


def test_one_hint_that_returns_true_is_enough() -> None:
    scene = Scene(A)
    scene.plugins.wakes_on["Ports"] = (WakeOn(Resource.NODE, Action.UPDATE_NODE_LABEL),)
    scene.rejected(now=10.0, by=FIT | {"Ports"})
    scene.queue.event(NODE_LABELLED, now=60.0)
    assert scene.place(A) == "active"


def test_a_hint_gets_the_pod_and_the_object_before_and_after() -> None:
    seen: list[tuple[Any, ...]] = []

    def hint(*what: Any) -> bool:
        seen.append(what)
        return False

    scene = Scene(A)
    scene.plugins.wakes_on["Fit"] = (WakeOn(Resource.NODE, Action.UPDATE_NODE_LABEL, hint),)
    scene.rejected(now=10.0)
    scene.queue.event(NODE_LABELLED, now=60.0)
    assert seen == [(A, NODE_LABELLED.old, NODE_LABELLED.new)]
    assert scene.place(A) == "unschedulable"


def test_a_hint_that_raises_wakes_the_pod() -> None:
    scene = Scene(A)
    scene.plugins.wakes_on["Fit"] = (WakeOn(Resource.NODE, Action.ADD, broken),)
    scene.rejected(now=10.0)
    scene.queue.event(NODE_ADDED, now=60.0)
    assert scene.place(A) == "active"


@pytest.mark.parametrize("event", [POD_ADDED, NODE_LABELLED, NODE_ADDED])
def test_any_event_wakes_a_pod_rejected_by_an_extender(event: ClusterEvent) -> None:
    scene = Scene(A)
    scene.rejected(now=10.0, by=frozenset({"Extender"}))
    scene.queue.event(event, now=60.0)
    assert scene.place(A) == "active"


def test_a_plugin_that_wakes_on_new_nodes_wakes_on_their_taints_too() -> None:
    scene = Scene(A, B)
    scene.plugins.wakes_on["Fit"] = (WakeOn(Resource.NODE, Action.ADD, never),)
    scene.plugins.wakes_on["Taints"] = (
        WakeOn(Resource.NODE, Action.ADD),
        WakeOn(Resource.NODE, Action.UPDATE_NODE_TAINT, never),
    )
    scene.rejected(now=10.0)
    scene.rejected(now=10.0, by=frozenset({"Taints"}))
    scene.queue.event(NODE_TAINTED, now=60.0)
    assert (scene.place(A), scene.place(B)) == ("active", "unschedulable")


def test_an_event_can_be_limited_to_some_pods() -> None:
    scene = Scene(A, B.priority(5))
    scene.rejected(now=10.0)
    scene.rejected(now=10.0)
    scene.queue.event(POD_GONE, now=60.0, among=lambda waiting: waiting.spec.priority <= 0)
    assert (scene.place(A), scene.place(B)) == ("active", "unschedulable")


def test_a_wildcard_event_wakes_every_rejected_pod() -> None:
    scene = Scene(A, B)
    scene.plugins.wakes_on["Never"] = ()
    scene.rejected(now=10.0)
    scene.rejected(now=10.0, by=frozenset({"Never"}))
    scene.queue.event(ANYTHING, now=60.0)
    assert scene.names() == ["a", "b"]


def test_an_event_is_checked_once_for_ten_thousand_pods_with_one_cause() -> None:
    scene = Scene()
    for number in range(10_000):
        scene.queue.put(pod(f"p{number}"), now=0.0)
    for _ in range(10_000):
        scene.rejected(now=1.0)
    assert scene.plugins.wakes_asked == 1


# Plugins that said Pending.


def test_a_pending_pod_skips_backoff_when_the_hint_of_the_plugin_returns_true() -> None:
    scene = Scene(A)
    scene.plugins.wakes_on["Claims"] = CLAIMS_WAKE_ON_NODES
    scene.rejected(now=10.0, by=PENDING, pending=PENDING)
    scene.queue.event(NODE_ADDED, now=10.1)
    assert scene.place(A) == "active"


def test_the_hint_of_another_plugin_does_not_skip_backoff() -> None:
    scene = Scene(A)
    scene.plugins.wakes_on["Claims"] = CLAIMS_WAKE_ON_NODES
    scene.rejected(now=10.0, by=FIT | PENDING, pending=PENDING)
    scene.queue.event(POD_GONE, now=10.1)
    assert scene.place(A) == "backoff"


def test_the_pending_plugin_decides_first_about_events_during_an_attempt() -> None:
    scene = Scene(A)
    scene.plugins.wakes_on["Claims"] = CLAIMS_WAKE_ON_NODES
    entry = scene.popped()
    scene.queue.event(POD_GONE, now=5.0)
    scene.queue.event(NODE_ADDED, now=5.0)
    scene.queue.fail(entry, now=10.0, rejectors=FIT | PENDING, pending=PENDING)
    assert scene.place(A) == "active"


# Events while the pod is in flight.


def test_an_event_during_the_attempt_keeps_the_pod_from_being_unschedulable() -> None:
    scene = Scene(A)
    entry = scene.popped()
    scene.queue.event(POD_GONE, now=5.0)
    scene.queue.fail(entry, now=10.0, rejectors=FIT)
    assert scene.place(A) == "backoff"
    assert scene.heard[-1] == "backoff ScheduleAttemptFailure"


def test_an_event_during_the_attempt_that_cannot_help_does_not_count() -> None:
    scene = Scene(A)
    entry = scene.popped()
    scene.queue.event(NODE_LABELLED, now=5.0)
    scene.queue.fail(entry, now=10.0, rejectors=FIT)
    assert scene.place(A) == "unschedulable"


def test_an_event_before_the_attempt_does_not_count() -> None:
    scene = Scene(A, B)
    first = scene.popped()
    scene.queue.event(POD_GONE, now=5.0)
    second = scene.popped()
    scene.queue.fail(second, now=10.0, rejectors=FIT)
    assert scene.place(B) == "unschedulable"
    scene.queue.fail(first, now=10.0, rejectors=FIT)
    assert scene.place(A) == "backoff"


def test_events_are_kept_for_the_oldest_attempt_and_no_longer() -> None:
    scene = Scene(A, B)
    first = scene.popped()
    scene.queue.event(POD_GONE, now=5.0)
    second = scene.popped()
    scene.queue.event(POD_GONE, now=6.0)
    kept = scene.queue._in_flight
    assert len(kept) == 2
    scene.queue.done_scheduling(first)
    assert len(kept) == 1
    scene.queue.settle(second)
    assert len(kept) == 0
    scene.queue.event(POD_GONE, now=7.0)
    assert len(kept) == 0


def test_an_event_is_not_lost_when_older_ones_are_dropped() -> None:
    scene = Scene(A, B)
    first = scene.popped()
    scene.queue.event(NODE_LABELLED, now=5.0)
    second = scene.popped()
    scene.queue.settle(first)
    scene.queue.event(POD_GONE, now=6.0)
    scene.queue.fail(second, now=10.0, rejectors=FIT)
    assert scene.place(B) == "backoff"


def test_a_pod_rejected_after_its_binding_began_is_tried_again_in_any_case() -> None:
    scene = Scene(A)
    entry = scene.popped()
    scene.queue.done_scheduling(entry)
    scene.queue.fail(entry, now=10.0, rejectors=FIT)
    assert scene.place(A) == "backoff"


# Changes of the pod itself.


def test_a_change_of_status_does_not_wake_a_pod() -> None:
    scene = Scene(A)
    scene.plugins.wakes_on["Mine"] = ()
    scene.rejected(now=10.0, by=FIT | {"Mine"})
    scene.queue.put(A.condition("PodScheduled", "False"), now=60.0)
    assert scene.place(A) == "unschedulable"


def test_a_pod_that_requests_less_is_tried_again() -> None:
    large = A.requests(cpu="2")
    scene = Scene(large)
    scene.rejected(now=10.0)
    scene.queue.put(large.requests(cpu="1"), now=60.0)
    assert scene.heard[-1] == "active UnschedulablePodUpdatePodScaleDown"


def test_a_pod_with_a_new_toleration_is_tried_again_if_taints_kept_it_away() -> None:
    tolerant = msgspec.structs.replace(
        A, spec=msgspec.structs.replace(A.spec, tolerations=(Toleration(operator="Exists"),))
    )
    scene = Scene(A, B)
    scene.plugins.wakes_on["Taints"] = (WakeOn(Resource.POD, Action.UPDATE_POD_TOLERATION, own),)
    scene.rejected(now=10.0, by=frozenset({"Taints"}))
    scene.queue.put(tolerant, now=60.0)
    assert scene.heard[-1] == "active UnschedulablePodUpdatePodToleration"


def test_new_labels_wake_a_pod_only_if_the_plugin_that_rejected_it_wakes_on_them() -> None:
    scene = Scene(A, B)
    scene.plugins.wakes_on["Spread"] = (WakeOn(Resource.POD, Action.UPDATE_POD_LABEL, own),)
    scene.rejected(now=10.0)
    scene.rejected(now=10.0, by=frozenset({"Spread"}))
    scene.queue.put(A.labels(v="2"), now=60.0)
    scene.queue.put(B.labels(v="2"), now=60.0)
    assert (scene.place(A), scene.place(B)) == ("unschedulable", "active")


def test_a_pod_that_changed_in_two_ways_is_woken_once() -> None:
    large = A.requests(cpu="2")
    scene = Scene(large)
    scene.rejected(now=10.0, by=frozenset({"Extender"}))
    scene.queue.put(large.requests(cpu="1").labels(v="2"), now=60.0)
    assert scene.heard[2:] == ["active UnschedulablePodUpdatePodLabel"]


def test_any_change_of_the_spec_wakes_a_pod_whose_plugin_wakes_on_nothing() -> None:
    scene = Scene(A)
    scene.plugins.wakes_on["Mine"] = ()
    scene.rejected(now=10.0, by=frozenset({"Mine"}))
    scene.queue.event(NODE_ADDED, now=60.0)
    assert scene.place(A) == "unschedulable"
    scene.queue.put(A.priority(3), now=60.0)
    assert scene.place(A) == "active"


def test_a_change_of_the_pod_during_its_attempt_counts_when_it_is_rejected() -> None:
    large = A.requests(cpu="2")
    scene = Scene(large)
    entry = scene.popped()
    scene.queue.put(large.requests(cpu="1"), now=0.5)
    scene.queue.fail(entry, now=1.0, rejectors=FIT)
    assert scene.place(A) == "backoff"


def test_the_same_version_twice_is_no_change() -> None:
    told = msgspec.structs.replace(A, metadata=msgspec.structs.replace(A.metadata, resource_version="7"))
    again = msgspec.structs.replace(told)
    scene = Scene(told)
    scene.rejected(now=10.0, by=frozenset({"Extender"}))
    scene.queue.put(again, now=60.0)
    assert scene.place(A) == "unschedulable"


def test_a_plugin_may_wake_on_different_events_in_two_profiles() -> None:
    scene = Scene(A, B.scheduler("deaf"))
    scene.plugins.wakes_on["deaf/Fit"] = ()
    scene.rejected(now=10.0)
    scene.rejected(now=10.0)
    scene.queue.event(NODE_ADDED, now=60.0)
    assert (scene.place(A), scene.place(B)) == ("active", "unschedulable")
