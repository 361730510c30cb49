"""Pods as those hear of them who watch how pods fare: a change of a pod is told to them a second time."""

from collections.abc import Iterator

from longshore.api import Change, Pod
from longshore.api.pod_run import PodRun
from longshore.engine import Engine, Event


def as_watched(engine: Engine, event: Event) -> Iterator[Event]:
    """The event, and what else the engine's watches tell because of it."""
    yield event
    if isinstance(event, Change) and isinstance(event.object, Pod) and PodRun in engine.watches:
        yield Change(_run(event.old), _run(event.new))


def _run(pod: Pod | None) -> PodRun | None:
    return None if pod is None else PodRun.of(pod)
