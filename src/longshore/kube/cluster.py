"""The real cluster: watches become mirrors of its resources, effects become requests to its API server."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog

from longshore.api import Change, Pod
from longshore.api.meta import ApiObject
from longshore.framework.effects import CallPlanner, Operation, Outcome, RecordEvent, Run, Tell
from longshore.framework.reads import NOTHING, Reads
from longshore.framework.seam import Cancel, ignore
from longshore.kube.client import Client
from longshore.kube.custom_resources import CustomMirror
from longshore.kube.kinds import KINDS
from longshore.kube.operations import Operations, PodReport
from longshore.kube.recorder import EventRecorder
from longshore.kube.reflector import Reflector
from longshore.kube.resources import Resource, pods_with

log = structlog.get_logger()

# Decisions wait while this many requests are under way: the API server is slower than the scheduler.
MOST_REQUESTS = 256
# They also wait while an event has waited for this many seconds: people should not have to.
MOST_EVENT_DELAY = 5.0
# And while this much work of plugins and planners is under way.
MOST_RUNS = 4096
_RUNS = (Run, CallPlanner)


@dataclass(frozen=True, slots=True)
class Mirror:
    """A watched resource as it is now."""

    name: str
    is_synced: bool
    size: int
    lists: int


class KubeCluster:
    """`Cluster` on an API server. Without `operations` it can only be watched: effects are ignored.

    `reads`: the annotations and conditions of pods to keep. `unable`: reports that we lack the right to make;
    they are dropped. `on_room` is called when `has_room` becomes true again.
    """

    def __init__(
        self,
        client: Client,
        operations: Operations | None = None,
        recorder: EventRecorder | None = None,
        *,
        reads: Reads = NOTHING,
        unable: Collection[type[Tell]] = (),
        most_requests: int = MOST_REQUESTS,
    ) -> None:
        self.on_room: Callable[[], None] = ignore
        self._client = client
        self._reads = reads
        self._operations = operations
        self._recorder = recorder
        self._unable = tuple(unable)
        self._most_requests = most_requests
        self._requests: set[asyncio.Task[None]] = set()
        self._runs: set[asyncio.Task[None]] = set()
        self._mirrors: dict[asyncio.Task[None], Reflector[Any] | CustomMirror] = {}
        self._broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._closed = False

    @property
    def may_write(self) -> bool:
        """Whether this process holds the lease, if it needs one. Asked again before each operation."""
        return self._operations is not None and self._operations.may_write()

    @property
    def has_room(self) -> bool:
        """Whether more operations may begin; if not, decisions wait."""
        return (
            len(self._requests) < self._most_requests
            and len(self._runs) < MOST_RUNS
            and (self._recorder is None or self._recorder.delay < MOST_EVENT_DELAY)
        )

    @property
    def requests_in_flight(self) -> int:
        """Operations and reports under way, without the work of plugins and planners."""
        return len(self._requests)

    @property
    def mirrors(self) -> Iterator[Mirror]:
        """The state of every watched resource that exists, for any thread."""
        for mirror in list(self._mirrors.values()):
            if not (isinstance(mirror, CustomMirror) and mirror.absent):
                reflector = _reflector(mirror)
                yield Mirror(
                    str(reflector.resource), reflector.settled, len(reflector.store), reflector.lists
                )

    def watch(
        self,
        kinds: Collection[type[ApiObject]],
        on_change: Callable[[Change[Any]], None],
        on_synced: Callable[[], None] = ignore,
    ) -> Cancel:
        if self._closed:
            return ignore
        mirrors: list[Reflector[Any] | CustomMirror] = []
        waiting = True

        def synced() -> None:
            nonlocal waiting
            if waiting and not self._closed and all(mirror.settled for mirror in mirrors):
                waiting = False
                on_synced()

        def cancel() -> None:
            nonlocal waiting
            waiting = False
            _end(mirrors, tasks)

        mirrors += [self._mirror(kind, on_change, synced) for kind in kinds]
        tasks = [asyncio.create_task(mirror.run()) for mirror in mirrors]
        self._mirrors.update(zip(tasks, mirrors, strict=True))
        for task in tasks:
            task.add_done_callback(self._watch_ended)
        if not mirrors:
            asyncio.get_running_loop().call_soon(synced)
        return cancel

    def perform(self, operation: Operation, on_outcome: Callable[[Outcome], None]) -> Cancel:
        return self._begin(operation, on_outcome)

    def report(self, tell: Tell) -> None:
        if isinstance(tell, self._unable):
            return
        if not isinstance(tell, RecordEvent):
            self._begin(tell, None)
        elif self._recorder is not None and not self._closed:
            self._recorder.record(tell)

    def close(self) -> None:
        self._closed = True
        _end(self._mirrors.values(), self._mirrors)
        _cancel_all([*self._requests, *self._runs])

    async def broken(self) -> None:
        """Wait until a watch fails because of a bug, and raise the error."""
        await self._broken

    async def drain(self, *, within: float) -> None:
        """Let requests under way end, then the events about them; cancel the work of plugins and planners."""
        _cancel_all(self._runs)
        ending = [*self._runs, *(watch for watch in self._mirrors if watch.cancelling())]
        await asyncio.gather(*ending, return_exceptions=True)
        try:
            async with asyncio.timeout(within):
                await asyncio.gather(*self._requests, return_exceptions=True)
                if self._recorder is not None:
                    await self._recorder.flush()
        except TimeoutError:
            log.warning("stopped with writes under way", writes=len(self._requests))

    @property
    def bound(self) -> int:
        """The number of pods that were bound."""
        return 0 if self._operations is None else self._operations.bound

    def _mirror(
        self,
        kind: type[ApiObject],
        on_change: Callable[[Change[Any]], None],
        on_synced: Callable[[], None],
    ) -> Reflector[Any] | CustomMirror:
        known = KINDS[kind]
        reflector = Reflector(
            self._client,
            self._resource(kind),
            on_change,
            on_synced=on_synced,
            field_selector=known.field_selector,
        )
        return CustomMirror(self._client, reflector) if known.optional else reflector

    def _resource(self, kind: type[ApiObject]) -> Resource[Any]:
        return pods_with(self._reads) if kind is Pod else KINDS[kind].resource

    def _watch_ended(self, task: asyncio.Task[None]) -> None:
        del self._mirrors[task]
        if not task.cancelled() and (error := task.exception()) is not None and not self._broken.done():
            self._broken.set_exception(error)

    def _begin(self, effect: Operation | PodReport, on_outcome: Callable[[Outcome], None] | None) -> Cancel:
        if self._closed or self._operations is None:
            return ignore
        tasks = self._runs if isinstance(effect, _RUNS) else self._requests
        task = asyncio.create_task(self._answer(self._operations, effect, on_outcome))
        tasks.add(task)
        task.add_done_callback(partial(self._ended, tasks))
        return task.cancel

    async def _answer(
        self,
        operations: Operations,
        effect: Operation | PodReport,
        on_outcome: Callable[[Outcome], None] | None,
    ) -> None:
        outcome = await operations.perform(effect)
        if on_outcome is not None:
            on_outcome(outcome)

    def _ended(self, tasks: set[asyncio.Task[None]], task: asyncio.Task[None]) -> None:
        had_room = self.has_room
        tasks.discard(task)
        if not had_room and self.has_room:
            self.on_room()


def _reflector(mirror: Reflector[Any] | CustomMirror) -> Reflector[Any]:
    return mirror.reflector if isinstance(mirror, CustomMirror) else mirror


def _end(mirrors: Iterable[Reflector[Any] | CustomMirror], tasks: Iterable[asyncio.Task[None]]) -> None:
    for mirror in mirrors:
        _reflector(mirror).mute()
    _cancel_all(tasks)


def _cancel_all(tasks: Iterable[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
