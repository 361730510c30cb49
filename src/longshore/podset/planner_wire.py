"""The planner protocol on the wire, for the side that asks and for the side that plans.

Messages become bytes here and not inside gRPC, so that bytes which are no message are told like any other
error. gRPC itself is loaded when the first planner is served or called: schedulers without one never pay.
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
# Longer messages are taken by neither side: 30,000 pods with names as long as Kubernetes lets them be.
MAX_MESSAGE = 16 * 2**20
# The text of an error travels in a header, escaped, and a caller may take no more than 8 KiB of those.
_MAX_TEXT = 512
# The extra `planner` as a whole, for both sides.
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
        raise Garbled("the request is no SchedulePlanRequest") from error
    return PlanRequest(
        message.namespace, message.podSet, message.scheduledPod, tuple(message.eligibleNodes[:])
    )


def encode_plan(assignments: Mapping[str, str]) -> bytes:
    """Equal plans give equal bytes."""
    return pb.SchedulePlanResponse(assignments=assignments).SerializeToString(deterministic=True)


def decode_plan(data: bytes) -> dict[str, str]:
    try:
        return dict(pb.SchedulePlanResponse.FromString(data).assignments)
    except DecodeError as error:
        raise Garbled("the answer is no SchedulePlanResponse") from error


def one_line(text: str) -> str:
    """What the other side, or gRPC, has to say about an error: on one line, and not endless."""
    return " ".join("".join(char if char.isprintable() else " " for char in text[:_MAX_TEXT]).split())


def require_grpc() -> None:
    """Raises UserError if the packages for gRPC are not there. Call it before the first import of one."""
    # Read as it is imported. Its core writes lines of its own to stderr, about errors that are told anyway.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        for name in _PACKAGES:
            importlib.import_module(name)
    except ImportError as error:
        raise UserError(
            f"planners speak gRPC, which is missing: install longshore[planner] ({error})"
        ) from error
