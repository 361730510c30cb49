"""Events for people, through events.k8s.io/v1, with repeated ones counted rather than written again.

An event that is repeated within a few minutes becomes one event with a series. Its count is written at the
first repetition and then each time it has doubled, so a pod that fails for an hour costs a handful of writes.
"""

import asyncio
import os
import socket
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import structlog

from longshore.api.meta import ApiObject
from longshore.api.timestamps import format_timestamp
from longshore.framework.effects import RecordEvent
from longshore.kube.backlog import Backlog
from longshore.kube.codec import JsonCodec
from longshore.kube.errors import ApiError, ConnectionFailed
from longshore.kube.resources import Resource
from longshore.kube.writer import Writer

log = structlog.get_logger()

EVENTS = Resource(group="events.k8s.io", plural="events", codec=JsonCodec(ApiObject))

# A series ends when nothing was recorded for this long, as with Kubernetes' own recorder.
_SERIES_SECONDS = 360.0
_MAX_SERIES = 4096
_MAX_PENDING = 20_000
_MAX_NAME = 253


class _Series(msgspec.Struct):
    event_name: str
    count: int
    written: int
    last: float
    lock: asyncio.Lock


class EventRecorder:
    """Writes events in the background; it never raises and never blocks.

    `others_busy` says whether there are more urgent writes, which events give way to.
    """

    def __init__(
        self,
        writer: Writer,
        *,
        controller: str,
        instance: str | None = None,
        others_busy: Callable[[], bool] = lambda: False,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.dropped = 0
        self._writer = writer
        self._controller = controller
        self._instance = (instance or f"{controller}-{socket.gethostname()}")[:128]
        self._wall_clock = wall_clock
        self._series: OrderedDict[RecordEvent, _Series] = OrderedDict()
        self._backlog = Backlog(others_busy=others_busy)
        self._sequence = 0
        self._failure = ""

    @property
    def delay(self) -> float:
        """The seconds that the oldest event has waited to be written."""
        return self._backlog.delay

    def record(self, event: RecordEvent) -> None:
        """Have the event written. When far too many wait already, it is dropped and counted."""
        if len(self._backlog) >= _MAX_PENDING:
            self.dropped += 1
            return
        now = asyncio.get_running_loop().time()
        series = self._series.get(event)
        if series is not None and now - series.last < _SERIES_SECONDS:
            series.count += 1
            series.last = now
            self._series.move_to_end(event)
            if series.count < 2 * series.written:
                return
            # What is written is the count of that moment, so a later repetition is not ahead of it.
            series.written = series.count
        else:
            series = self._series[event] = _Series(self._name(event), 1, 1, now, asyncio.Lock())
            if len(self._series) > _MAX_SERIES:
                self._series.popitem(last=False)
        self._backlog.add(partial(self._write, event, series, series.count))

    async def flush(self) -> None:
        """Wait for the events under way, then write the counts that were held back."""
        await self._backlog.done()
        behind = [(e, s) for e, s in self._series.items() if s.count > s.written]
        await asyncio.gather(*(self._write(event, series, series.count) for event, series in behind))
        for _, series in behind:
            series.written = series.count

    def _name(self, event: RecordEvent) -> str:
        self._sequence += 1
        suffix = f".{int(self._wall_clock() * 1e6):x}.{os.getpid():x}.{self._sequence:x}"
        return event.name[: _MAX_NAME - len(suffix)] + suffix

    async def _write(self, event: RecordEvent, series: _Series, count: int) -> None:
        try:
            async with series.lock:  # A repetition is written after the event itself.
                if count == 1:
                    await self._create(event, series)
                else:
                    await self._count(event, series, count)
            self._failure = ""
        except (ApiError, ConnectionFailed) as error:
            self.dropped += 1
            if str(error) != self._failure:  # One line, not one for each pod.
                self._failure = str(error)
                log.warning("events cannot be written", reason=str(error))

    async def _create(self, event: RecordEvent, series: _Series) -> None:
        await self._writer.create(EVENTS, _namespace(event), self._body(event, series.event_name))

    async def _count(self, event: RecordEvent, series: _Series, count: int) -> None:
        body = {"series": {"count": count, "lastObservedTime": self._timestamp()}}
        try:
            await self._writer.patch(EVENTS, _namespace(event), series.event_name, body)
        except ApiError as error:
            if error.status != 404:
                raise
            # The event has expired, or was never written: begin again.
            series.event_name = self._name(event)
            await self._create(event, series)

    def _body(self, event: RecordEvent, name: str) -> dict[str, Any]:
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": _namespace(event)},
            "eventTime": self._timestamp(),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": event.action,
            "reason": event.reason,
            "regarding": {
                "apiVersion": event.api_version,
                "kind": event.kind,
                "namespace": event.namespace,
                "name": event.name,
                "uid": event.uid,
            },
            "note": event.note,
            "type": event.type,
        }

    def _timestamp(self) -> str:
        return format_timestamp(self._wall_clock(), "microseconds")


def _namespace(event: RecordEvent) -> str:
    """Events about objects without a namespace live in `default`."""
    return event.namespace or "default"
