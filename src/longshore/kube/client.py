"""One connection to the API server for everything ordinary: requests, lists and watches.

    async with Client(load()) as client:
        body = await client.request("GET", "/api/v1/nodes")

Answers come back as bytes, refusals as `ApiError`, silence as `ConnectionFailed`.
"""

import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

import aiohttp

from longshore import __version__
from longshore.kube.config import Connection
from longshore.kube.errors import ConnectionFailed, api_error

USER_AGENT = f"longshore/{__version__}"
_CONNECT_TIMEOUT = 10.0
# A peer that vanished without a word is noticed by the kernel after 15 + 3 · 5 seconds.
_KEEPALIVE = ((socket.TCP_KEEPIDLE, 15), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))


def keep_alive(sock: socket.socket) -> None:
    """Have the kernel probe a silent peer."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE:
        sock.setsockopt(socket.IPPROTO_TCP, option, value)


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = address
    sock = socket.socket(family, kind, protocol)
    keep_alive(sock)
    return sock


class Client:
    """An HTTP session with the server, the credentials and the certificates of one `Connection`."""

    def __init__(self, connection: Connection, *, user_agent: str = USER_AGENT) -> None:
        self.connection = connection
        self.user_agent = user_agent
        self._session: aiohttp.ClientSession | None = None
        self._connector: aiohttp.TCPConnector

    async def __aenter__(self) -> Self:
        self._connector = aiohttp.TCPConnector(limit=128, socket_factory=_socket, ttl_dns_cache=30)
        self._session = aiohttp.ClientSession(
            connector=self._connector,
            # The body of a list is large and the network to the API server is fast.
            headers={"User-Agent": self.user_agent, "Accept-Encoding": "identity"},
            read_bufsize=2**20,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            # Without a word of farewell to the server: a polite end of TLS would outlive the event loop.
            await self._connector.close(abort_ssl=True)
            await self._session.close()
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
        """Ask once and give the body of the answer."""
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
        """An answer that is read as it comes; silence for longer than `read_timeout` ends it."""
        limit = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT, sock_read=read_timeout)
        async with self._exchange("GET", path, params, None, {"Accept": accept}, limit) as response:
            try:
                yield response.content
            finally:
                # Left in the middle, a connection is of no use, and a polite end would wait for the server.
                if response.connection is not None and response.connection.transport is not None:
                    response.connection.transport.abort()

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
                        # A token that has just been rotated: nothing was done yet, so ask with the new one,
                        # and on another connection, since a certificate belongs to its connection.
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
                raise ConnectionFailed(f"{method} {path}: no answer in time", sent=True) from error
            except (aiohttp.ClientError, OSError) as error:
                raise ConnectionFailed(
                    f"{method} {path}: {error or type(error).__name__}", sent=True
                ) from error
