"""A scripted proxy in front of the real API server, which causes faults.

Clients use plain HTTP to it on the loopback address; it uses TLS to the API server with the credentials of a
connection. The script is called once for each request, and returns a fault or None.
"""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web

from longshore.kube.client import Sockets
from longshore.kube.config import Connection
from longshore.kube.credentials import Fixed


@dataclass(frozen=True)
class Refuse:
    """Respond instead of the API server; the request never reaches it."""

    status: int
    reason: str = ""
    retry_after: int | None = None


@dataclass(frozen=True)
class Reset:
    """Pass the request on, and reset the connection after this many bytes of the response."""

    after_bytes: int


@dataclass(frozen=True)
class End:
    """Pass the request on, and end the response cleanly after a time, as the API server ends a watch."""

    after_seconds: float


@dataclass(frozen=True)
class Stall:
    """Pass the request on, and send nothing more after this many bytes, but leave the connection open."""

    after_bytes: int


@dataclass(frozen=True)
class LoseAnswer:
    """Let the write succeed, and reset the connection instead of responding."""


@dataclass(frozen=True)
class DropBefore:
    """Reset the connection before the request reaches the API server."""


@dataclass(frozen=True)
class AnswerLate:
    """Let the write succeed, and respond only after a time."""

    seconds: float


@dataclass(frozen=True)
class LandLate:
    """Delay the request for a time, then let it succeed, even if the client no longer waits."""

    seconds: float


Fault = LandLate | Refuse | Reset | End | Stall | LoseAnswer | DropBefore | AnswerLate


@dataclass(frozen=True)
class Asked:
    """A request as the script sees it, with counters."""

    method: str
    path: str
    query: dict[str, str]

    @property
    def watch(self) -> bool:
        return self.query.get("watch") == "true"

    @property
    def initial(self) -> bool:
        """Whether the request is for the whole state: a list, or a watch that begins with one."""
        return self.method == "GET" and (not self.watch or "sendInitialEvents" in self.query)


Script = Callable[[Asked], Fault | None]


@dataclass
class Proxy:
    """A running proxy. `script` may be changed at any time."""

    upstream: Connection
    script: Script = lambda _asked: None
    asked: list[Asked] = field(default_factory=list)
    faults: int = 0
    connection: Connection = field(init=False)
    _session: aiohttp.ClientSession = field(init=False)
    _open: dict[int, web.Request] = field(default_factory=dict)

    def cut_all(self) -> None:
        """Reset every connection with a request in progress."""
        for request in list(self._open.values()):
            _reset(request)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Proxy"]:
        sockets = Sockets()
        connector = aiohttp.TCPConnector(limit=0, ssl=self.upstream.ssl or True, socket_factory=sockets.make)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as self._session:
            runner = web.AppRunner(self._app(), access_log=None, shutdown_timeout=0.1)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            port = runner.addresses[0][1]
            self.connection = Connection(server=f"http://127.0.0.1:{port}", ssl=None, credentials=Fixed(None))
            try:
                yield self
            finally:
                await runner.cleanup()
                await sockets.end()

    def _app(self) -> web.Application:
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", self._handle)
        return app

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        asked = Asked(request.method, request.path, dict(request.query))
        self.asked.append(asked)
        fault = self.script(asked)
        if fault is not None:
            self.faults += 1
        match fault:
            case Refuse():
                headers = {"Retry-After": str(fault.retry_after)} if fault.retry_after is not None else {}
                status = {
                    "kind": "Status",
                    "code": fault.status,
                    "reason": fault.reason,
                    "message": "scripted",
                }
                return web.json_response(status, status=fault.status, headers=headers)
            case DropBefore():
                _reset(request)
                return web.Response()
        body = await request.read()
        if isinstance(fault, LandLate):
            await asyncio.sleep(fault.seconds)
        self._open[id(request)] = request
        try:
            return await self._forward(request, body, fault)
        except (aiohttp.ClientError, ConnectionResetError):
            # The API server or our client has disconnected.
            _reset(request)
            return web.Response()
        finally:
            del self._open[id(request)]

    async def _forward(self, request: web.Request, body: bytes, fault: Fault | None) -> web.StreamResponse:
        headers = {
            name: request.headers[name] for name in ("Accept", "Content-Type") if name in request.headers
        }
        headers["Accept-Encoding"] = "identity"
        authorization = await self.upstream.credentials.authorization()
        if authorization is not None:
            headers["Authorization"] = authorization
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._session.request(
            request.method,
            self.upstream.server + request.path_qs,
            data=body,
            headers=headers,
            timeout=timeout,
        ) as answer:
            if isinstance(fault, LoseAnswer | AnswerLate):
                whole = await answer.read()
                if isinstance(fault, LoseAnswer):
                    _reset(request)
                else:
                    await asyncio.sleep(fault.seconds)
                return web.Response(status=answer.status, body=whole, content_type="application/json")
            response = web.StreamResponse(status=answer.status)
            response.content_type = answer.headers.get("Content-Type", "application/json").partition(";")[0]
            if "Retry-After" in answer.headers:
                response.headers["Retry-After"] = answer.headers["Retry-After"]
            await response.prepare(request)
            await self._stream(request, response, answer, fault)
            return response

    async def _stream(
        self,
        request: web.Request,
        response: web.StreamResponse,
        answer: aiohttp.ClientResponse,
        fault: Fault | None,
    ) -> None:
        sent = 0
        limit = fault.after_bytes if isinstance(fault, Reset | Stall) else None
        try:
            async with asyncio.timeout(fault.after_seconds if isinstance(fault, End) else None):
                while chunk := await answer.content.readany():
                    if limit is not None and sent + len(chunk) > limit:
                        await response.write(chunk[: limit - sent])
                        if isinstance(fault, Stall):
                            await asyncio.sleep(3600)
                        _reset(request)
                        return
                    await response.write(chunk)
                    sent += len(chunk)
        except TimeoutError:
            if not isinstance(fault, End):
                raise
        await response.write_eof()


def _reset(request: web.Request) -> None:
    """End the connection with a RST, as a crashed peer or an impatient middlebox does."""
    transport = request.transport
    if transport is None:
        return
    sock = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
