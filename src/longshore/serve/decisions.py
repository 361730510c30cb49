"""/debug/pods/NAMESPACE/NAME: what the scheduler decided about a pod lately, the newest first.

For those who may get that pod: the API server is asked who the caller is, by the bearer token, and whether
they may.
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

# Strangers must not be able to keep the API server busy with questions about them.
_REVIEWS_AT_ONCE = 4
_BEARER = "Bearer "


class DecisionRoute:
    """`connect` is called once, by the thread that serves. `now` is the clock that the engine was told."""

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
            return _refusal(403, "a token is safe over HTTPS, or through a port forwarded to this machine")
        if not header.startswith(_BEARER):
            return _refusal(401, "show a bearer token")
        try:
            refusal = await self._refusal(header.removeprefix(_BEARER), namespace, name)
        except (ApiError, ConnectionFailed) as error:
            log.warning("cannot tell who asks for decisions", reason=str(error))
            return _refusal(503, "the API server cannot be asked who you are")
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
            raise RuntimeError("asked before the application was started")
        async with self._reviews:
            user = await user_of(self._client, token)
            if user is None:
                return _refusal(401, "the API server does not know this token")
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
