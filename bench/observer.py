"""An observer of binds, with the same small cost for every scheduler.

It watches the pods that have a node. Such a watch reports a pod as ADDED when the pod is bound. The observer
counts the frames without decoding them. The API server sends the same protobuf encoding to the schedulers.
"""

import asyncio
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import msgspec

from longshore.api import Pod
from longshore.errors import UserError
from longshore.kube.client import Client
from longshore.kube.resources import PODS

# The beginning of a watch event: field 1 with the type, after the length of the word.
_ADDED = b"\n\x05ADDED"
_DELETED = b"\n\x07DELETED"
_ERROR = b"\n\x05ERROR"
_WATCH_SECONDS = 3600
_POLL_SECONDS = 0.05
_PATIENCE_SECONDS = 60.0


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str


class _List(msgspec.Struct):
    metadata: _ListMeta


async def watch_from_now(client: Client, path: str) -> dict[str, str]:
    """Return the parameters of a watch that reports only changes from now on."""
    body = await client.request("GET", path, params={"limit": "1"})
    version = msgspec.json.decode(body, type=_List).metadata.resource_version
    return {"watch": "true", "resourceVersion": version, "timeoutSeconds": str(_WATCH_SECONDS)}


class Observer:
    """Watches the pods of a namespace in its `async with` block. `binds` has the time of each bind."""

    def __init__(self, client: Client, *, namespace: str) -> None:
        self.binds: list[float] = []
        self.deleted = 0
        self._client = client
        self._path = PODS.path(namespace=namespace)
        self._watching = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._watch())
        opened = asyncio.create_task(self._watching.wait())
        await asyncio.wait([self._task, opened], return_when=asyncio.FIRST_COMPLETED)
        opened.cancel()
        self._require_watch()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def wait_for(self, count: int, *, require_running: Callable[[], None]) -> None:
        """Wait until that many pods are bound. Raise if the scheduler ends or binds nothing for a minute."""
        seen, since = 0, time.monotonic()
        while len(self.binds) < count:
            await asyncio.sleep(_POLL_SECONDS)
            require_running()
            self._require_watch()
            if len(self.binds) > seen:
                seen, since = len(self.binds), time.monotonic()
            elif time.monotonic() - since > _PATIENCE_SECONDS:
                raise UserError(f"{seen} of {count} pods were bound, then none for {_PATIENCE_SECONDS:g} s")

    def _require_watch(self) -> None:
        if self._task is not None and self._task.done():
            self._task.result()

    async def _watch(self) -> None:
        params = await watch_from_now(self._client, self._path) | {"fieldSelector": "spec.nodeName!="}
        while True:
            # A busy server can end a watch. It continues after the last event, so no event is lost.
            last = await self._follow(params)
            if last is not None:
                params["resourceVersion"] = _version(last)

    async def _follow(self, params: dict[str, str]) -> bytes | None:
        """Count until the watch ends, and return its last frame."""
        buffer, frame = bytearray(), None
        async with self._client.stream(
            self._path, params=params, accept=PODS.codec.accept_watch, read_timeout=_WATCH_SECONDS
        ) as content:
            self._watching.set()
            while chunk := await content.readany():
                now = time.perf_counter()
                buffer += chunk
                for frame in PODS.codec.frames(buffer):
                    if frame.startswith(_ADDED):
                        self.binds.append(now)
                    elif frame.startswith(_DELETED):
                        self.deleted += 1
                    elif frame.startswith(_ERROR):
                        raise UserError("the API server ended the observer's watch with an error")
        return frame


def _version(frame: bytes) -> str:
    _, pod = PODS.codec.event(frame)
    if not isinstance(pod, Pod):
        raise UserError(f"the observer cannot continue its watch after {pod}")
    return pod.metadata.resource_version
