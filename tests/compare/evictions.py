"""The evictions for a pod, as the API server shows them."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from tests.compare.api import Document
from tests.compare.two_schedulers import Arena, Side

from longshore.api import Pod
from longshore.api.meta import ApiObject
from longshore.testing import PodBuilder

# Enough time for any further evictions.
_A_WHILE = 0.2


@dataclass(frozen=True)
class Eviction:
    """An evicted pod, with its condition and the event about it."""

    name: str
    grace: int
    condition: tuple[str, str, str]
    event: tuple[str, str, str, str]


@dataclass(frozen=True)
class Outcome:
    nominated: str
    reason: str
    message: str
    evictions: tuple[Eviction, ...]

    @property
    def victims(self) -> set[str]:
        return {eviction.name for eviction in self.evictions}


def preempted(arena: Arena, asked: PodBuilder, side: Side) -> Outcome:
    """Let the scheduler try the pod, and return the evictions. The pod stays."""
    arena.add(asked.scheduler(f"{side}-default"))
    arena.until(lambda: _decided(arena.api.get(asked)), "the pod is placed or refused")
    found = arena.api.get(asked)
    refusal = _refusal(found)
    if refusal is None:
        return Outcome(found["spec"]["nodeName"], "", "", ())
    nominated = found["status"].get("nominatedNodeName", "")
    if nominated:
        arena.until(lambda: _leaving(arena), "a pod is being deleted")
    time.sleep(_A_WHILE)
    uid = found["metadata"]["uid"]
    evictions = tuple(_eviction(arena, victim, side, uid) for victim in _leaving(arena))
    return Outcome(nominated, refusal["reason"], refusal["message"], evictions)


def outcomes(arena: Arena, things: Iterable[ApiObject], asked: PodBuilder) -> tuple[Outcome, Outcome]:
    """Return the results of both schedulers on the same cluster. Victims of the first are created again."""
    arena.become(*things)
    theirs = preempted(arena, asked, "kube")
    arena.remove(asked)
    arena.bring_back(theirs.victims)
    return theirs, preempted(arena, asked, "longshore")


def _decided(pod: Document) -> bool:
    return "nodeName" in pod["spec"] or _refusal(pod) is not None


def _refusal(pod: Document) -> Document | None:
    for condition in pod["status"].get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            found: Document = condition
            return found
    return None


def _leaving(arena: Arena) -> list[Document]:
    return [pod for pod in arena.api.listed(Pod) if "deletionTimestamp" in pod["metadata"]]


def _eviction(arena: Arena, victim: Document, side: Side, preemptor: str) -> Eviction:
    metadata = victim["metadata"]
    events = arena.until(lambda: arena.api.events(metadata["uid"]), "the eviction has an event")
    [text] = [event for event in events if event["reason"] == "Preempted"]
    [condition] = [c for c in victim["status"]["conditions"] if c["type"] == "DisruptionTarget"]
    note = text["message"].replace(preemptor, "THE-PREEMPTOR")
    # The message contains the name of the scheduler.
    message = condition["message"].replace(f"{side}-", "")
    return Eviction(
        metadata["name"],
        metadata["deletionGracePeriodSeconds"],
        (condition["status"], condition["reason"], message),
        (text["type"], text["action"], note, text.get("related", {}).get("name", "")),
    )
