"""Writes to the API server, each of which happens once.

If a response is lost (because the connection broke, or the server failed halfway), the write may have
happened or not. It is then never simply repeated: the object is read, and its state decides.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from typing import Any, Protocol
from urllib.parse import quote, urlencode

import msgspec

from longshore.engine.events import Conflict, Failed, Gone, Outcome, Succeeded
from longshore.kube.backoff import JitteredBackoff
from longshore.kube.errors import ApiError, ConnectionFailed, api_error
from longshore.kube.pool import Response
from longshore.kube.resources import PODS, Resource

JsonObject = dict[str, Any]

FIELD_MANAGER = "longshore"
# Long enough to restart an API server, and short enough to try a pod on another node.
_GIVE_UP_AFTER = 60.0
# Metadata that the server itself changes with every write.
_SERVERS_OWN = frozenset({"generation", "managedFields", "resourceVersion"})


class Patch(Enum):
    """The kinds of patches, with their media types."""

    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    JSON = "application/json-patch+json"
    APPLY = "application/apply-patch+yaml"


class Transport(Protocol):
    """Sends one request to the API server: a `Pool`, or a fake in a test."""

    async def send(
        self, method: str, target: str, body: bytes = b"", *, content_type: str = ..., timeout: float = ...
    ) -> Response: ...


class _Landed(Enum):
    YES = 1
    NO = 2
    OTHER = 3  # The object exists, but it is not as our write would have left it.


# Reads the object, and returns whether it contains our write, with the object itself.
_Look = Callable[[], Awaitable[tuple[_Landed, bytes]]]


class _ObjectMeta(msgspec.Struct, rename="camel"):
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None


class _PodSpec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _BoundPod(msgspec.Struct):
    metadata: _ObjectMeta
    spec: _PodSpec


class Writer:
    """Creates, updates, patches, deletes, and binds, with at most `concurrency` writes at a time."""

    def __init__(
        self,
        transport: Transport,
        *,
        concurrency: int = 48,
        timeout: float = 10.0,
        give_up_after: float = _GIVE_UP_AFTER,
    ) -> None:
        self._transport = transport
        self._slots = asyncio.Semaphore(concurrency)
        self._timeout = timeout
        self._give_up_after = give_up_after
        # The number of writes that have not ended, including those that wait for a slot.
        self.under_way = 0

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> Outcome:
        """Bind a pod to a node, if it still has this UID and is not bound to another node."""
        body = msgspec.json.encode(
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": name, "namespace": namespace, "uid": uid},
                "target": {"apiVersion": "v1", "kind": "Node", "name": node},
            }
        )
        path = PODS.path(namespace=namespace, name=name)

        async def look() -> tuple[_Landed, bytes]:
            pod = msgspec.json.decode(await self._read(path), type=_BoundPod)
            if pod.metadata.uid != uid or pod.spec.node_name not in ("", node):
                return _Landed.OTHER, b""
            return (_Landed.YES if pod.spec.node_name else _Landed.NO), b""

        try:
            await self._write("POST", f"{path}/binding", body, look=look)
        except ApiError as error:
            if error.status == 404:
                return Gone(error.message, error.status, error.reason)
            if error.status == 409:
                return Conflict(error.message, error.status, error.reason)
            return Failed(str(error), error.status, error.reason)
        except ConnectionFailed as error:
            return Failed(str(error))
        return Succeeded()

    async def create(self, resource: Resource[Any], namespace: str, body: JsonObject) -> bytes:
        """Create an object. With `generateName`, a lost response cannot be resolved and is raised."""
        name = body["metadata"].get("name")
        path = resource.path(namespace=namespace)
        look = self._finds(f"{path}/{quote(name)}", body) if name else None
        return await self._write("POST", path, msgspec.json.encode(body), look=look)

    async def update(
        self, resource: Resource[Any], namespace: str, name: str, body: JsonObject, *, subresource: str = ""
    ) -> bytes:
        """Replace an object. Its `resourceVersion` protects against changes made meanwhile."""
        path = resource.path(namespace=namespace, name=name)
        version = body["metadata"].get("resourceVersion")
        look = self._finds(path, body, unchanged_at=version)
        target = f"{path}/{subresource}" if subresource else path
        return await self._write("PUT", target, msgspec.json.encode(body), look=look)

    async def patch(
        self,
        resource: Resource[Any],
        namespace: str,
        name: str,
        patch: JsonObject | list[JsonObject],
        *,
        kind: Patch = Patch.MERGE,
        subresource: str = "",
        force: bool = False,
    ) -> bytes:
        """Change a part of an object. A JSON patch is not repeated: a lost response is raised."""
        path = resource.path(namespace=namespace, name=name)
        params = {"fieldManager": FIELD_MANAGER}
        if kind is Patch.APPLY and force:
            params["force"] = "true"
        target = f"{path}/{subresource}" if subresource else path
        look = self._finds(path, patch, may_repeat=True) if isinstance(patch, dict) else None
        return await self._write(
            "PATCH",
            f"{target}?{urlencode(params)}",
            msgspec.json.encode(patch),
            content_type=kind.value,
            look=look,
        )

    async def delete(self, resource: Resource[Any], namespace: str, name: str, *, uid: str = "") -> None:
        """Delete an object, if it still has this UID. It is not an error if it is already gone."""
        path = resource.path(namespace=namespace, name=name)
        body: JsonObject = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            body["preconditions"] = {"uid": uid}

        async def look() -> tuple[_Landed, bytes]:
            meta = msgspec.json.decode(await self._read(path), type=_Bare).metadata
            ended = meta.deletion_timestamp is not None or bool(uid and meta.uid != uid)
            return (_Landed.YES if ended else _Landed.NO), b""

        try:
            await self._write("DELETE", path, msgspec.json.encode(body), look=look)
        except ApiError as error:
            if error.status != 404:
                raise

    async def read(self, resource: Resource[Any], namespace: str, name: str) -> bytes:
        """Return an object as JSON."""
        async with self._slots:
            return await self._read(resource.path(namespace=namespace, name=name))

    async def _read(self, path: str) -> bytes:
        return await self._send("GET", path, b"", "application/json")

    def _finds(
        self,
        path: str,
        sent: JsonObject,
        *,
        unchanged_at: str | None = None,
        may_repeat: bool = False,
    ) -> _Look:
        """Return a function that checks whether the object at the path contains everything that was sent."""
        metadata = {
            name: value for name, value in sent.get("metadata", {}).items() if name not in _SERVERS_OWN
        }
        wanted = sent | {"metadata": metadata}

        async def look() -> tuple[_Landed, bytes]:
            try:
                body = await self._read(path)
            except ApiError as error:
                if error.status == 404 and not may_repeat and unchanged_at is None:
                    return _Landed.NO, b""
                raise
            found = msgspec.json.decode(body)
            if unchanged_at is not None and found["metadata"].get("resourceVersion") == unchanged_at:
                return _Landed.NO, b""
            if contains(found, wanted):
                return _Landed.YES, body
            return (_Landed.NO if may_repeat else _Landed.OTHER), b""

        return look

    async def _write(
        self,
        method: str,
        target: str,
        body: bytes,
        *,
        content_type: str = "application/json",
        look: _Look | None,
    ) -> bytes:
        self.under_way += 1
        try:
            return await self._send_until_answered(method, target, body, content_type, look)
        finally:
            self.under_way -= 1

    async def _send_until_answered(
        self, method: str, target: str, body: bytes, content_type: str, look: _Look | None
    ) -> bytes:
        """Send until there is a response. Before a repetition that might write twice, read the object."""
        uncertain = False
        async with self._slots:
            waits = _RetryWaits(self._give_up_after)
            while True:
                error: ApiError | ConnectionFailed
                try:
                    return await self._send(method, target, body, content_type)
                except (ApiError, ConnectionFailed) as failure:
                    error = failure
                # A conflict may be with our own earlier try, which succeeded.
                if not _passing(error) and not (uncertain and _is_conflict(error)):
                    raise error
                uncertain = uncertain or _may_have_landed(error)
                if uncertain and look is None:
                    raise error
                if _passing(error):
                    await waits.wait_after(error)
                if uncertain and look is not None:
                    landed, found = await self._look_until_answered(look)
                    if landed is _Landed.YES:
                        return found
                    if landed is _Landed.OTHER or not _passing(error):
                        raise error if isinstance(error, ApiError) else _changed_by_another(target)

    async def _send(self, method: str, target: str, body: bytes, content_type: str) -> bytes:
        answer = await self._transport.send(
            method, target, body, content_type=content_type, timeout=self._timeout
        )
        if answer.status >= 300:
            raise api_error(answer.status, answer.body, answer.retry_after)
        return answer.body

    async def _look_until_answered(self, look: _Look) -> tuple[_Landed, bytes]:
        """Read the object, and try again until the server answers."""
        waits = _RetryWaits(self._give_up_after)
        while True:
            try:
                return await look()
            except (ApiError, ConnectionFailed) as failure:
                if not _passing(failure):
                    raise
                error = failure
            await waits.wait_after(error)


class _RetryWaits:
    """The waits between tries, longer each time, up to a total limit."""

    def __init__(self, seconds: float) -> None:
        self._clock = asyncio.get_running_loop().time
        self._end = self._clock() + seconds
        self._backoff = JitteredBackoff(first=0.1, most=5.0)

    async def wait_after(self, error: ApiError | ConnectionFailed) -> None:
        """Wait as long as the server asked for, or with backoff. Raises the error if the limit is reached."""
        wait = self._backoff.wait(error.retry_after if isinstance(error, ApiError) else None)
        if self._clock() + wait > self._end:
            raise error
        await asyncio.sleep(wait)


class _Bare(msgspec.Struct):
    metadata: _ObjectMeta


def _passing(error: ApiError | ConnectionFailed) -> bool:
    """Whether another try makes sense: there was no connection, or the server is busy or fails for now."""
    return isinstance(error, ConnectionFailed) or error.status == 429 or error.status >= 500


def _may_have_landed(error: ApiError | ConnectionFailed) -> bool:
    return error.sent if isinstance(error, ConnectionFailed) else error.status >= 500


def _is_conflict(error: ApiError | ConnectionFailed) -> bool:
    return isinstance(error, ApiError) and error.status == 409


def _changed_by_another(target: str) -> ApiError:
    return ApiError(409, "Conflict", f"{target}: changed by another client while the response was lost")


def contains(found: object, sent: object) -> bool:
    """Whether the found object contains everything that was sent. A null means an absent field."""
    if isinstance(sent, Mapping):
        return isinstance(found, Mapping) and all(
            contains(found.get(key), value) for key, value in sent.items()
        )
    # A body that was built from structs has tuples instead of lists.
    if isinstance(sent, list | tuple):
        return (
            isinstance(found, list | tuple)
            and len(found) == len(sent)
            and all(contains(f, s) for f, s in zip(found, sent, strict=True))
        )
    return found == sent
