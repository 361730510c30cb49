"""Who someone is, and whether they may: the API server is asked, so that its rules are the only ones.

To ask about others takes the right to create TokenReviews and SubjectAccessReviews.
"""

from typing import Any

import msgspec

from longshore.kube.client import Client
from longshore.kube.errors import ApiError
from longshore.kube.resources import Resource

_TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - an address
_ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_OWN_ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class User(msgspec.Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class _TokenStatus(msgspec.Struct):
    authenticated: bool = False
    user: User = User()


class _AccessStatus(msgspec.Struct):
    allowed: bool = False


class _TokenReview(msgspec.Struct):
    status: _TokenStatus


class _AccessReview(msgspec.Struct):
    status: _AccessStatus


async def user_of(client: Client, token: str) -> User | None:
    """Whose token it is; None if it is nobody's, or no longer. Raises ApiError and ConnectionFailed."""
    body = _review("authentication.k8s.io/v1", "TokenReview", {"token": token})
    status = msgspec.json.decode(
        await client.request("POST", _TOKEN_REVIEWS, body=body), type=_TokenReview
    ).status
    return status.user if status.authenticated else None


async def may_get_pod(client: Client, user: User, *, namespace: str, name: str) -> bool:
    """Whether the user may get the pod. Raises ApiError and ConnectionFailed."""
    spec = {
        "user": user.username,
        "uid": user.uid,
        "groups": user.groups,
        "extra": user.extra,
        "resourceAttributes": {
            "verb": "get",
            "version": "v1",
            "resource": "pods",
            "namespace": namespace,
            "name": name,
        },
    }
    body = _review("authorization.k8s.io/v1", "SubjectAccessReview", spec)
    answer = await client.request("POST", _ACCESS_REVIEWS, body=body)
    return msgspec.json.decode(answer, type=_AccessReview).status.allowed


async def may_i(client: Client, verb: str, resource: Resource[Any], *, subresource: str = "") -> bool:
    """Whether we may, in all namespaces. Raises ConnectionFailed, and ApiError if it does not know us.

    A server that does not let us ask is taken to let us do it: it will say so if it does not.
    """
    attributes = {
        "verb": verb,
        "group": resource.group,
        "version": resource.version,
        "resource": resource.plural,
        "subresource": subresource,
    }
    body = _review("authorization.k8s.io/v1", "SelfSubjectAccessReview", {"resourceAttributes": attributes})
    try:
        answer = await client.request("POST", _OWN_ACCESS_REVIEWS, body=body)
    except ApiError as error:
        if error.status == 401:
            raise
        return True
    return msgspec.json.decode(answer, type=_AccessReview).status.allowed


def _review(api_version: str, kind: str, spec: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"apiVersion": api_version, "kind": kind, "spec": spec})
