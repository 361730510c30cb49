"""Reserve, Unreserve and Permit."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.engine.stage import Stage, room

from longshore.cluster import CPU, PodInfo
from longshore.framework import Action, CycleState, Handle, Resource, Status, Wait, WakeOn
from longshore.testing import PodBuilder, pod

A = pod("a").requests(cpu="1")
B = pod("b").requests(cpu="1")
UID_A = A.metadata.uid


class Ledger:
    """Notes its calls, and returns the given status at Reserve."""

    wakes_on = ()

    def __init__(self, name: str, calls: list[str], answer: Status | None = None) -> None:
        self.name = name
        self.calls = calls
        self.answer = answer

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        self.calls.append(f"{self.name} reserves {node}")
        return self.answer

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self.calls.append(f"{self.name} unreserves {node}")


class Holder:
    """Returns the given answer at Permit, for the pod of one name or for all."""

    wakes_on: Sequence[WakeOn] = ()
    handle: Handle

    def __init__(self, name: str, answer: Status | Wait | None, *, only: str = "") -> None:
        self.name = name
        self.answer = answer
        self._only = only

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> Status | Wait | None:
        return self.answer if self._only in ("", pod.pod.metadata.name) else None

    def allow(self, uid: str = UID_A) -> None:
        self.handle.allow(uid, self.name)

    def reject(self, message: str, uid: str = UID_A) -> None:
        self.handle.reject(uid, self.name, message)


def stage_with(*plugins: Any, cpu: str = "1") -> Stage:
    """Return a stage with the default plugins, and one node with room for one pod by default."""
    stage = Stage(*plugins, defaults=True)
    stage.create(room("n1", cpu))
    return stage


# Reserve.


def test_a_refusal_at_reserve_is_undone_in_reverse_order_also_by_plugins_never_called() -> None:
    calls: list[str] = []
    refusal = Status.unschedulable("ledger full")
    stage = stage_with(Ledger("One", calls), Ledger("Two", calls, refusal), Ledger("Three", calls))
    stage.create(A)
    stage.run()
    assert calls == [
        "One reserves n1",
        "Two reserves n1",
        "Three unreserves n1",
        "Two unreserves n1",
        "One unreserves n1",
    ]


def test_a_refusal_at_reserve_makes_the_pod_unschedulable_by_that_plugin() -> None:
    stage = stage_with(Ledger("One", [], Status.unschedulable("ledger full")))
    stage.create(A)
    stage.run()
    assert stage.message("a") == "0/1 nodes are available: 1 ledger full."
    assert stage.condition("a").reason == "Unschedulable"
    assert stage.place("a") == "unschedulable"


def test_the_room_of_a_pod_refused_at_reserve_is_free_for_the_next() -> None:
    class RefusesA(Ledger):
        def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
            return Status.unschedulable("not you") if pod.pod.metadata.name == "a" else None

    stage = stage_with(RefusesA("One", []))
    stage.create(A.priority(1), B)
    stage.run()
    assert (stage.node_of("a"), stage.node_of("b")) == ("", "n1")


def test_a_pod_with_an_error_at_reserve_is_tried_again_after_backoff() -> None:
    ledger = Ledger("One", [], Status.error("disk failure"))
    stage = stage_with(ledger)
    stage.create(A)
    stage.run(until=0.5)
    assert stage.condition("a").reason == "SchedulerError"
    assert stage.message("a") == 'running Reserve plugin "One": disk failure'
    ledger.answer = None
    stage.run()
    assert stage.node_of("a") == "n1"


def test_nothing_is_unreserved_when_all_goes_well() -> None:
    calls: list[str] = []
    stage = stage_with(Ledger("One", calls))
    stage.create(A)
    stage.run()
    assert calls == ["One reserves n1"]


# Permit.


def test_a_pod_that_permit_approves_is_bound_at_once() -> None:
    stage = stage_with(Holder("Holds", None))
    stage.create(A)
    stage.run()
    assert stage.node_of("a") == "n1"
    assert stage.now == 0.0


def test_a_pod_that_permit_denies_is_unschedulable_and_its_reservation_is_undone() -> None:
    calls: list[str] = []
    stage = stage_with(Ledger("One", calls), Holder("Denies", Status.unschedulable("not now")))
    stage.create(A)
    stage.run()
    assert stage.message("a") == "0/1 nodes are available: 1 not now."
    assert calls == ["One reserves n1", "One unreserves n1"]
    assert stage.used(CPU, "n1") == 0


def test_a_denial_at_permit_counts_although_another_plugin_wants_to_wait() -> None:
    waits = Holder("Waits", Wait(60.0))
    stage = stage_with(waits, Holder("Denies", Status.unschedulable("not now")))
    stage.create(A)
    stage.run(until=1.0)
    assert stage.message("a") == "0/1 nodes are available: 1 not now."
    assert not waits.handle.waiting_pods()


def test_a_waiting_pod_keeps_its_room_and_is_nominated() -> None:
    holder = Holder("Holds", Wait(60.0), only="a")
    stage = stage_with(holder)
    stage.create(A)
    stage.create(B, at=1.0)
    stage.run(until=2.0)
    assert holder.handle.waiting_pods() == {UID_A: "n1"}
    assert stage.pod("a").status.nominated_node_name == "n1"
    assert stage.message("b").startswith("0/1 nodes are available: 1 Insufficient cpu. ")


def test_an_allowed_pod_is_bound() -> None:
    holder = Holder("Holds", Wait(60.0))
    stage = stage_with(holder)
    stage.create(A)
    stage.run(until=5.0)
    assert stage.node_of("a") == ""
    holder.allow()
    stage.run()
    assert stage.node_of("a") == "n1"
    assert stage.now == 5.0


def test_a_pod_that_several_plugins_hold_waits_until_all_of_them_allow_it() -> None:
    one, two = Holder("One", Wait(60.0)), Holder("Two", Wait(60.0))
    stage = stage_with(one, two)
    stage.create(A)
    stage.run(until=1.0)
    one.allow()
    one.allow()
    stage.run(until=2.0)
    assert stage.node_of("a") == ""
    two.allow()
    stage.run()
    assert stage.node_of("a") == "n1"


def test_one_rejection_is_enough_although_another_plugin_allowed_the_pod() -> None:
    one, two = Holder("One", Wait(60.0)), Holder("Two", Wait(60.0))
    stage = stage_with(one, two)
    stage.create(A)
    stage.run(until=1.0)
    one.allow()
    two.reject("changed its mind")
    stage.run(until=2.0)
    assert stage.message("a") == "0/1 nodes are available: 1 changed its mind."
    assert stage.used(CPU, "n1") == 0


@pytest.mark.parametrize(
    ("seconds", "words"), [(10.0, "10s"), (0.15, "150ms"), (90.0, "1m30s"), (3600.0, "15m0s")]
)
def test_a_pod_that_waits_for_too_long_is_rejected_by_the_plugin_that_held_it(
    seconds: float, words: str
) -> None:
    stage = stage_with(Holder("Holds", Wait(seconds)))
    stage.create(A)
    stage.run()
    assert stage.message("a") == (
        f"0/1 nodes are available: 1 rejected due to timeout after waiting {words} at plugin Holds."
    )


def test_the_shortest_timeout_of_several_plugins_counts() -> None:
    stage = stage_with(Holder("Patient", Wait(60.0)), Holder("Hasty", Wait(5.0)))
    stage.create(A)
    stage.run()
    assert "after waiting 5s at plugin Hasty" in stage.message("a")
    assert stage.now == 5.0


def test_a_pod_rejected_while_waiting_is_unreserved_and_pods_that_found_no_room_are_tried() -> None:
    calls: list[str] = []
    holder = Holder("Holds", Wait(10.0), only="a")
    stage = stage_with(Ledger("One", calls), Ledger("Two", calls), holder)
    stage.create(A)
    stage.create(B, at=1.0)
    stage.run()
    assert calls[:4] == ["One reserves n1", "Two reserves n1", "Two unreserves n1", "One unreserves n1"]
    assert stage.node_of("b") == "n1"
    assert stage.now == 10.0
    assert stage.pod("a").status.nominated_node_name == ""


def test_a_pod_rejected_while_waiting_is_not_woken_by_the_room_it_gave_up_itself() -> None:
    class WakesOnRoom(Holder):
        wakes_on = (WakeOn(Resource.ASSIGNED_POD, Action.DELETE),)

    stage = stage_with(WakesOnRoom("Holds", Wait(10.0)))
    stage.create(A)
    stage.run(until=15.0)
    assert stage.place("a") == "unschedulable"


def test_a_pod_deleted_while_it_waits_gives_its_room_back() -> None:
    calls: list[str] = []
    holder = Holder("Holds", Wait(60.0), only="a")
    stage = stage_with(Ledger("One", calls), holder)
    stage.create(A)
    stage.create(B, at=1.0)
    stage.delete(A, at=2.0)
    stage.run(until=3.0)
    assert stage.node_of("b") == "n1"
    assert not holder.handle.waiting_pods()
    assert calls[:2] == ["One reserves n1", "One unreserves n1"]


def test_a_pod_marked_for_deletion_while_it_waits_gives_its_room_back() -> None:
    calls: list[str] = []
    holder = Holder("Holds", Wait(60.0), only="a")
    stage = stage_with(Ledger("One", calls), holder)
    stage.create(A)
    stage.create(B, at=1.0)
    stage.update(A.deleting(), at=2.0)
    stage.run(until=3.0)
    assert (stage.node_of("a"), stage.node_of("b")) == ("", "n1")
    assert not holder.handle.waiting_pods()
    assert calls[:2] == ["One reserves n1", "One unreserves n1"]
    assert stage.place("a") == "nowhere"


def test_allowing_or_rejecting_a_pod_that_does_not_wait_does_nothing() -> None:
    holder = Holder("Holds", None)
    stage = stage_with(holder)
    stage.create(A)
    stage.run()
    holder.allow()
    holder.reject("too late")
    holder.allow("no-such-pod")
    stage.run()
    assert stage.node_of("a") == "n1"
    assert [reason for reason, _ in stage.told("a")] == ["Scheduled"]


def test_a_plugin_may_allow_other_pods_while_it_is_called_for_one() -> None:
    class InPairs(Holder):
        def permit(self, state: CycleState, pod: PodInfo, node: str) -> Status | Wait | None:
            others = list(self.handle.waiting_pods())
            for uid in others:
                self.allow(uid)
            return None if others else Wait(60.0)

    stage = stage_with(InPairs("InPairs", None), cpu="4")
    stage.create(A)
    stage.create(B, at=7.0)
    stage.run()
    assert stage.bindings == {"default/a": "n1", "default/b": "n1"}
    assert stage.now == 7.0


def test_pending_from_permit_makes_the_pod_wait_for_an_event_of_the_plugin() -> None:
    stage = stage_with(Holder("Holds", Status.pending("quota is used up")))
    stage.create(A)
    stage.run()
    assert stage.message("a") == "0/1 nodes are available: 1 quota is used up."
    entry = stage.engine.queue.find(stage.pod("a"))
    assert entry is not None
    assert entry.pending == {"Holds"}


def pods_of(*names: str) -> list[PodBuilder]:
    return [pod(name).requests(cpu="1") for name in names]


def test_each_of_many_waiting_pods_has_its_own_timeout() -> None:
    holder = Holder("Holds", Wait(30.0))
    stage = stage_with(holder, cpu="4")
    stage.create(*pods_of("p0", "p1", "p2"))
    stage.run(until=1.0)
    uids = list(holder.handle.waiting_pods())
    assert len(uids) == 3
    holder.allow(uids[0])
    holder.reject("no", uids[1])
    stage.run()
    assert len(stage.bindings) == 1
    messages = sorted(stage.message(name) for name in ("p0", "p1", "p2") if not stage.node_of(name))
    assert messages[0].endswith(": 1 no.")
    assert "rejected due to timeout" in messages[1]
