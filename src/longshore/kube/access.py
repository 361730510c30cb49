"""Authentication and authorization by the API server, so that its rules are the only ones.

Asking about others requires permission to create TokenReviews and SubjectAccessReviews.
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
    """Return the user of the token, or None if it is not valid. Raises ApiError and ConnectionFailed."""
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
    """Whether we have this permission in all namespaces.

    If the server does not let us ask, the answer is yes: it will reject the request itself if it must. Raises
    ConnectionFailed, and ApiError if our credentials are not valid.
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
