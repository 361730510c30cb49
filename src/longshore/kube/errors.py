"""The errors of requests to the API server."""

import msgspec
from google.protobuf.message import DecodeError

from longshore.kube._pb import kubernetes_pb2 as pb

# The first bytes of every object that the API server sends as protobuf.
MAGIC = b"k8s\0"


class ApiError(Exception):
    """The API server answered with an error."""

    def __init__(self, status: int, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(f"{message} ({status} {reason})" if reason else f"{message} ({status})")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after


class ConnectionFailed(Exception):
    """There was no response: the connection was refused, reset, or cut off, or it timed out.

    If `sent` is true, the request may have reached the server, so a write may have succeeded.
    """

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class StatusDetails(msgspec.Struct, rename="camel"):
    retry_after_seconds: int = 0


class ApiStatus(msgspec.Struct, rename="camel"):
    """The `Status` object that the API server sends instead of a result."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: StatusDetails | None = None

    def error(self) -> ApiError:
        retry_after = self.details.retry_after_seconds if self.details else 0
        return ApiError(self.code, self.reason, self.message, float(retry_after) if retry_after else None)


def protobuf_status(raw: bytes) -> ApiStatus:
    message = pb.Status.FromString(raw)
    details = StatusDetails(message.details.retry_after_seconds)
    return ApiStatus(message.code, message.reason, message.message, details)


def api_error(status: int, body: bytes, retry_after: str | None) -> ApiError:
    """Return the error for an HTTP response, whatever its body contains."""
    try:
        if body.startswith(MAGIC):
            answer = protobuf_status(pb.Unknown.FromString(body[len(MAGIC) :]).raw)
        else:
            answer = msgspec.json.decode(body, type=ApiStatus)
    except (msgspec.DecodeError, UnicodeDecodeError, DecodeError):
        # Not from the API server itself, but from a proxy in front of it.
        text = body[:200].decode(errors="replace").strip().partition("\n")[0]
        answer = ApiStatus(message=text or "no explanation given")
    wait = (
        float(retry_after)
        if retry_after is not None and retry_after.isdigit()
        else answer.error().retry_after
    )
    return ApiError(status, answer.reason, answer.message, wait)
