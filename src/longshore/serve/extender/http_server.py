"""A minimal HTTP/1.1 server for answers that need no waiting.

kube-scheduler calls an extender twice for every pod and waits each time, so each tenth of a millisecond
lowers its throughput. Here a request is one callback and its answer one `write`, without tasks or queues.
"""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Protocol, cast

import httptools
import structlog

from longshore.serve.extender import wire
from longshore.serve.extender.routes import NO_CERTIFICATE, OPEN, Reply
from longshore.serve.extender.tls import Certificates
from longshore.serve.listener import listen

log = structlog.get_logger()

# Room for 5,000 whole nodes with their images and annotations.
MAX_BODY = 128 * 2**20
# The most bytes of a request's head, or of the trailers after a chunked body.
_MAX_HEAD = 64 * 2**10
# An idle connection is closed after this long; kube-scheduler closes its own after 90 seconds.
_IDLE_SECONDS = 120.0
# A request must arrive completely within this time.
_RECEIVE_SECONDS = 30.0
_SWEEP_SECONDS = 5.0
# How far our watch may be behind that of the client.
_EARLY_SECONDS = 0.1
_BACKLOG = 512
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class HttpAnswer(Protocol):
    def __call__(self, method: str, path: str, body: bytes, *, waited: float | None = None) -> Reply:
        """Answer a request. After an early reply, this is called once more with the seconds `waited`."""
        ...


class ExtenderConnection(asyncio.Protocol):
    """A client's connection. `since` is when the last request was complete, or when the next one began."""

    def __init__(
        self,
        answer: HttpAnswer,
        connections: set["ExtenderConnection"],
        max_body: int,
        certificates: Certificates | None = None,
        *,
        early_seconds: float = _EARLY_SECONDS,
    ) -> None:
        self._early_seconds = early_seconds
        self._answer = answer
        self._connections = connections
        self._max_body = max_body
        self._certificates = certificates
        self._context: ssl.SSLContext | None = None
        # Whether the client must present a certificate and has not.
        self._unauthenticated = False
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self.since = time.monotonic()
        self.receiving = False
        # A function that answers a postponed request, and the timer that calls it.
        self._postponed: tuple[Callable[[], None], asyncio.TimerHandle] | None = None
        # Whether the client does not read answers.
        self._clogged = False
        # Bytes received of a head that has not ended, or of trailers.
        self._head = 0
        self._begin()

    def _begin(self) -> None:
        self._url = b""
        self._body: list[bytes] = []
        self._size = 0
        self._too_large = self._continues = False

    @property
    def outdated(self) -> bool:
        """Whether certificates were renewed since the connection began; the client may now be untrusted."""
        return self._certificates is not None and not self._certificates.uses(self._context)

    def close(self) -> None:
        self._answer_postponed()
        if self._transport is not None:
            self._transport.close()

    # Called by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._connections.add(self)
        if self._certificates is not None:
            client: ssl.SSLObject = transport.get_extra_info("ssl_object")
            self._context = client.context
            self._unauthenticated = not self._certificates.authenticates(client)
            if self.outdated:
                # They were renewed during the handshake.
                self.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._connections.discard(self)
        if self._postponed is not None:
            self._postponed[1].cancel()
            self._postponed = None

    def pause_writing(self) -> None:
        """Read no more requests from a client that does not read answers."""
        self._clogged = True
        self._pace()

    def resume_writing(self) -> None:
        self._clogged = False
        self._pace()

    def _pace(self) -> None:
        """Read unless the client does not read answers or an answer is postponed."""
        if self._transport is None or self._transport.is_closing():
            return
        if self._clogged or self._postponed is not None:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        # The parser keeps a head that does not end.
        self._head += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # The client offers another protocol; the request itself has been answered.
            self.close()
        except httptools.HttpParserError as error:
            self._give_up(400, f"not an HTTP request: {error}")
        if self._head > _MAX_HEAD:
            self._give_up(431, f"the headers or trailers of the request are larger than {_MAX_HEAD} bytes")

    # Called by the parser.

    def on_message_begin(self) -> None:
        # Answers have the order of requests, so a postponed one is due when the next request begins.
        self._answer_postponed()
        self._begin()
        self.receiving, self.since = True, time.monotonic()

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name == b"content-length":
            self._too_large = int(value) > self._max_body
        elif name == b"expect":
            self._continues = value.lower() == b"100-continue"

    def on_headers_complete(self) -> None:
        self._head = 0
        if not self._continues or self._transport is None or self._transport.is_closing():
            return
        if self._too_large:
            self._give_up(413, self._limit)
        else:
            self._transport.write(_CONTINUE)

    def on_body(self, data: bytes) -> None:
        # Read a body that is too large to its end; otherwise the client would not read the answer.
        self._head = 0
        self._size += len(data)
        self._too_large = self._too_large or self._size > self._max_body
        if self._too_large:
            self._body.clear()
        elif not self._unauthenticated:
            self._body.append(data)

    def on_message_complete(self) -> None:
        self.receiving, self.since = False, time.monotonic()
        self._head = 0
        if self._transport is None or self._transport.is_closing():
            return
        if self._too_large:
            self._give_up(413, self._limit)
            return
        method = self._parser.get_method().decode("latin-1")
        path = self._url.partition(b"?")[0].decode("latin-1")
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        keep = self._parser.should_keep_alive() and not self.outdated
        self._begin()
        if self._unauthenticated and path not in OPEN:
            reply = _refusal(401, NO_CERTIFICATE)
        else:
            reply = self._answer(method, path, body)
        if not reply.early:
            self._send(reply, keep=keep, bare=method == "HEAD")
            return
        received = self.since

        def again() -> None:
            self._send(self._answer(method, path, body, waited=time.monotonic() - received), keep=keep)

        # The client may know a node before our watch does. Nothing is read while the answer is postponed.
        timer = asyncio.get_running_loop().call_later(self._early_seconds, self._answer_postponed)
        self._postponed = again, timer
        self._pace()

    def _answer_postponed(self) -> None:
        """Answer a postponed request now, if there is one."""
        if self._postponed is None:
            return
        (again, timer), self._postponed = self._postponed, None
        timer.cancel()
        if self._transport is not None and not self._transport.is_closing():
            again()
            self._pace()

    @property
    def _limit(self) -> str:
        return f"the request is larger than {self._max_body} bytes: set nodeCacheCapable: true"

    def _give_up(self, status: int, message: str) -> None:
        """Answer with an error and close the connection, because the next request cannot be found."""
        self._answer_postponed()
        if self._transport is not None and not self._transport.is_closing():
            self._send(_refusal(status, message), keep=False)

    def _send(self, reply: Reply, *, keep: bool, bare: bool = False) -> None:
        if self._transport is None:
            return
        more = f"Allow: {reply.allow}\r\n" if reply.allow else ""
        more += "" if keep else "Connection: close\r\n"
        head = (
            f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}\r\n"
            f"Date: {_date(int(time.time()))}\r\nContent-Type: {reply.content_type}\r\n"
            f"Content-Length: {len(reply.body)}\r\n{more}\r\n"
        ).encode("latin-1")
        self._transport.write(head if bare else head + reply.body)
        if not keep:
            self._transport.close()


