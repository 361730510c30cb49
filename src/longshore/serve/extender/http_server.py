"""A lean HTTP/1.1 server, for answers that are made at once.

kube-scheduler asks an extender twice for every pod and waits each time, so that every tenth of a millisecond
is one less pod in a second. Here a request is one callback and its answer one `write`: no task, no queue.
"""

import asyncio
import os
import socket
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

from longshore.errors import UserError
from longshore.serve.extender import wire
from longshore.serve.extender.routes import NO_CERTIFICATE, OPEN, Reply
from longshore.serve.extender.tls import Certificates

log = structlog.get_logger()

# 5,000 nodes as they are, with room for their images and annotations.
MAX_BODY = 128 * 2**20
# Of a head, and of the trailers after a body in chunks.
_MAX_HEAD = 64 * 2**10
# An idle connection is closed after this long; kube-scheduler closes its own after 90 seconds.
_IDLE_SECONDS = 120.0
# A request that has begun has to be there after this long.
_RECEIVE_SECONDS = 30.0
_LOOK_SECONDS = 5.0
# How far the watch may be behind that of whoever asks.
_EARLY_SECONDS = 0.1
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Answer(Protocol):
    def __call__(self, method: str, path: str, body: bytes, *, waited: float | None = None) -> Reply:
        """One that is early is asked for again, once, with the seconds that were `waited`."""
        ...


class Connection(asyncio.Protocol):
    """One request after the other. `since` is when the last byte of one came, or the first of the next."""

    def __init__(
        self,
        answer: Answer,
        connections: set["Connection"],
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
        # Whoever asks shows no certificate and has to.
        self._stranger = False
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self.since = time.monotonic()
        self.receiving = False
        # What makes an answer that may be better in a moment, and what has it made then.
        self._postponed: tuple[Callable[[], None], asyncio.TimerHandle] | None = None
        # Whoever asked does not read the answers.
        self._clogged = False
        # Bytes since the last of a body or of a head: of a head that has not ended, or of trailers.
        self._head = 0
        self._begin()

    def _begin(self) -> None:
        self._url = b""
        self._body: list[bytes] = []
        self._size = 0
        self._too_large = self._continues = False

    @property
    def outdated(self) -> bool:
        """Certificates were renewed since it began: whoever asks may not be trusted any more."""
        return self._certificates is not None and not self._certificates.uses(self._context)

    def close(self) -> None:
        self._answer_again()
        if self._transport is not None:
            self._transport.close()

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._connections.add(self)
        if self._certificates is not None:
            caller: ssl.SSLObject = transport.get_extra_info("ssl_object")
            self._context = caller.context
            self._stranger = not self._certificates.knows(caller)
            if self.outdated:
                # The handshake took its time.
                self.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - whoever it was has gone
        self._connections.discard(self)
        if self._postponed is not None:
            self._postponed[1].cancel()
            self._postponed = None

    def pause_writing(self) -> None:
        """Who does not read answers is asked nothing more."""
        self._clogged = True
        self._pace()

    def resume_writing(self) -> None:
        self._clogged = False
        self._pace()

    def _pace(self) -> None:
        """Read, unless answers are not read, or one is postponed."""
        if self._transport is None or self._transport.is_closing():
            return
        if self._clogged or self._postponed is not None:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        # The parser keeps what does not end.
        self._head += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # Another protocol was offered; the request itself has been answered.
            self.close()
        except httptools.HttpParserError as error:
            self._give_up(400, f"not an HTTP request: {error}")
        if self._head > _MAX_HEAD:
            self._give_up(431, f"the head or the trailers of the request are larger than {_MAX_HEAD} bytes")

    # What the parser calls.

    def on_message_begin(self) -> None:
        # Answers are in the order of requests: nobody waits while another request is there.
        self._answer_again()
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
        # What is too large is heard to its end, or else the sender would not hear the answer.
        self._head = 0
        self._size += len(data)
        self._too_large = self._too_large or self._size > self._max_body
        if self._too_large:
            self._body.clear()
        elif not self._stranger:
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
        if self._stranger and path not in OPEN:
            reply = _refusal(401, NO_CERTIFICATE)
        else:
            reply = self._answer(method, path, body)
        if not reply.early:
            self._send(reply, keep=keep, bare=method == "HEAD")
            return
        asked = self.since

        def again() -> None:
            self._send(self._answer(method, path, body, waited=time.monotonic() - asked), keep=keep)

        # Whoever asks may know of a node before we do. Nothing is read meanwhile.
        self._postponed = (
            again,
            asyncio.get_running_loop().call_later(self._early_seconds, self._answer_again),
        )
        self._pace()

    def _answer_again(self) -> None:
        """What was postponed is answered now, if anything was."""
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
        """What follows cannot be told from what was: the connection ends."""
        self._answer_again()
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
    log.warning("a request is refused", status=status, reason=message)
    return Reply(status, wire.refused(message))


@lru_cache(1)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)


@asynccontextmanager
async def listening(
    answer: Answer,
    *,
    port: int,
    address: str = "",
    certificates: Certificates | None = None,
    max_body: int = MAX_BODY,
    look_seconds: float = _LOOK_SECONDS,
) -> AsyncIterator[int]:
    """Serve until the block ends, and yield the port. Port 0 stands for a free one, no address for all.

    Every `look_seconds`, connections that are idle or use old certificates are closed.
    """
    listener = _listen(address, port)
    connections: set[Connection] = set()
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(answer, connections, max_body, certificates),
        sock=listener,
        ssl=None if certificates is None else certificates.context,
    )
    sweeping = asyncio.create_task(_sweep(connections, certificates, look_seconds))
    try:
        yield int(listener.getsockname()[1])
    finally:
        sweeping.cancel()
        server.close()
        for connection in list(connections):
            connection.close()


async def _sweep(
    connections: set[Connection], certificates: Certificates | None, look_seconds: float
) -> None:
    while True:
        await asyncio.sleep(look_seconds)
        if certificates is not None:
            certificates.renew()
        now = time.monotonic()
        for connection in list(connections):
            patience = _RECEIVE_SECONDS if connection.receiving else _IDLE_SECONDS
            if now - connection.since > patience or (connection.outdated and not connection.receiving):
                connection.close()


def _listen(address: str, port: int) -> socket.socket:
    try:
        if not address and socket.has_dualstack_ipv6():
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=512)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return socket.create_server((address, port), family=family, backlog=512)
    except (OSError, OverflowError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        raise UserError(
            f"cannot serve on port {port}: {reason}; choose another with --port or HTTP_PORT, 0 for any"
        ) from error
