"""How long a pod sits out after a failed attempt, as heard by an extender that both schedulers ask.

kube-scheduler lets pods out of backoff once a second, on the second: when the one is over in which their time
ends. So does Longshore, by the seconds of another clock. A pod is first tried at any time, and comes back up
to a second later than its backoff says; from then on it is tried on the second, and comes back a whole second
later.
"""

import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace
from tests.compare.sides import KubeScheduler, Longshore, Profiles
from tests.compare.two_schedulers import SIDES, Arena
from tests.live.webhook import Said, Webhook

from longshore.dev.fixtures import Repetitions
from longshore.testing import PodBuilder, node, pod

# In seconds; all further ones are of 10.
_BACKOFFS = (1, 2, 4, 8, 10)
_WINDOW = 1.0
# Until a pod that was let out is heard of, on a busy machine. Backoffs differ by a second at least: with less
# than half of that to either side none is taken for another.
_LATE = 0.45
# How long the extender thinks about a pod that is to keep a scheduler busy.
_SLOW = 0.2

_PROFILES: Profiles = {"asking": {}}
_NODE = node("n1").allocatable(cpu="64", memory="64Gi", pods="500")


class Listener(Webhook):
    """Notes when it is asked about a pod; thinks for a while about those with the label `slow`."""

    def __init__(self) -> None:
        super().__init__(lambda _said: None)
        self.times: dict[str, list[float]] = {}

    def answer(self, verb: str, said: Said) -> Any:
        named = said["Pod"]["metadata"]
        self.times.setdefault(named["name"], []).append(time.monotonic())
        time.sleep(float(named.get("labels", {}).get("slow", 0)))
        return super().answer(verb, said)

    def until_tried(self, arena: Arena, name: str, *, times: int, within: float = 20.0) -> None:
        """By both schedulers."""
        pods = [f"{name}-{side}" for side in SIDES]
        arena.until(
            lambda: all(len(self.times.get(each, ())) >= times for each in pods),
            f"{name} is tried {times} times by both",
            within=within,
        )

    def gaps(self, name: str) -> tuple[list[float], list[float]]:
        """Seconds from one attempt to the next, kube-scheduler's and ours."""
        theirs, ours = ([b - a for a, b in pairwise(self.times[f"{name}-{side}"])] for side in SIDES)
        return theirs, ours


@pytest.fixture(scope="module")
def listener(arena: Arena, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listener]:
    """Asked by two more schedulers, which know the only node."""
    folder = tmp_path_factory.mktemp("backoff")
    # Those of the arena are up then: the kubeconfigs that they have read are about to be written again.
    arena.become(_NODE)
    listener = Listener()
    with listener.running():
        extenders = [{"urlPrefix": listener.url, "filterVerb": "filter", "nodeCacheCapable": True}]
        kube = KubeScheduler(arena.plane, folder, _PROFILES, extenders=extenders)
        longshore = Longshore(arena.plane, folder, _PROFILES, extenders=extenders)
        try:
            arena.add(*for_both(pod("first")))
            listener.until_tried(arena, "first", times=1)
            yield listener
        finally:
            longshore.stop()
            kube.stop()


def for_both(asked: PodBuilder) -> list[PodBuilder]:
    """The same pod for each of the two schedulers."""
    twins = [(asked.metadata, side) for side in SIDES]
    return [
        replace(asked, metadata=replace(named, name=f"{named.name}-{side}")).scheduler(f"{side}-asking")
        for named, side in twins
    ]


def assert_sat_out(gaps: Sequence[float], backoffs: Sequence[int], *, late: float = _LATE) -> None:
    assert backoffs[0] < gaps[0] < backoffs[0] + _WINDOW + late
    further = [backoff + _WINDOW for backoff in backoffs[1:]]
    assert gaps[1 : len(backoffs)] == pytest.approx(further, abs=late)


def test_a_pod_that_meets_errors_is_tried_after_twice_the_time_until_it_is_ten_seconds(
    arena: Arena, listener: Listener, repetitions: Repetitions
) -> None:
    backoffs = _BACKOFFS[: repetitions(full=5, short=2)]
    failing = for_both(pod("failing").labels(broken="out-of-order"))
    arena.add(*failing)
    listener.until_tried(arena, "failing", times=1 + len(backoffs), within=60.0)
    arena.remove(*failing)
    theirs, ours = listener.gaps("failing")
    assert_sat_out(theirs, backoffs)
    assert_sat_out(ours, backoffs)
    assert ours[1 : len(backoffs)] == pytest.approx(theirs[1 : len(backoffs)], abs=_LATE)


def test_a_rejected_pod_is_tried_whenever_something_happens_if_there_is_nothing_else_to_do(
    arena: Arena, listener: Listener
) -> None:
    rejected = for_both(pod("idle").labels(only="nowhere"))
    arena.add(*rejected)
    # Whom an extender rejects is woken by anything, also by the condition that tells of it.
    listener.until_tried(arena, "idle", times=2)
    for times in range(3, 8):
        arena.api.patch(_NODE, {"metadata": {"labels": {"times": str(times)}}})
        listener.until_tried(arena, "idle", times=times)
    arena.remove(*rejected)
    theirs, ours = listener.gaps("idle")
    assert max(theirs + ours) < min(_BACKOFFS)


def test_a_rejected_pod_sits_out_its_backoff_while_other_pods_wait_for_their_turn(
    arena: Arena, listener: Listener, repetitions: Repetitions
) -> None:
    """Each of the others wakes it when it is bound, and comes after it by priority."""
    backoffs = _BACKOFFS[: repetitions(full=2, short=1)]
    # With some to spare: it is made after the others.
    seconds = 3 + sum(backoff + _WINDOW for backoff in backoffs)
    others = [for_both(pod(f"other-{n}").labels(slow=str(_SLOW))) for n in range(round(seconds / _SLOW))]
    made = [each for pair in others for each in pair]
    arena.add(*made)
    rejected = for_both(pod("busy").labels(only="nowhere").priority(100).never_preempting())
    arena.add(*rejected)
    listener.until_tried(arena, "busy", times=1 + len(backoffs))
    still_waiting = [each.metadata.name not in listener.times for each in others[-1]]
    arena.remove(*rejected, *made)
    assert all(still_waiting)
    for gaps in listener.gaps("busy"):
        # It may have to wait for the end of another pod's attempt.
        assert_sat_out(gaps, backoffs, late=_SLOW + _LATE)
