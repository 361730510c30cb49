"""A small pool of HTTP/1.1 connections for many small writes.

Binding a pod takes one small request and one small response. A general HTTP client spends more time on that
than a scheduler spends on its decision. Here, a request is one `write` and a response one callback.
"""

import asyncio
import re
from collections import deque
from types import TracebackType
from typing import Self, cast
from urllib.parse import urlsplit

import httptools
import msgspec

from longshore.kube.client import USER_AGENT, keep_alive
from longshore.kube.config import Connection
from longshore.kube.errors import ConnectionFailed

# Less than the API server's limit for idle connections (90 s), so that it rarely closes one while we write.
_IDLE_SECONDS = 45.0
_CONNECT_TIMEOUT = 10.0
_TARGET = re.compile(r"/[\x21-\x7e]*")


class Response(msgspec.Struct):
    status: int
    body: bytes
    retry_after: str | None


class _Wire(asyncio.Protocol):
    """One connection, with one request at a time."""

    def __init__(self, wires: set["_Wire"]) -> None:
        self.idle_since = 0.0
        self._wires = wires  # all connected ones
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._waiter: asyncio.Future[Response] | None = None
        self._body: list[bytes] = []
        self._retry_after: str | None = None
        self._reusable = True

    @property
    def open(self) -> bool:
        return self._reusable and self._transport is not None and not self._transport.is_closing()

    def exchange(self, request: bytes) -> asyncio.Future[Response]:
        if self._transport is None:
            raise RuntimeError("not connected")
        self._waiter = asyncio.get_running_loop().create_future()
        self._body = []
        self._retry_after = None
        self._transport.write(request)
        return self._waiter

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # Called by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._wires.add(self)
        sock = transport.get_extra_info("socket")
        if sock is not None:
            keep_alive(sock)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(f"not an HTTP response: {error}")
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._reusable = False
        self._wires.discard(self)
        self._fail(f"connection lost: {exc}" if exc else "connection closed before the response")

    def _fail(self, message: str) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(ConnectionFailed(message, sent=True))

    # Called by the parser.

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"retry-after":
            self._retry_after = value.decode("latin-1")

    def on_body(self, data: bytes) -> None:
        self._body.append(data)

    def on_message_complete(self) -> None:
        self._reusable = self._parser.should_keep_alive()
        if self._waiter is not None and not self._waiter.done():
            status = self._parser.get_status_code()
            self._waiter.set_result(Response(status, b"".join(self._body), self._retry_after))


class Pool:
    """At most `size` connections. Further requests wait, and are served in the order in which they came."""

    def __init__(self, connection: Connection, *, size: int = 64, user_agent: str = USER_AGENT) -> None:
        if connection.proxy_url is not None:
            raise ValueError("the pool does not support proxies")
        url = urlsplit(connection.server)
        self._connection = connection
        self._host = url.hostname or ""
        self._port = url.port or (443 if url.scheme == "https" else 80)
        self._prefix = url.path
        self._common = f"Host: {url.netloc}\r\nUser-Agent: {user_agent}\r\nAccept: application/json\r\n"
        self._free = size
        self._wires: set[_Wire] = set()
        self._idle: list[_Wire] = []
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._idle.clear()
        for wire in list(self._wires):
            wire.abort()
        # Protocols learn about the end of their transport in a later iteration of the loop.
        while self._wires:  # noqa: ASYNC110 - an event would be set in the same iteration
            await asyncio.sleep(0)

    async def send(
        self,
        method: str,
        target: str,
        body: bytes = b"",
        *,
        content_type: str = "application/json",
        timeout: float = 30.0,
    ) -> Response:
        """Send a request and return the response, whatever its status. Raises `ConnectionFailed`."""
        if _TARGET.fullmatch(target) is None:
            raise ValueError(f"{target!r} is not a valid target of an HTTP request")
        await self._take_turn()
        try:
            for attempt in (1, 2):
                authorization = await self._connection.authorization()
                head = f"{method} {self._prefix}{target} HTTP/1.1\r\n{self._common}"
                if authorization is not None:
                    head += f"Authorization: {authorization}\r\n"
                head += f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
                answer = await self._exchange(head.encode("latin-1") + body, timeout)
                if answer.status == 401 and attempt == 1:
                    self._connection.credentials.invalidate()
                    self._drop_idle()  # a certificate belongs to its connection
                    continue
                break
        finally:
            self._end_turn()
        return answer

    async def _exchange(self, request: bytes, timeout: float) -> Response:
        wire = self._reusable_wire() or await self._connect()
        try:
            async with asyncio.timeout(timeout):
                answer = await wire.exchange(request)
        except BaseException as error:
            # The response may still arrive, so this connection cannot be used for another request.
            wire.abort()
            if isinstance(error, TimeoutError):
                raise ConnectionFailed(f"no response within {timeout:g} s", sent=True) from error
            raise
        if wire.open:
            wire.idle_since = asyncio.get_running_loop().time()
            self._idle.append(wire)
        else:
            wire.abort()
        return answer

    def _drop_idle(self) -> None:
        for wire in self._idle:
            wire.abort()
        self._idle.clear()

    def _reusable_wire(self) -> _Wire | None:
        oldest = asyncio.get_running_loop().time() - _IDLE_SECONDS
        while self._idle:
            wire = self._idle.pop()
            if wire.open and wire.idle_since > oldest:
                return wire
            wire.abort()
        return None

    async def _connect(self) -> _Wire:
        ssl = self._connection.ssl
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT):
                _, wire = await asyncio.get_running_loop().create_connection(
                    lambda: _Wire(self._wires),
                    self._host,
                    self._port,
                    ssl=ssl,
                    server_hostname=(self._connection.server_hostname or self._host) if ssl else None,
                )
        except (OSError, TimeoutError) as error:
            reason = "timed out" if isinstance(error, TimeoutError) else error
            raise ConnectionFailed(
                f"cannot connect to {self._connection.server}: {reason}", sent=False
            ) from error
        return wire

    async def _take_turn(self) -> None:
        if self._free > 0:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._end_turn()
            raise

    def _end_turn(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
