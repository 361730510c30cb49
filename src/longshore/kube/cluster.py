"""Performs what the engine asks for, and tells how it ended."""

import asyncio
from collections.abc import Callable, Collection, Coroutine
from functools import partial
from typing import Any

import structlog

from longshore.engine import Bind, Instruction, RecordEvent, Request, Run
from longshore.engine.events import Answered, Done, Failed, Outcome, Succeeded
from longshore.errors import UserError
from longshore.framework.effects import (
    CallPlanner,
    CallWebhook,
    Effect,
    GetObject,
)
from longshore.kube.recorder import EventRecorder, Happening
from longshore.kube.writer import Writer
from longshore.kube.planner_calls import PlannerCalls, PlannerFailed
from longshore.kube.webhook_calls import WebhookCalls
from longshore.kube.operations import Write, read, write

log = structlog.get_logger()

# Decisions wait when this many writes are under way: the API server is the slower of the two.
MAX_IN_FLIGHT = 256
# They wait as well when an event has waited for so many seconds: people should not have to.
MAX_EVENT_DELAY = 5.0
# And when plugins have this much on their hands.
MAX_RUNNING = 4096
# What an `async def` plugin may take: as long as kube-scheduler waits for volumes by default.
_RUN_SECONDS = 600.0
_NOT_LEADING = Failed("this scheduler no longer holds the lease")


class Performer:
    """Turns requests into deeds; one that the engine waits for is answered by exactly one `Done`."""

    def __init__(
        self,
        writer: Writer,
        recorder: EventRecorder,
        webhooks: WebhookCalls,
        *,
        on_done: Callable[[Done], None],
        on_room: Callable[[], None] = lambda: None,
        on_write: Callable[[Write, Outcome], None] | None = None,
        may_write: Callable[[], bool] = lambda: True,
        unable: Collection[type[Effect]] = (),
        planners: PlannerCalls | None = None,
    ) -> None:
        self.bound = 0
        self._writer = writer
        self._recorder = recorder
        self._webhooks = webhooks
        self._planners = planners or PlannerCalls()
        self._on_done = on_done
        # Called when there is room again after there was none.
        self._on_room = on_room
        # Told of every write that has ended; the log if there is nobody else.
        self._on_write = on_write or log_write
        self._may_write = may_write
        # What we lack the right to do, and can do without.
        self._unable = tuple(unable)
        self._writes: set[asyncio.Task[None]] = set()
        self._runs: set[asyncio.Task[None]] = set()
        # How many effects are under way that the engine waits for.
        self.answers_due = 0

    @property
    def has_room(self) -> bool:
        return (
            len(self._writes) < MAX_IN_FLIGHT
            and len(self._runs) < MAX_RUNNING
            and self._recorder.delay < MAX_EVENT_DELAY
        )

    @property
    def writes_in_flight(self) -> int:
        return len(self._writes)

    @property
    def is_writing(self) -> bool:
        return bool(self._writes)

    def perform(self, request: Instruction) -> None:
        """Begin, and return at once."""
        effect = request.effect
        if isinstance(effect, self._unable):
            return
        if isinstance(effect, RecordEvent):
            self._recorder.record(_happening(effect))
        elif isinstance(effect, Run):
            self._begin(self._runs, request, self._run(effect))
        elif isinstance(effect, CallWebhook):
            self._begin(self._writes, request, self._call(effect))
        elif isinstance(effect, CallPlanner):
            self._begin(self._runs, request, self._ask(effect))
        elif isinstance(effect, GetObject):
            self._begin(self._runs, request, read(self._writer, effect))
        else:
            self._begin(self._writes, request, self._write(effect))

    async def finish(self, *, within: float) -> None:
        """Let the writes under way end, then the events about them; what plugins do is given up."""
        for task in self._runs:
            task.cancel()
        await asyncio.gather(*self._runs, return_exceptions=True)
        try:
            async with asyncio.timeout(within):
                await asyncio.gather(*self._writes)
                await self._recorder.flush()
        except TimeoutError:
            log.warning("stopped with writes under way", writes=len(self._writes))

    def _begin(
        self, tasks: set[asyncio.Task[None]], request: Instruction, deed: Coroutine[Any, Any, Outcome]
    ) -> None:
        if isinstance(request, Request):
            self.answers_due += 1
        task = asyncio.create_task(self._answer(request, deed))
        tasks.add(task)
        task.add_done_callback(partial(self._ended, tasks))

    def _ended(self, tasks: set[asyncio.Task[None]], task: asyncio.Task[None]) -> None:
        had_room = self.has_room
        tasks.discard(task)
        if not had_room and self.has_room:
            self._on_room()

    async def _answer(self, request: Instruction, deed: Coroutine[Any, Any, Outcome]) -> None:
        effect = request.effect
        try:
            outcome = await deed
        except Exception as error:
            # A fault of ours. The engine waits for an answer, and one pod must not stop the others.
            log.exception("an effect broke", effect=type(effect).__name__)
            outcome = Failed(f"internal error: {error!r}")
        if isinstance(request, Request):
            self.answers_due -= 1
            self._on_done(Done(request.id, outcome))

    async def _run(self, effect: Run) -> Outcome:
        try:
            async with asyncio.timeout(_RUN_SECONDS):
                return Answered(await effect.awaitable)
        except TimeoutError as error:
            return Failed(str(error) or f"not done within {_RUN_SECONDS:g} s")
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return Failed("the plugin cancelled its own work")
        except (Exception, SystemExit) as error:  # whatever a plugin does, only this attempt fails
            return Failed(repr(error))

    async def _call(self, effect: CallWebhook) -> Outcome:
        return await self._webhooks.call(effect) if self._may_write() else _NOT_LEADING

    async def _ask(self, effect: CallPlanner) -> Outcome:
        if not self._may_write():
            return _NOT_LEADING
        try:
            return Answered(await self._planners.call(effect.address, effect.request, timeout=effect.seconds))
        except (PlannerFailed, UserError) as error:
            log.warning("no plan came", reason=str(error))
            return Failed(str(error))

    async def _write(self, effect: Write) -> Outcome:
        if not self._may_write():
            return _NOT_LEADING
        outcome = await write(self._writer, effect)
        if isinstance(effect, Bind) and isinstance(outcome, Succeeded):
            self.bound += 1
        self._on_write(effect, outcome)
        return outcome


def log_write(effect: Write, outcome: Outcome) -> None:
    name = f"{effect.namespace}/{effect.name}" if effect.namespace else effect.name
    if isinstance(effect, Bind):
        if isinstance(outcome, Succeeded):
            log.debug("pod bound", pod=name, node=effect.node)
            return
        kind, reason = type(outcome).__name__.lower(), outcome.message
        log.warning("pod not bound", pod=name, node=effect.node, outcome=kind, reason=reason)
    elif isinstance(outcome, Failed):
        log.warning("write failed", effect=type(effect).__name__, object=name, reason=outcome.message)


def _happening(event: RecordEvent) -> Happening:
    return Happening(
        api_version=event.api_version,
        kind=event.kind,
        namespace=event.namespace,
        name=event.name,
        uid=event.uid,
        type=event.type,
        reason=event.reason,
        action=event.action,
        note=event.note,
    )
