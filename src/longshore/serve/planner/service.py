"""A planner for other schedulers: serves plans over gRPC, with health and reflection.

    async with PlannerServer(build, listen=":7777") as server:
        await server.ready()
        ...

An exception in `build` reaches the caller as text and does not affect other calls. When the caller's deadline
passes or the caller disconnects, `build` is cancelled.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self

import structlog

from longshore.api.plan_request import PlanRequest
from longshore.errors import UserError
from longshore.podset.planner_wire import (
    MAX_MESSAGE,
    METHOD,
    SERVICE,
    Garbled,
    decode_request,
    encode_plan,
    one_line,
    require_grpc,
)
from longshore.serve.planner.metrics import Requests
from longshore.serve.planner.tls import credentials
from longshore.serve.tls_files import TLSFiles

if TYPE_CHECKING:
    import grpc
    import grpc.aio

    Context = grpc.aio.ServicerContext[bytes, bytes]

log = structlog.get_logger()

DEFAULT_LISTEN = ":7777"
GRACE_SECONDS = 5.0
# A scheduler requests one plan at a time, so this is also the number of schedulers that can be served.
MAX_PLANS = 16
_MAX_CALLS = 256

Build = Callable[[PlanRequest], Awaitable[Mapping[str, str]]]


class PlannerServer:
    """Listens until the block ends. Plans are made, and health is SERVING, after `ready` is called.

    `listen` is an address and a port, such as `127.0.0.1:0` for a free port; without an address, it means all
    addresses. At the end, plans in progress have `grace` seconds to finish. `requests` counts the calls.
    """

    def __init__(
        self,
        build: Build,
        *,
        listen: str = DEFAULT_LISTEN,
        tls: TLSFiles | None = None,
        grace: float = GRACE_SECONDS,
        requests: Requests | None = None,
    ) -> None:
        self._build = build
        self._host, self._port = _parsed(listen)
        self._tls = tls
        self._grace = grace
        self._requests = requests or Requests()
        self._ready = False
        self._plans = 0

    @property
    def port(self) -> int:
        return self._port

    async def __aenter__(self) -> Self:
        """Start serving. Raises UserError if the address or the certificates cannot be used."""
        require_grpc()
        import grpc.aio
        from grpc_health.v1 import health, health_pb2_grpc
        from grpc_reflection.v1alpha import reflection

        secret = credentials(self._tls) if self._tls else None
        self._server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", MAX_MESSAGE),
                # Otherwise a second planner on the same port would take half of the calls.
                ("grpc.so_reuseport", 0),
            ],
            maximum_concurrent_rpcs=_MAX_CALLS,
        )
        self._health = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        names = (SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self._server)
        method: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(self._answer)
        self._server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler(SERVICE, {METHOD: method})]
        )
        await self._set_health(serving=False)
        address = f"{self._host}:{self._port}"
        try:
            if secret is None:
                self._port = self._server.add_insecure_port(address)
            else:
                self._port = self._server.add_secure_port(address, secret)
        except RuntimeError as error:
            why = _bind_problem(self._host, self._port)
            raise UserError(
                f"cannot serve plans on {address}: {why}; choose another with --listen, or port 0 for any"
            ) from error
        await self._server.start()
        log.info("serving plans", port=self._port, tls=secret is not None)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._health.enter_graceful_shutdown()
        await self._server.stop(self._grace)

    async def ready(self) -> None:
        """Make plans from now on. Call this when the cluster is known completely."""
        self._ready = True
        await self._set_health(serving=True)

    async def _set_health(self, *, serving: bool) -> None:
        from grpc_health.v1.health_pb2 import HealthCheckResponse

        status = HealthCheckResponse.SERVING if serving else HealthCheckResponse.NOT_SERVING
        for service in ("", SERVICE):
            await self._health.set(service, status)

    async def _answer(self, data: bytes, context: "Context") -> bytes:
        from grpc import StatusCode

        try:
            answer = await self._plan(data, context)
        except asyncio.CancelledError:
            # The caller has disconnected, or its deadline has passed.
            self._requests.answered(StatusCode.CANCELLED.name)
            raise
        self._requests.answered(StatusCode.OK.name)
        return answer

    async def _refuse(self, context: "Context", code: "grpc.StatusCode", text: str) -> NoReturn:
        self._requests.answered(code.name)
        await context.abort(code, text)

    async def _plan(self, data: bytes, context: "Context") -> bytes:
        from grpc import StatusCode

        try:
            request = decode_request(data)
        except Garbled as error:
            await self._refuse(context, StatusCode.INVALID_ARGUMENT, str(error))
        if not request.namespace or not request.pod_set:
            text = "namespace and podSet are required"
            await self._refuse(context, StatusCode.INVALID_ARGUMENT, text)
        if not self._ready:
            text = "the planner is still reading the cluster: try again"
            await self._refuse(context, StatusCode.UNAVAILABLE, text)
        if self._plans >= MAX_PLANS:
            text = f"{MAX_PLANS} plans are already in progress: try again"
            await self._refuse(context, StatusCode.RESOURCE_EXHAUSTED, text)
        self._plans += 1
        try:
            return encode_plan(await self._build(request))
        except Exception as error:
            text = one_line(str(error)) or type(error).__name__
            log.warning(
                "no plan",
                namespace=request.namespace,
                pod_set=request.pod_set,
                reason=text,
                exc_info=not isinstance(error, UserError),
            )
            await self._refuse(context, StatusCode.INTERNAL, text)
        finally:
            self._plans -= 1


def _parsed(listen: str) -> tuple[str, int]:
    """Return the host and port. An IPv6 address must be in brackets, as in gRPC and Go."""
    host, colon, port = listen.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not port.isdecimal() or int(port) > 65535 or (":" in host and not bracketed):
        raise UserError(f"cannot serve plans on {listen!r}: give an address and a port, such as :7777")
    return host or "[::]", int(port)


def _bind_problem(host: str, port: int) -> str:
    """Bind to the same address to find out why gRPC could not, since gRPC does not report the reason."""
    address = host.strip("[]")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        socket.create_server((address, port), family=family).close()
    except OSError as error:
        return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
    return "the address cannot be used"
