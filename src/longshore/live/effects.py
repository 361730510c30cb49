"""Performs what the engine asks for on the API server, and tells how it ended."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import structlog

from longshore.engine import Bind, RecordEvent, Request, SetCondition
from longshore.engine.events import Done, Failed, Outcome, Succeeded
from longshore.kube.errors import ApiError, ConnectionFailed
from longshore.kube.recorder import EventRecorder, Happening
from longshore.kube.resources import PODS
from longshore.kube.writer import Patch, Writer

log = structlog.get_logger()

# Decisions wait when this many writes are under way: the API server is the slower of the two.
MAX_IN_FLIGHT = 256


class Performer:
    """Turns requests into writes; every request is answered by exactly one `Done`."""

    def __init__(
        self,
        writer: Writer,
        recorder: EventRecorder,
        *,
        on_done: Callable[[Done], None],
        may_bind: Callable[[], bool] = lambda: True,
    ) -> None:
        self.bound = 0
        self._writer = writer
        self._recorder = recorder
        self._on_done = on_done
        self._may_bind = may_bind
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def has_room(self) -> bool:
        return len(self._tasks) < MAX_IN_FLIGHT

    def perform(self, request: Request) -> None:
        """Begin the write and return at once."""
        if isinstance(request.effect, RecordEvent):
            self._recorder.record(_happening(request.effect))
            self._on_done(Done(request.id, Succeeded()))
            return
        task = asyncio.create_task(self._write(request.id, request.effect))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self, *, within: float) -> None:
        """Let the writes under way end, then the events about them."""
        try:
            async with asyncio.timeout(within):
                await asyncio.gather(*self._tasks)
                await self._recorder.flush()
        except TimeoutError:
            log.warning("stopped with writes under way", writes=len(self._tasks))

    async def _write(self, number: int, effect: Bind | SetCondition) -> None:
        try:
            outcome = await (self._bind(effect) if isinstance(effect, Bind) else self._set_condition(effect))
        except Exception as error:
            # A fault of ours. The engine waits for an answer, and one pod must not stop the others.
            log.exception("a write broke", pod=f"{effect.namespace}/{effect.name}")
            outcome = Failed(f"internal error: {error!r}")
        self._on_done(Done(number, outcome))

    async def _bind(self, bind: Bind) -> Outcome:
        if not self._may_bind():
            return Failed("this scheduler no longer holds the lease")
        outcome = await self._writer.bind(bind.namespace, bind.name, bind.uid, bind.node)
        pod = f"{bind.namespace}/{bind.name}"
        if isinstance(outcome, Succeeded):
            self.bound += 1
            log.debug("pod bound", pod=pod, node=bind.node)
        else:
            kind = type(outcome).__name__.lower()
            log.warning("pod not bound", pod=pod, node=bind.node, outcome=kind, reason=outcome.message)
        return outcome

    async def _set_condition(self, effect: SetCondition) -> Outcome:
        condition = effect.condition
        body = {
            "metadata": {"uid": effect.uid},
            "status": {
                "conditions": [
                    {
                        "type": condition.type,
                        "status": condition.status,
                        "reason": condition.reason,
                        "message": condition.message,
                        "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                    }
                ]
            },
        }
        try:
            await self._writer.patch(
                PODS, effect.namespace, effect.name, body, kind=Patch.STRATEGIC, subresource="status"
            )
        except (ApiError, ConnectionFailed) as error:
            gone = isinstance(error, ApiError) and error.status in (404, 409)
            if not gone:
                pod = f"{effect.namespace}/{effect.name}"
                log.warning("condition not written", pod=pod, reason=str(error))
            return Failed(str(error))
        return Succeeded()


def _happening(event: RecordEvent) -> Happening:
    return Happening(
        api_version="v1",
        kind="Pod",
        namespace=event.namespace,
        name=event.name,
        uid=event.uid,
        type=event.type,
        reason=event.reason,
        action=event.action,
        note=event.note,
    )
