"""Answers and watches overtake each other; pods are deleted, recreated and changed while being bound."""

import pytest

from longshore.api import Change, Pod
from longshore.cluster import CPU
from longshore.engine import (
    Bind,
    Conflict,
    Done,
    Engine,
    Failed,
    Gone,
    Outcome,
    RecordEvent,
    Request,
    SetCondition,
    Succeeded,
)
from longshore.testing import node, pod

N1 = node("n1").allocatable(cpu="1")
WEB = pod("web").requests(cpu="1")
OTHER = pod("other").requests(cpu="1")


class Scene:
    """An engine with one node that has room for one pod; `web` is being bound to it."""

    def __init__(self) -> None:
        self.engine = Engine()
        self.engine.receive(Change(None, N1), now=0.0)
        self.seen(None, WEB, now=0.0)
        (request,) = self.engine.advance(now=0.0)
        assert isinstance(request.effect, Bind)
        self.bind = request

    def seen(self, old: Pod | None, new: Pod | None, *, now: float) -> None:
        self.engine.receive(Change(old, new), now=now)

    def answered(self, outcome: Outcome, *, now: float, request: Request | None = None) -> None:
        self.engine.receive(Done((request or self.bind).id, outcome), now=now)

    def advance(self, *, now: float) -> list[str]:
        """Return in short what the engine asks for."""
        short = []
        for request in self.engine.advance(now=now):
            match request.effect:
                case Bind(name=name, uid=uid):
                    short.append(f"bind {name}" if uid.startswith("uid-") else f"bind {name} {uid}")
                    self.bind = request
                case RecordEvent(name=name, reason=reason):
                    short.append(f"{reason} {name}")
                case SetCondition(name=name, condition=condition):
                    short.append(f"{condition.reason} {name}")
        return short

    @property
    def used_cpu(self) -> int:
        return int(self.engine.cluster.requested[CPU].sum())


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_the_answer_comes_before_the_watch(scene: Scene) -> None:
    scene.answered(Succeeded(), now=0.1)
    assert scene.advance(now=0.1) == ["Scheduled web"]
    scene.seen(WEB, WEB.on("n1"), now=0.2)
    assert scene.advance(now=0.2) == []
    assert scene.used_cpu == 1000


def test_the_watch_comes_before_the_answer(scene: Scene) -> None:
    scene.seen(WEB, WEB.on("n1"), now=0.1)
    assert scene.advance(now=0.1) == []
    scene.answered(Succeeded(), now=0.2)
    assert scene.advance(now=0.2) == ["Scheduled web"]
    assert scene.used_cpu == 1000


def test_a_change_from_before_the_bind_does_not_schedule_the_pod_again(scene: Scene) -> None:
    scene.answered(Succeeded(), now=0.1)
    scene.advance(now=0.1)
    scene.seen(WEB, WEB.labels(late="yes"), now=0.2)
    assert scene.advance(now=0.2) == []
    assert scene.used_cpu == 1000


def test_a_failed_bind_is_reported_and_repeated_after_backoff(scene: Scene) -> None:
    scene.answered(Failed("connection reset"), now=0.5)
    requests = scene.engine.advance(now=0.5)
    notes = [r.effect.note for r in requests if isinstance(r.effect, RecordEvent)]
    assert notes == ['running Bind plugin "DefaultBinder": connection reset']
    reasons = [r.effect.condition.reason for r in requests if isinstance(r.effect, SetCondition)]
    assert reasons == ["SchedulerError"]
    # Backoff lasts until the end of the second in which its time is over.
    assert scene.engine.deadline == 2.0
    assert scene.advance(now=1.9) == []
    assert scene.advance(now=2.0) == ["bind web"]
    assert scene.used_cpu == 1000


def test_backoff_grows_with_every_failure(scene: Scene) -> None:
    now, waits = 0.0, []
    for _ in range(6):
        scene.answered(Failed("no"), now=now)
        scene.engine.advance(now=now)
        deadline = scene.engine.deadline
        assert deadline is not None
        waits.append(deadline - now)
        now = deadline
        scene.advance(now=now)
    assert waits == [1 + 1, 2 + 1, 4 + 1, 8 + 1, 10 + 1, 10 + 1]


