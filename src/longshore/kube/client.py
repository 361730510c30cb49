"""The general client for the API server: requests, lists, and watches.

    async with Client(load()) as client:
        body = await client.request("GET", "/api/v1/nodes")

A response is returned as bytes. An error response raises `ApiError`, a missing one raises `ConnectionFailed`.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Self
from weakref import WeakSet

import aiohttp

from longshore import __version__
from longshore.kube.config import Connection
from longshore.kube.errors import ConnectionFailed, api_error

USER_AGENT = f"longshore/{__version__}"
_CONNECT_TIMEOUT = 10.0
# The kernel notices that a peer has disappeared after 15 + 3 · 5 seconds.
_KEEPALIVE = ((socket.TCP_KEEPIDLE, 15), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))


def keep_alive(sock: socket.socket) -> None:
    """Let the kernel probe a silent peer."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE:
        sock.setsockopt(socket.IPPROTO_TCP, option, value)


class Sockets:
    """Creates the sockets of a session, and closes them at its end.

    A clean TLS shutdown would wait for the server, beyond the end of the session and of the event loop, which
    then fails. Closing abruptly loses nothing, because everything has already been read.
    """

    def __init__(self) -> None:
        self._made: WeakSet[socket.socket] = WeakSet()

    def make(self, address: aiohttp.AddrInfoType) -> socket.socket:
        family, kind, protocol, _, _ = address
        sock = socket.socket(family, kind, protocol)
        keep_alive(sock)
        self._made.add(sock)
        return sock

    async def end(self) -> None:
        for sock in self._open():
            with suppress(OSError):  # not connected
                sock.shutdown(socket.SHUT_RDWR)
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                while self._open():  # noqa: ASYNC110 - there is no event for a transport that closes its socket
                    await asyncio.sleep(0.001)

    def _open(self) -> list[socket.socket]:
        return [sock for sock in self._made if sock.fileno() != -1]


class Client:
    """An HTTP session with the server, the credentials, and the certificates of one `Connection`."""

    def __init__(self, connection: Connection, *, user_agent: str = USER_AGENT) -> None:
        self.connection = connection
        self.user_agent = user_agent
        self._session: aiohttp.ClientSession | None = None
        self._sockets = Sockets()

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=128, socket_factory=self._sockets.make, ttl_dns_cache=30),
            # No compression: the network to the API server is fast, and the body of a list is large.
            headers={"User-Agent": self.user_agent, "Accept-Encoding": "identity"},
            read_bufsize=2**20,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            await self._sockets.end()
            self._session = None

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        timeout: float | None = 30.0,
    ) -> bytes:
        """Send one request and return the body of the response."""
        limit = aiohttp.ClientTimeout(total=timeout, sock_connect=_CONNECT_TIMEOUT)
        headers = {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = content_type
        async with self._exchange(method, path, params, body, headers, limit) as response:
            return await response.read()

    @asynccontextmanager
    async def stream(
        self, path: str, *, params: Mapping[str, str], accept: str, read_timeout: float
    ) -> AsyncIterator[aiohttp.StreamReader]:
        """Yield a response to be read as it arrives. Silence for longer than `read_timeout` ends it."""
        limit = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT, sock_read=read_timeout)
        async with self._exchange("GET", path, params, None, {"Accept": accept}, limit) as response:
            try:
                yield response.content
            finally:
                response.close()

    @asynccontextmanager
    async def _exchange(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        body: bytes | None,
        headers: dict[str, str],
        limit: aiohttp.ClientTimeout,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        if self._session is None:
            raise RuntimeError("the client is used outside its `async with` block")
        connection = self.connection
        url = connection.server + path
        for attempt in (1, 2):
            authorization = await connection.authorization()
            if authorization is not None:
                headers["Authorization"] = authorization
            try:
                async with self._session.request(
                    method,
                    url,
                    params=params,
                    data=body,
                    headers=headers,
                    timeout=limit,
                    ssl=connection.ssl if connection.ssl is not None else True,
                    server_hostname=connection.server_hostname,
                    proxy=connection.proxy_url,
                    allow_redirects=False,
                ) as response:
                    if response.status < 300:
                        yield response
                        return
                    if response.status == 401 and attempt == 1:
                        # The token may just have been rotated. Nothing was done yet, so try again with the
                        # new one, and on another connection, because a certificate belongs to its connection.
                        connection.credentials.invalidate()
                        response.close()
                        continue
                    answer = await response.read()
                    raise api_error(response.status, answer, response.headers.get("Retry-After"))
            except aiohttp.ClientConnectorError as error:
                raise ConnectionFailed(
                    f"{connection.server}: {error.os_error or error}", sent=False
                ) from error
            except TimeoutError as error:
                raise ConnectionFailed(f"{method} {path}: timed out", sent=True) from error
            except (aiohttp.ClientError, OSError) as error:
                raise ConnectionFailed(
                    f"{method} {path}: {error or type(error).__name__}", sent=True
                ) from error
