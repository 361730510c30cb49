"""The outcomes of pods: their rewards, and that nothing counts twice."""

from datetime import UTC, datetime

import pytest

from longshore.agents.reward.outcomes import Outcomes, PodOutcome, pod_type
from longshore.api import ObjectMeta
from longshore.api.pod_run import (
    ContainerRun,
    ContainerState,
    PodRun,
    PodRunSpec,
    PodRunStatus,
    RunningState,
    TerminatedState,
)

MTTF = 600.0


def at(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def up(since: float) -> ContainerState:
    return ContainerState(running=RunningState(started_at=at(since)))


def ended(when: float, *, code: int = 1) -> ContainerState:
    return ContainerState(terminated=TerminatedState(exit_code=code, finished_at=at(when)))


WAITING = ContainerState()


def container(
    state: ContainerState, last: ContainerState = WAITING, *, name: str = "main", restarts: int = 0
) -> ContainerRun:
    return ContainerRun(name=name, restart_count=restarts, state=state, last_state=last)


def run(
    phase: str, *containers: ContainerRun, uid: str = "u1", node: str = "n1", deleting: bool = False
) -> PodRun:
    meta = ObjectMeta(
        name="p1",
        namespace="default",
        uid=uid,
        labels={"app": "web"},
        creation_timestamp=at(100),
        deletion_timestamp=at(1) if deleting else None,
    )
    return PodRun(meta, PodRunSpec(node), PodRunStatus(phase, containers))


class Story:
    """Reports a pod repeatedly, and records the rewards."""

    def __init__(self) -> None:
        self.outcomes = Outcomes(long_enough=MTTF)
        self.rewards: list[float] = []

    def tell(self, pod: PodRun, *, time: float, times: int = 3) -> "Story":
        for _ in range(times):
            self._note(self.outcomes.reported(pod, found=False, time=time))
        return self

    def wait(self, *, until: float) -> "Story":
        self._note(self.outcomes.due(until))
        return self

    def _note(self, found: object) -> None:
        self.rewards += [outcome.reward for outcome in found]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"podtype": "D", "app": "web", "name": "x"}, "D"),
        ({"app": "web", "name": "x"}, "web"),
        ({"name": "x"}, "x"),
        ({"tier": "front"}, "p1"),
        ({"podtype": "", "app": "web"}, "web"),
    ],
)
def test_the_type_of_a_pod_is_its_first_type_label_or_its_name(labels: dict[str, str], expected: str) -> None:
    assert pod_type(labels, "p1") == expected


@pytest.mark.parametrize("phase", ["Failed", "Unknown"])
def test_a_failed_pod_counts_once_however_often_it_is_reported(phase: str) -> None:
    assert Story().tell(run(phase), time=200).tell(run("Failed"), time=201).rewards == [0.0]


def test_a_pending_pod_or_one_without_a_node_has_no_outcome() -> None:
    assert Story().tell(run("Pending"), time=200).tell(run("Failed", node=""), time=201).rewards == []


def test_a_completed_pod_counts_as_a_success() -> None:
    story = Story().tell(run("Running"), time=200).tell(run("Succeeded"), time=300)
    assert story.wait(until=9999).rewards == [1.0]


def test_a_pod_counts_as_a_success_after_running_for_long_enough() -> None:
    pod = run("Running", container(up(200)))
    story = Story().tell(pod, time=201)
    assert story.outcomes.deadline == 800
    assert story.wait(until=799).rewards == []
    assert story.wait(until=800).tell(pod, time=900).wait(until=9999).rewards == [1.0]
    # Its successful end does not count again.
    assert story.tell(run("Succeeded"), time=10_000).rewards == [1.0]


def test_a_pod_that_failed_before_running_for_long_enough_is_no_success() -> None:
    story = Story().tell(run("Running", container(up(200))), time=201).tell(run("Failed"), time=210)
    assert story.wait(until=9999).rewards == [0.0]


def test_the_first_error_of_a_container_earns_half_and_one_soon_after_it_nothing() -> None:
    story = Story()
    story.tell(run("Running", container(ended(300))), time=301)
    story.tell(run("Running", container(WAITING, ended(300))), time=310)
    story.tell(run("Running", container(up(320), ended(300), restarts=1)), time=320)
    assert story.rewards == [0.5]
    # 599 seconds after the first one.
    story.tell(run("Running", container(ended(899), ended(300), restarts=1)), time=900)
    assert story.rewards == [0.5, 0.0]


