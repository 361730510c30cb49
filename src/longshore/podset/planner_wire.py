"""The planner protocol on the wire, for the side that asks and for the side that plans.

Messages become bytes here and not inside gRPC, so that bytes that are not a message are reported like any
other error. gRPC itself is loaded when the first planner is served or called.
"""

import importlib
import os
from collections.abc import Mapping

from google.protobuf.message import DecodeError

from longshore.api.plan_request import PlanRequest
from longshore.errors import UserError
from longshore.podset._pb import planner_pb2 as pb

SERVICE = "planner.SchedulePlanner"
METHOD = "BuildSchedulePlan"
# Neither side accepts longer messages. This is room for 30,000 pods with names of the maximum length.
MAX_MESSAGE = 16 * 2**20
# The text of an error is sent in a header, escaped, and callers may accept only 8 KiB of headers.
_MAX_TEXT = 512
# The packages of the extra `planner`, for both sides.
_PACKAGES = ("grpc.aio", "grpc_health.v1.health", "grpc_reflection.v1alpha.reflection")


class Garbled(ValueError):
    """These bytes are not the message that was expected."""


def encode_request(request: PlanRequest) -> bytes:
    message = pb.SchedulePlanRequest(
        namespace=request.namespace,
        podSet=request.pod_set,
        scheduledPod=request.scheduled_pod,
        eligibleNodes=request.eligible_nodes,
    )
    return message.SerializeToString()


def decode_request(data: bytes) -> PlanRequest:
    try:
        message = pb.SchedulePlanRequest.FromString(data)
    except DecodeError as error:
        raise Garbled("the request is not a SchedulePlanRequest") from error
    return PlanRequest(
        message.namespace, message.podSet, message.scheduledPod, tuple(message.eligibleNodes[:])
    )


def encode_plan(assignments: Mapping[str, str]) -> bytes:
    """Return the same bytes for equal plans."""
    return pb.SchedulePlanResponse(assignments=assignments).SerializeToString(deterministic=True)


def decode_plan(data: bytes) -> dict[str, str]:
    try:
        return dict(pb.SchedulePlanResponse.FromString(data).assignments)
    except DecodeError as error:
        raise Garbled("the answer is not a SchedulePlanResponse") from error


def one_line(text: str) -> str:
    """Return the text of an error from the other side, or from gRPC, on one line and shortened."""
    return " ".join("".join(char if char.isprintable() else " " for char in text[:_MAX_TEXT]).split())


def require_grpc() -> None:
    """Raise UserError if the packages for gRPC are missing. Call this before the first import of one."""
    # gRPC reads this when it is imported. Its core writes errors to stderr that are reported anyway.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        for name in _PACKAGES:
            importlib.import_module(name)
    except ImportError as error:
        raise UserError(
            f"planners speak gRPC, which is missing: install longshore[planner] ({error})"
        ) from error
