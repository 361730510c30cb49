"""/debug/pods/NAMESPACE/NAME: the recorded decisions about a pod, the newest first.

A caller must be allowed to get that pod. The API server authenticates the caller's bearer token and
authorizes the request.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from ipaddress import ip_address

import msgspec
import structlog
from aiohttp import web

from longshore.engine.answers.records import Recorded, Records, path_of
from longshore.kube.access import may_get_pod, user_of
from longshore.kube.client import Client
from longshore.kube.config import Connection
from longshore.kube.errors import ApiError, ConnectionFailed

log = structlog.get_logger()

# The most concurrent reviews, so that requests from unknown callers cannot overload the API server.
_REVIEWS_AT_ONCE = 4
_BEARER = "Bearer "


class DecisionRoute:
    """The route that answers with decisions.

    `connect` is called once, in the server's thread. `now` is the clock that the engine uses.
    """

    def __init__(
        self,
        records: Records,
        connect: Callable[[], Connection],
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._records = records
        self._connect = connect
        self._now = now
        self._reviews = asyncio.Semaphore(_REVIEWS_AT_ONCE)
        self._client: Client | None = None

    def add_to(self, application: web.Application) -> None:
        application.cleanup_ctx.append(self._connected)
        application.router.add_get(path_of("{namespace}", "{name}"), self._answer)

    async def _connected(self, application: web.Application) -> AsyncIterator[None]:  # noqa: ARG002
        async with Client(self._connect()) as self._client:
            yield

    async def _answer(self, request: web.Request) -> web.Response:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        header = request.headers.get("Authorization", "")
        if not request.secure and not _is_local(request.remote):
            return _refusal(403, "send tokens only over HTTPS, or through kubectl port-forward")
        if not header.startswith(_BEARER):
            return _refusal(401, "a bearer token is required")
        try:
            refusal = await self._refusal(header.removeprefix(_BEARER), namespace, name)
        except (ApiError, ConnectionFailed) as error:
            log.warning("cannot authorize a request for decisions", reason=str(error))
            return _refusal(503, "the API server cannot be reached to authorize the request")
        if refusal is not None:
            return refusal
        offset = time.time() - self._now()
        decisions = [
            msgspec.structs.replace(decision, time=decision.time + offset)
            for decision in self._records.of(namespace, name)
        ]
        body = msgspec.json.encode(Recorded(tuple(decisions)))
        return web.Response(body=body, content_type="application/json")

    async def _refusal(self, token: str, namespace: str, name: str) -> web.Response | None:
        if self._client is None:
            raise RuntimeError("the application has not started")
        async with self._reviews:
            user = await user_of(self._client, token)
            if user is None:
                return _refusal(401, "the API server does not accept this token")
            if not await may_get_pod(self._client, user, namespace=namespace, name=name):
                return _refusal(403, f'user "{user.username}" cannot get pod {name} in namespace {namespace}')
        return None


def _refusal(status: int, message: str) -> web.Response:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    body = msgspec.json.encode({"kind": "Status", "code": status, "message": message})
    return web.Response(status=status, body=body, content_type="application/json", headers=headers)


def _is_local(address: str | None) -> bool:
    try:
        return address is not None and ip_address(address).is_loopback
    except ValueError:
        return False