def test_a_failed_bind_may_have_landed_so_its_room_stays_taken_for_a_while(scene: Scene) -> None:
    scene.answered(Failed("answer lost"), now=0.0)
    scene.seen(None, OTHER, now=0.5)
    assert scene.advance(now=0.5) == [
        "FailedScheduling web",
        "SchedulerError web",
        "FailedScheduling other",
        "Unschedulable other",
    ]
    scene.seen(WEB, WEB.on("n1"), now=0.9)
    assert scene.advance(now=5.0) == []
    assert scene.used_cpu == 1000


def test_the_room_of_a_failed_bind_is_free_when_the_pod_is_deleted(scene: Scene) -> None:
    scene.answered(Failed("no"), now=0.0)
    scene.seen(WEB, None, now=0.5)
    scene.seen(None, OTHER, now=0.5)
    assert "bind other" in scene.advance(now=0.5)


@pytest.mark.parametrize("held_back", [WEB.deleting(), WEB.scheduler("other"), WEB.phase("Failed")])
def test_the_room_of_a_failed_bind_is_free_when_the_pod_is_no_longer_ours(
    scene: Scene, held_back: Pod
) -> None:
    scene.answered(Failed("no"), now=0.0)
    scene.seen(WEB, held_back, now=0.5)
    assert scene.used_cpu == 0
    scene.advance(now=0.5)
    assert scene.engine.deadline is None


def test_a_failure_answered_after_the_watch_showed_the_bind_is_a_success(scene: Scene) -> None:
    scene.seen(WEB, WEB.on("n1"), now=0.1)
    scene.answered(Failed("timeout"), now=30.0)
    assert scene.advance(now=30.0) == ["Scheduled web"]
    assert scene.engine.deadline is None
    assert scene.used_cpu == 1000


def test_a_conflict_leaves_the_pod_to_the_scheduler_that_bound_it(scene: Scene) -> None:
    scene.answered(Conflict("already assigned"), now=0.1)
    assert scene.used_cpu == 0
    scene.seen(WEB, WEB.on("n2"), now=0.2)
    assert scene.advance(now=100.0) == []
    assert scene.engine.cluster.node_of(WEB) == "n2"


def test_a_conflict_after_the_watch_showed_the_other_node(scene: Scene) -> None:
    scene.seen(WEB, WEB.on("n2"), now=0.1)
    scene.answered(Conflict("already assigned"), now=0.2)
    assert scene.advance(now=100.0) == []
    assert scene.engine.cluster.node_of(WEB) == "n2"
    assert scene.used_cpu == 1000


def test_a_conflict_that_the_watch_never_explains_does_not_strand_the_pod(scene: Scene) -> None:
    scene.answered(Conflict("?"), now=0.0)
    assert scene.advance(now=0.5) == []
    assert scene.engine.deadline == 2.0
    assert scene.advance(now=2.0) == ["bind web"]


def test_a_pod_that_is_gone_is_dropped_and_its_room_is_free(scene: Scene) -> None:
    scene.answered(Gone("not found"), now=0.1)
    assert scene.advance(now=0.1) == []
    assert scene.engine.deadline is None
    assert scene.used_cpu == 0


@pytest.mark.parametrize("outcome", [Conflict(), Gone()])
def test_room_given_up_wakes_pods_that_found_none(scene: Scene, outcome: Outcome) -> None:
    scene.seen(None, OTHER, now=0.0)
    assert scene.advance(now=0.0) == ["FailedScheduling other", "Unschedulable other"]
    scene.answered(outcome, now=5.0)
    assert scene.advance(now=5.0) == ["bind other"]


def test_room_held_for_a_failed_bind_wakes_others_when_it_is_given_up(scene: Scene) -> None:
    scene.seen(None, OTHER.priority(1).never_preempting(), now=0.0)
    scene.advance(now=0.0)
    scene.answered(Failed("no"), now=5.0)
    scene.advance(now=5.0)
    # The pod whose bind failed is tried first. Then it is deleted, and the other pod gets the room.
    assert scene.advance(now=7.0)[0] == "bind web"
    scene.answered(Gone(), now=8.0)
    assert scene.advance(now=60.0) == ["bind other"]


