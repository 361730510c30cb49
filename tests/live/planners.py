"""Stub planners, and other servers that listen where a planner is expected."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import grpc
import grpc.aio

Context = grpc.aio.ServicerContext[bytes, bytes]
Answer = Callable[[bytes, Context], Awaitable[bytes]]


@dataclass(frozen=True)
class Heard:
    message: bytes
    seconds_left: float
    metadata: dict[str, str | bytes]
    peer: str


class Planner:
    """A server of one gRPC method that answers with any bytes and keeps the requests that it received."""

    def __init__(self, answer: Answer, *, service: str = "planner.SchedulePlanner") -> None:
        self._answer = answer
        self._service = service
        self.heard: list[Heard] = []
        self.address = ""

    async def _hear(self, message: bytes, context: Context) -> bytes:
        metadata = dict(context.invocation_metadata() or ())
        self.heard.append(Heard(message, context.time_remaining(), metadata, context.peer()))
        return await self._answer(message, context)

    @contextlib.asynccontextmanager
    async def running(
        self, *, port: int = 0, compression: grpc.Compression | None = None
    ) -> AsyncIterator["Planner"]:
        method: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(self._hear)
        handler = grpc.method_handlers_generic_handler(self._service, {"BuildSchedulePlan": method})
        server = grpc.aio.server(handlers=[handler], compression=compression)
        self.address = f"127.0.0.1:{server.add_insecure_port(f'127.0.0.1:{port}')}"
        await server.start()
        try:
            yield self
        finally:
            await server.stop(0)


def answering(data: bytes, *, service: str = "planner.SchedulePlanner") -> Planner:
    async def answer(message: bytes, context: Context) -> bytes:
        return data

    return Planner(answer, service=service)


def refusing(code: grpc.StatusCode, text: str) -> Planner:
    async def answer(message: bytes, context: Context) -> bytes:
        await context.abort(code, text)

    return Planner(answer)


@contextlib.asynccontextmanager
async def listener(*sayings: bytes, reset: bool = False) -> AsyncIterator[str]:
    """Return the address of a server that sends these answers one by one, and then is silent or resets."""
    ending = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for saying in sayings:
            await reader.read(2**16)
            writer.write(saying)
        if reset:
            await reader.read(2**16)
            # Closing without lingering is a reset.
            connection: socket.socket = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            await ending.wait()
        writer.transport.abort()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        ending.set()
        server.close()
        await server.wait_closed()
