"""The backoff after a failed attempt, as an extender sees it that both schedulers call.

kube-scheduler ends backoffs once per second, at the end of the second in which their time is over. Longshore
does the same, by the seconds of another clock. The first attempt of a pod is at any time, so the second comes
up to a second after the end of the backoff. All further attempts come a whole second after it.
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

# In seconds. All further backoffs are 10 s.
_BACKOFFS = (1, 2, 4, 8, 10)
_WINDOW = 1.0
# The time from the end of a backoff to the call of the extender, on a busy machine. Backoffs differ by at
# least a second, so they can be distinguished with less than half a second on either side.
_LATE = 0.45
# How long the extender takes for a pod that keeps a scheduler busy.
_SLOW = 0.2

_PROFILES: Profiles = {"asking": {}}
_NODE = node("n1").allocatable(cpu="64", memory="64Gi", pods="500")


class Listener(Webhook):
    """An extender that records its calls for each pod. It answers slowly for pods with the label `slow`."""

    def __init__(self) -> None:
        super().__init__(lambda _said: None)
        self.times: dict[str, list[float]] = {}

    def answer(self, verb: str, said: Said) -> Any:
        named = said["Pod"]["metadata"]
        self.times.setdefault(named["name"], []).append(time.monotonic())
        time.sleep(float(named.get("labels", {}).get("slow", 0)))
        return super().answer(verb, said)

    def until_tried(self, arena: Arena, name: str, *, times: int, within: float = 20.0) -> None:
        """Wait until both schedulers have tried the pod."""
        pods = [f"{name}-{side}" for side in SIDES]
        arena.until(
            lambda: all(len(self.times.get(each, ())) >= times for each in pods),
            f"{name} is tried {times} times by both",
            within=within,
        )

    def gaps(self, name: str) -> tuple[list[float], list[float]]:
        """Return the seconds between attempts, of kube-scheduler and of Longshore."""
        theirs, ours = ([b - a for a, b in pairwise(self.times[f"{name}-{side}"])] for side in SIDES)
        return theirs, ours


@pytest.fixture(scope="module")
def listener(arena: Arena, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listener]:
    """The extender of two additional schedulers, which know the only node."""
    folder = tmp_path_factory.mktemp("backoff")
    # The schedulers of the arena have started by then. Their kubeconfigs are written again now.
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
    """Return the same pod for each of the two schedulers."""
    twins = [(asked.metadata, side) for side in SIDES]
    return [
        replace(asked, metadata=replace(named, name=f"{named.name}-{side}")).scheduler(f"{side}-asking")
        for named, side in twins
    ]


def assert_sat_out(gaps: Sequence[float], backoffs: Sequence[int], *, late: float = _LATE) -> None:
    assert backoffs[0] < gaps[0] < backoffs[0] + _WINDOW + late
    further = [backoff + _WINDOW for backoff in backoffs[1:]]
    assert gaps[1 : len(backoffs)] == pytest.approx(further, abs=late)


def test_the_backoff_after_an_error_doubles_up_to_ten_seconds(
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


def test_a_rejected_pod_is_tried_after_any_event_if_the_queue_is_empty(
    arena: Arena, listener: Listener
) -> None:
    rejected = for_both(pod("idle").labels(only="nowhere"))
    arena.add(*rejected)
    # A pod that an extender rejects is woken by any event, also by its own condition.
    listener.until_tried(arena, "idle", times=2)
    for times in range(3, 8):
        arena.api.patch(_NODE, {"metadata": {"labels": {"times": str(times)}}})
        listener.until_tried(arena, "idle", times=times)
    arena.remove(*rejected)
    theirs, ours = listener.gaps("idle")
    assert max(theirs + ours) < min(_BACKOFFS)


def test_a_rejected_pod_waits_for_its_backoff_while_other_pods_are_queued(
    arena: Arena, listener: Listener, repetitions: Repetitions
) -> None:
    """The other pods have a lower priority, and each one wakes the rejected pod when it is bound."""
    backoffs = _BACKOFFS[: repetitions(full=2, short=1)]
    # With a margin, because this pod is created after the others.
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
        # It can have to wait for the end of another pod's attempt.
        assert_sat_out(gaps, backoffs, late=_SLOW + _LATE)
