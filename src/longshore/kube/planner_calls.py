"""Calls of planners by gRPC: one try, one connection for each call, a time limit that includes connecting.

A planner is called rarely, once for a set. A new connection for each call finds a planner that has moved,
reaches all replicas behind a Service in turn, and leaves nothing behind.
"""

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from longshore.api.plan_request import PlanRequest
from longshore.errors import UserError
from longshore.kube.tls import Unusable, identify, trust
from longshore.podset.planner_wire import (
    MAX_MESSAGE,
    METHOD,
    SERVICE,
    Garbled,
    decode_plan,
    encode_request,
    one_line,
    require_grpc,
)

if TYPE_CHECKING:
    import grpc
    import grpc.aio

_PATH = f"/{SERVICE}/{METHOD}"
# The deadline that a planner sees is rounded up, from 10 s on to tenths: 15 must not become 15.1.
_ROUNDING = 0.02

_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    # Connections of one process are shared by address otherwise, and with them the wait after a failure.
    ("grpc.use_local_subchannel_pool", 1),
    # Planners are in the cluster, and the proxy that leads out of it does not know them.
    ("grpc.enable_http_proxy", 0),
)

# What the core of gRPC says about a connection, in longer sentences.
_LEAD = re.compile(
    r"^failed to connect to all addresses; last error: [A-Z_]+: \S+: (Failed to connect to remote host: )?"
)
_SLAMMED = re.compile(r"^failed to connect.*: Socket closed$")
_TOO_LONG = re.compile(r"CLIENT: Received message larger than max|^Decompressed message larger than max")
_DISCONNECTED = (
    (re.compile(r"http1\.x server"), "is not a planner: it speaks HTTP/1, not gRPC"),
    (re.compile(r"Failed parsing HTTP/2"), "is not a planner: it does not speak gRPC"),
    (re.compile(r"address lookup failed for .*: (.*?)\]?$"), "has no address: {}"),
    (re.compile(r"WRONG_VERSION_NUMBER"), "does not speak TLS"),
    (
        re.compile(r"CERTIFICATE_VERIFY_FAILED: (.*?)(?:: OK)?$"),
        "presents a certificate that is not trusted: {}",
    ),
    (re.compile(r"Hostname Verification Check failed"), "presents a certificate for another name"),
)


class PlannerFailed(Exception):
    """No plan came from this planner. `reason` completes a sentence that begins with its address."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"planner {address} {reason}")
        self.address = address
        self.reason = reason


class ClientTLS(msgspec.Struct, frozen=True):
    """Files in PEM format, read for every call: the authority, and a client certificate if planners want one.

    `server_name` is the name in the certificates of planners, if it is not their address.
    """

    ca: Path
    certificate: Path | None = None
    key: Path | None = None
    server_name: str = ""


class PlannerCalls:
    """Calls planners in clear text, or all of them with TLS. Raises UserError if `tls` cannot be used."""

    def __init__(self, tls: ClientTLS | None = None) -> None:
        self._tls = tls
        if tls is not None:
            _read(tls)

    async def call(self, address: str, request: PlanRequest, *, timeout: float) -> dict[str, str]:
        """Return the node of each pod for which the planner found one. Raises PlannerFailed."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + timeout - min(_ROUNDING, timeout / 100)
        try:
            # gRPC takes a tenth of a second to load, and files may be slow: not on the event loop.
            secret = await asyncio.to_thread(self._prepared)
        except UserError as error:
            raise PlannerFailed(address, f"cannot be called: {error}") from error
        from grpc.aio import AioRpcError

        async with self._channel(address, secret) as channel:
            ask: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(_PATH)
            try:
                return decode_plan(await ask(encode_request(request), timeout=deadline - clock()))
            except AioRpcError as error:
                reason = self._reason(error, timeout)
            except Garbled as error:
                reason = f"sent an invalid answer: {error}"
        # Not `from error`: that holds the connection open for as long as anyone keeps the exception.
        raise PlannerFailed(address, reason)

    def _prepared(self) -> "grpc.ChannelCredentials | None":
        require_grpc()
        if self._tls is None:
            return None
        from grpc import ssl_channel_credentials

        return ssl_channel_credentials(*_read(self._tls))

    def _channel(self, address: str, secret: "grpc.ChannelCredentials | None") -> "grpc.aio.Channel":
        from grpc.aio import insecure_channel, secure_channel

        target = f"dns:///{address}"
        if self._tls is None or secret is None:
            return insecure_channel(target, options=_OPTIONS)
        name = self._tls.server_name
        override = (("grpc.ssl_target_name_override", name),) if name else ()
        return secure_channel(target, secret, options=(*_OPTIONS, *override))

    def _reason(self, error: "grpc.aio.AioRpcError", timeout: float) -> str:
        from grpc import StatusCode

        text = one_line(error.details() or "no explanation given")
        match error.code():
            case StatusCode.DEADLINE_EXCEEDED:
                return f"did not answer within {timeout:g} s"
            case StatusCode.UNAVAILABLE:
                return self._disconnected(text)
            case StatusCode.UNIMPLEMENTED:
                return f"is not a planner: it does not know {_PATH} ({text})"
            case StatusCode.RESOURCE_EXHAUSTED if _TOO_LONG.search(text):
                return f"sent an answer of more than {MAX_MESSAGE >> 20} MiB"
            case StatusCode.INTERNAL:
                return f"failed: {text}"
            case code:
                return f"failed: {text} ({code.name})"

    def _disconnected(self, text: str) -> str:
        """Return why there is no connection any more, in fewer words than gRPC's core uses."""
        for pattern, reason in _DISCONNECTED:
            if found := pattern.search(text):
                return reason.format(*found.groups())
        if _SLAMMED.search(text):
            wanted = "TLS" if self._tls is None else "another client certificate"
            return f"closed the connection at once: it may want {wanted}"
        return f"is unavailable: {_LEAD.sub('', text)}"


def _read(tls: ClientTLS) -> tuple[bytes, bytes | None, bytes | None]:
    """Return authority, key and certificate. gRPC would not say what is wrong with them."""
    if (tls.certificate is None) != (tls.key is None):
        raise UserError("a client certificate for planners requires its key: give both or neither")
    try:
        ca = tls.ca.read_bytes()
        certificate = tls.certificate.read_bytes() if tls.certificate else None
        key = tls.key.read_bytes() if tls.key else None
    except OSError as error:
        raise UserError(f"cannot read {error.filename}: {error.strerror}") from error
    try:
        context = trust(ca)
    except Unusable as error:
        raise UserError(f"cannot verify planners: {tls.ca} {error}") from error
    try:
        if certificate is not None and key is not None:
            identify(context, certificate=certificate, key=key)
    except Unusable as error:
        raise UserError(
            f"cannot use the client certificate for planners: {tls.certificate} {error}"
        ) from error
    return ca, key, certificate
