"""A planner for schedulers elsewhere: plans by gRPC, with health and reflection beside them.

    async with PlannerServer(build, listen=":7777") as server:
        await server.ready()
        ...

Whatever `build` raises reaches the caller as text and harms nobody else. When the caller's deadline passes,
or the caller goes away, `build` is cancelled.
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
from longshore.serve.planner.tls import ServerTLS, credentials

if TYPE_CHECKING:
    import grpc
    import grpc.aio

    Context = grpc.aio.ServicerContext[bytes, bytes]

log = structlog.get_logger()

DEFAULT_LISTEN = ":7777"
GRACE_SECONDS = 5.0
# A scheduler asks for one plan at a time: this many schedulers, and probes and the curious beside them.
MAX_PLANS = 16
_MAX_CALLS = 256

Build = Callable[[PlanRequest], Awaitable[Mapping[str, str]]]


class PlannerServer:
    """Listens while the block lasts; health says SERVING, and plans are made, from `ready` on.

    `listen` is an address and a port, such as `127.0.0.1:0` for any free one; without an address it is all of
    them. At the end plans that are being made have `grace` seconds to get done. `requests` counts.
    """

    def __init__(
        self,
        build: Build,
        *,
        listen: str = DEFAULT_LISTEN,
        tls: ServerTLS | None = None,
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
        """Raises UserError if it cannot listen there, or not with these certificates."""
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
        await self._say(serving=False)
        address = f"{self._host}:{self._port}"
        try:
            if secret is None:
                self._port = self._server.add_insecure_port(address)
            else:
                self._port = self._server.add_secure_port(address, secret)
        except RuntimeError as error:
            why = _bind_problem(self._host, self._port)
            raise UserError(
                f"cannot serve plans on {address}: {why}; choose another with --listen, port 0 for any"
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
        """From now on plans are made: all that they depend on is known."""
        self._ready = True
        await self._say(serving=True)

    async def _say(self, *, serving: bool) -> None:
        from grpc_health.v1.health_pb2 import HealthCheckResponse

        status = HealthCheckResponse.SERVING if serving else HealthCheckResponse.NOT_SERVING
        for service in ("", SERVICE):
            await self._health.set(service, status)

    async def _answer(self, data: bytes, context: "Context") -> bytes:
        from grpc import StatusCode

        try:
            answer = await self._plan(data, context)
        except asyncio.CancelledError:
            # The caller has gone, or its deadline has passed.
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
            text = "namespace and podSet must be given"
            await self._refuse(context, StatusCode.INVALID_ARGUMENT, text)
        if not self._ready:
            text = "the planner is still reading the cluster: try again"
            await self._refuse(context, StatusCode.UNAVAILABLE, text)
        if self._plans >= MAX_PLANS:
            text = f"{MAX_PLANS} plans are being made already: try again"
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
    """Host and port, as gRPC and Go write them: an address of IP version 6 stands in brackets."""
    host, colon, port = listen.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not port.isdecimal() or int(port) > 65535 or (":" in host and not bracketed):
        raise UserError(f"cannot serve plans on {listen!r}: give an address and a port, such as :7777")
    return host or "[::]", int(port)


def _bind_problem(host: str, port: int) -> str:
    """gRPC keeps the reason to itself: try the same once more in its place."""
    address = host.strip("[]")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        socket.create_server((address, port), family=family).close()
    except OSError as error:
        return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
    return "the address cannot be used"
