"""Serves metrics, health and recorded decisions on one port.

The server has a thread and an event loop of its own: rendering does not delay decisions, and a scheduler
whose loop is stuck can still report it.
"""

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from longshore.serve.decisions import DecisionRoute
from longshore.serve.health import Check, Health, probe
from longshore.serve.listener import listen

log = structlog.get_logger()

DEFAULT_PORT = 10259
_SHUTDOWN_SECONDS = 1.0


@contextmanager
def serving(
    registry: CollectorRegistry,
    health: Health,
    *,
    port: int = DEFAULT_PORT,
    address: str = "",
    tls: ssl.SSLContext | None = None,
    decisions: DecisionRoute | None = None,
) -> Iterator[int]:
    """Serve until the block ends. Yield the port, which is a free one if `port` is 0.

    An empty address means all addresses.
    """
    application = _application(registry, health)
    if decisions is not None:
        decisions.add_to(application)
    with _running(application, _listen(address, port, "--metrics-port"), tls) as number:
        yield number


@contextmanager
def serving_everywhere(registry: CollectorRegistry, *, port: int, flag: str) -> Iterator[int]:
    """Serve the metrics on every path. `flag` is the command-line flag that chooses the port."""

    async def metrics(request: web.Request) -> web.Response:
        return _rendered(registry, request)

    application = web.Application()
    application.router.add_get("/{path:.*}", metrics)
    with _running(application, _listen("", port, flag)) as number:
        yield number


@contextmanager
def _running(
    application: web.Application, listener: socket.socket, tls: ssl.SSLContext | None = None
) -> Iterator[int]:
    number: int = listener.getsockname()[1]
    server = _Server(listener, application, tls)
    server.start()
    log.info("serving metrics", port=number, tls=tls is not None)
    try:
        yield number
    finally:
        server.stop()


def _listen(address: str, port: int, flag: str) -> socket.socket:
    return listen(address, port, what="metrics", flag=flag)


def _application(registry: CollectorRegistry, health: Health) -> web.Application:
    async def metrics(request: web.Request) -> web.Response:
        return _rendered(registry, request)

    async def live(request: web.Request) -> web.Response:
        return _answer(request, health.live)

    async def ready(request: web.Request) -> web.Response:
        return _answer(request, {**health.live, **health.ready})

    application = web.Application()
    application.router.add_get("/metrics", metrics)
    application.router.add_get("/healthz", live)
    application.router.add_get("/livez", live)
    application.router.add_get("/readyz", ready)
    return application


def _rendered(registry: CollectorRegistry, request: web.Request) -> web.Response:
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    response = web.Response(body=encode(registry), headers={"Content-Type": content_type})
    response.enable_compression()
    return response


def _answer(request: web.Request, checks: Mapping[str, Check]) -> web.Response:
    name = request.path.removeprefix("/")
    answer = probe(checks)
    if not answer.healthy:
        return web.Response(status=500, text="\n".join((*answer.lines, f"{name} check failed\n")))
    if "verbose" in request.query:
        return web.Response(text="\n".join((*answer.lines, f"{name} check passed\n")))
    return web.Response(text="ok")


class _Server:
    def __init__(
        self, listener: socket.socket, application: web.Application, tls: ssl.SSLContext | None
    ) -> None:
        self._listener = listener
        self._application = application
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="serve", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        runner = web.AppRunner(self._application, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS)
        await runner.setup()
        try:
            await web.SockSite(runner, self._listener, ssl_context=self._tls).start()
            await self._stopping.wait()
        finally:
            await runner.cleanup()
