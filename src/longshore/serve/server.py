"""/metrics, /healthz, /livez, /readyz and what was decided about pods, on one port.

Served from a thread and an event loop of their own: rendering never holds up decisions, and a scheduler whose
loop is stuck can still say so.
"""

import asyncio
import os
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from longshore.errors import UserError
from longshore.serve.decisions import DecisionRoute
from longshore.serve.health import Check, Health, probe

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
    """Serve until the block ends; gives the port, which is a free one if `port` is 0.

    Without an address it listens on all of them.
    """
    application = _application(registry, health)
    if decisions is not None:
        decisions.add_to(application)
    with _running(application, _listen(address, port, flag="--metrics-port"), tls) as number:
        yield number


@contextmanager
def serving_everywhere(registry: CollectorRegistry, *, port: int, flag: str) -> Iterator[int]:
    """Serve the metrics whatever path is asked for; `flag` is what chooses the port."""

    async def metrics(request: web.Request) -> web.Response:
        return _rendered(registry, request)

    application = web.Application()
    application.router.add_get("/{path:.*}", metrics)
    with _running(application, _listen("", port, flag=flag)) as number:
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


def tls_from(certificate: str, key: str) -> ssl.SSLContext:
    """Raises UserError if the files are not a certificate and its key."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise UserError(f"cannot serve with certificate {certificate} and key {key}: {error}") from error
    return context


def _listen(address: str, port: int, *, flag: str) -> socket.socket:
    try:
        if not address and socket.has_dualstack_ipv6():
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return socket.create_server((address, port), family=family)
    except (OSError, OverflowError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        raise UserError(
            f"cannot serve metrics on port {port}: {reason}; choose another with {flag}, 0 for any"
        ) from error


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
    if not answer.well:
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