def test_an_error_long_after_the_one_before_earns_half() -> None:
    story = Story().tell(run("Running", container(ended(300))), time=301)
    story.tell(run("Running", container(ended(901), ended(300), restarts=1)), time=902)
    assert story.rewards == [0.5, 0.5]


def test_missed_errors_count_by_the_status_of_the_last_run() -> None:
    story = Story().tell(run("Running", container(WAITING, ended(300))), time=301)
    story.tell(run("Running", container(up(420), ended(400), restarts=2)), time=420)
    assert story.rewards == [0.5, 0.0]


def test_two_ends_in_the_first_status_count_twice() -> None:
    story = Story().tell(run("Running", container(ended(400), ended(300), restarts=1)), time=401)
    assert story.rewards == [0.5, 0.0]


def test_a_container_that_ends_without_an_error_has_no_outcome() -> None:
    done = container(ended(300, code=0), name="helper")
    assert Story().tell(run("Running", container(up(200)), done), time=301).rewards == []


def test_a_container_that_stays_up_after_an_error_recovers() -> None:
    story = Story().tell(run("Running", container(ended(300))), time=301)
    again = run("Running", container(up(310), ended(300), restarts=1))
    assert story.tell(again, time=310).wait(until=910).rewards == [0.5, 1.0]


def test_a_pod_is_up_from_the_start_of_its_last_container() -> None:
    both = run("Running", container(up(200)), container(up(500), name="late"))
    assert Story().tell(both, time=501).wait(until=1099).rewards == []
    assert Story().tell(both, time=501).wait(until=1100).rewards == [1.0]


def test_ends_without_a_time_count_by_the_number_of_the_run() -> None:
    def crashed(restarts: int) -> PodRun:
        state = ContainerState(terminated=TerminatedState(exit_code=1))
        return run("Running", container(state, restarts=restarts))

    assert Story().tell(crashed(0), time=300).tell(crashed(1), time=301).rewards == [0.5, 0.0]


def test_the_end_of_a_pod_that_is_being_deleted_has_no_outcome() -> None:
    story = Story().tell(run("Running", container(up(200))), time=201)
    story.tell(run("Running", container(ended(300)), deleting=True), time=300)
    assert story.tell(run("Failed", deleting=True), time=301).wait(until=9999).rewards == []


def test_a_pod_that_is_gone_is_forgotten() -> None:
    story = Story().tell(run("Running", container(up(200))), time=201)
    story.outcomes.gone(run("Running"))
    assert story.wait(until=9999).rewards == []


def test_times_of_a_node_whose_clock_is_ahead_are_ignored() -> None:
    """Otherwise the outcome would be newer than all stored ones, and count again after each restart."""
    outcomes = Outcomes(long_enough=MTTF)
    failed = run("Failed", container(ended(90_000)))
    assert list(outcomes.reported(failed, found=True, time=5000)) == [PodOutcome("web", "n1", 0.0, 100)]
    erring = run("Running", container(up(90_000), ended(80_000)), uid="u2")
    assert list(outcomes.reported(erring, found=False, time=5000)) == [PodOutcome("web", "n1", 0.5, 5000)]
    assert list(outcomes.reported(erring, found=False, time=5001)) == []
    assert outcomes.deadline == 5000 + MTTF


def test_the_outcome_of_an_existing_pod_has_the_time_of_its_containers_or_creation() -> None:
    outcomes = Outcomes(long_enough=MTTF)
    first = run("Failed", container(ended(300)))
    assert list(outcomes.reported(first, found=True, time=5000)) == [PodOutcome("web", "n1", 0.0, 300)]
    second = run("Failed", uid="u2")
    assert list(outcomes.reported(second, found=True, time=5000)) == [PodOutcome("web", "n1", 0.0, 100)]
    third = run("Failed", uid="u3")
    assert list(outcomes.reported(third, found=False, time=5000)) == [PodOutcome("web", "n1", 0.0, 5000)]