@pytest.mark.parametrize("outcome", [Succeeded(), Failed("no"), Conflict(), Gone()])
def test_a_pod_deleted_while_it_is_being_bound(scene: Scene, outcome: Outcome) -> None:
    scene.seen(WEB, None, now=0.1)
    assert scene.used_cpu == 0
    scene.answered(outcome, now=0.2)
    assert "bind web" not in scene.advance(now=100.0)
    assert scene.engine.deadline is None
    assert scene.used_cpu == 0


@pytest.mark.parametrize("outcome", [Succeeded(), Failed("no"), Conflict(), Gone()])
@pytest.mark.parametrize("told", ["deletion told", "deletion missed", "one change"])
def test_a_pod_recreated_while_its_predecessor_is_being_bound(
    scene: Scene, outcome: Outcome, told: str
) -> None:
    second = WEB.uid("second")
    if told == "deletion told":
        scene.seen(WEB, None, now=0.1)
    scene.seen(WEB if told == "one change" else None, second, now=0.1)
    first_bind = scene.bind
    assert scene.advance(now=0.1) == ["bind web second"]
    scene.answered(outcome, now=0.2, request=first_bind)
    assert "bind web second" not in scene.advance(now=100.0)
    assert scene.used_cpu == 1000
    scene.answered(Succeeded(), now=100.0)
    assert scene.advance(now=100.0) == ["Scheduled web"]


def test_a_gated_successor_ends_its_predecessor(scene: Scene) -> None:
    scene.answered(Failed("no"), now=0.0)
    scene.seen(None, WEB.uid("second").gates("wait"), now=0.1)
    assert "bind web" not in scene.advance(now=100.0)
    assert scene.engine.deadline is None
    assert scene.used_cpu == 0


def test_a_pod_marked_for_deletion_while_it_is_being_bound_is_not_tried_again(scene: Scene) -> None:
    scene.seen(WEB, WEB.deleting(), now=0.1)
    assert scene.used_cpu == 0
    scene.answered(Conflict("is being deleted"), now=0.2)
    assert scene.advance(now=100.0) == []
    assert scene.used_cpu == 0


def test_a_pod_passed_to_another_scheduler_and_back_during_its_bind_is_bound_once(scene: Scene) -> None:
    scene.seen(WEB, WEB.scheduler("other"), now=0.1)
    scene.seen(WEB.scheduler("other"), WEB, now=0.2)
    assert scene.advance(now=0.3) == []
    scene.answered(Failed("no"), now=0.4)
    assert "bind web" in scene.advance(now=0.4) + scene.advance(now=10.0)


def test_a_node_deleted_while_a_pod_is_being_bound_to_it(scene: Scene) -> None:
    scene.engine.receive(Change(N1, None), now=0.1)
    scene.answered(Succeeded(), now=0.2)
    scene.seen(WEB, WEB.on("n1"), now=0.3)
    scene.engine.receive(Change(None, N1), now=1.0)
    scene.seen(None, OTHER, now=1.0)
    assert "bind other" not in scene.advance(now=1.0)
    assert scene.used_cpu == 1000


def test_a_bound_pod_that_turns_out_unbound_is_scheduled_again(scene: Scene) -> None:
    scene.answered(Succeeded(), now=0.1)
    scene.advance(now=0.1)
    scene.seen(WEB, WEB.on("n1"), now=0.2)
    scene.seen(WEB.on("n1"), WEB, now=0.3)
    assert scene.advance(now=0.3) == ["bind web"]
    assert scene.used_cpu == 1000


def test_the_newest_version_of_a_pod_is_the_one_tried_again(scene: Scene) -> None:
    scene.seen(WEB, WEB.requests(cpu="500m"), now=0.1)
    scene.answered(Failed("no"), now=0.2)
    scene.advance(now=0.2)
    scene.advance(now=10.0)
    assert scene.used_cpu == 500