def _refusal(status: int, message: str) -> Reply:
    log.warning("request rejected", status=status, reason=message)
    return Reply(status, wire.refused(message))


@lru_cache(1)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)


@asynccontextmanager
async def listening(
    answer: HttpAnswer,
    *,
    port: int,
    address: str = "",
    certificates: Certificates | None = None,
    max_body: int = MAX_BODY,
    sweep_seconds: float = _SWEEP_SECONDS,
) -> AsyncIterator[int]:
    """Serve until the block ends. Yield the port, which is a free one if `port` is 0.

    An empty address means all addresses. Every `sweep_seconds`, connections are closed that are idle or use
    old certificates.
    """
    # A UserError names the flag and the variable that choose the port.
    listener = listen(address, port, what="agents", flag="--port or HTTP_PORT", backlog=_BACKLOG)
    connections: set[ExtenderConnection] = set()
    server = await asyncio.get_running_loop().create_server(
        lambda: ExtenderConnection(answer, connections, max_body, certificates),
        sock=listener,
        ssl=None if certificates is None else certificates.context,
    )
    sweeping = asyncio.create_task(_sweep(connections, certificates, sweep_seconds))
    try:
        yield int(listener.getsockname()[1])
    finally:
        sweeping.cancel()
        server.close()
        for connection in list(connections):
            connection.close()


async def _sweep(
    connections: set[ExtenderConnection], certificates: Certificates | None, sweep_seconds: float
) -> None:
    while True:
        await asyncio.sleep(sweep_seconds)
        if certificates is not None:
            certificates.renew()
        now = time.monotonic()
        for connection in list(connections):
            patience = _RECEIVE_SECONDS if connection.receiving else _IDLE_SECONDS
            if now - connection.since > patience or (connection.outdated and not connection.receiving):
                connection.close()
