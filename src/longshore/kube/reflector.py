"""Mirrors one resource of the API server, and reports every change in order.

The initial state comes first (streamed if the server supports it, otherwise page by page), and then the
changes of a watch. When the watch breaks, it continues from the last version seen. Only if the server no
longer has that version (410), the state is fetched again, and the differences are reported as ordinary
changes, including deletions.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import structlog

from longshore.api.meta import ApiObject, Change
from longshore.kube.backoff import JitteredBackoff
from longshore.kube.client import Client
from longshore.kube.codec import Bookmark, Broken, Undecodable
from longshore.kube.errors import ApiError, ApiStatus, ConnectionFailed
from longshore.kube.listing import list_all
from longshore.kube.resources import Resource

T = TypeVar("T", bound=ApiObject)

log = structlog.get_logger()

# The API server sends a bookmark about once a minute, so a longer silence means a dead connection.
READ_TIMEOUT = 90.0
# The requested length of a watch is drawn from this range, so that watches do not all end together.
_WATCH_SECONDS = (300, 600)
# A watch that ends sooner than this without an event counts as a failure.
_SHORT_WATCH = 1.0


class KindGone(Exception):
    """The API server does not have this kind of object."""


class Reflector(Generic[T]):
    """Mirrors a resource into `store`, and calls `on_change` for every change.

    `on_change` is called from the loop that reads the watch, and must return quickly. `on_synced` is called
    when the store is complete for the first time.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        on_change: Callable[[Change[T]], None],
        *,
        on_synced: Callable[[], None] = lambda: None,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        streaming: bool = True,
        read_timeout: float = READ_TIMEOUT,
        backoff: JitteredBackoff | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.store: dict[str, T] = {}
        self.synced = asyncio.Event()
        # How often the state was fetched as a whole.
        self.lists = 0
        self._client = client
        self.resource = resource
        self._on_change = on_change
        self.on_synced = on_synced
        self._path = resource.path(namespace=namespace)
        self._selectors = {
            name: selector
            for name, selector in (("labelSelector", label_selector), ("fieldSelector", field_selector))
            if selector
        }
        self._streaming = streaming
        self._read_timeout = read_timeout
        self._backoff = backoff or JitteredBackoff()
        self._sleep = sleep
        # The version up to which the store is complete; empty if it must be fetched as a whole.
        self._version = ""
        self._heard = False
        # For kinds that may not exist: `run` raises KindGone, instead of trying again forever. The store is
        # kept, because the API server reports the deletion of a kind as deletions of its objects before.
        self.ends_with_its_kind = False

    @property
    def settled(self) -> bool:
        """Whether all objects that existed at the beginning are known."""
        return self.synced.is_set()

    def mute(self) -> None:
        """Report nothing more, not even what was read already."""
        self._on_change = lambda _change: None
        self.on_synced = lambda: None

    async def run(self) -> None:
        """Mirror until cancelled. Failures of the server or the network only cause waiting."""
        while True:
            started = time.monotonic()
            self._heard = False
            try:
                await self._follow()
                if self._heard or time.monotonic() - started > _SHORT_WATCH:
                    continue  # It is normal that the server ends a watch: continue immediately.
                reason, wait = "the watch ended as soon as it began", self._backoff.wait()
            except ApiError as error:
                if error.status == 404 and self.ends_with_its_kind:
                    self._version = ""
                    raise KindGone(str(error)) from error
                reason, wait = str(error), self._after_refusal(error)
            except (ConnectionFailed, Undecodable) as error:
                reason, wait = str(error), self._backoff.wait()
            if wait > 0:
                log.warning(
                    "watch interrupted", resource=str(self.resource), reason=reason, wait=round(wait, 2)
                )
                await self._sleep(wait)

    def _after_refusal(self, error: ApiError) -> float:
        """Return how long to wait, and set `_version` and `_streaming` for the next request."""
        if error.status == 410:
            forgotten, self._version = bool(self._version), ""
            # Immediately the first time, but with a wait if the server forgets even what it has just sent.
            return 0.0 if forgotten and self._heard else self._backoff.wait()
        if error.status in (400, 422) and self._streaming and not self._version:
            self._streaming = False
            return 0.0
        return self._backoff.wait(error.retry_after)

    async def _follow(self) -> None:
        if self._version:
            await self._watch(fresh=None)
        elif self._streaming:
            await self._watch(fresh={})
        else:
            await self._list()
            await self._watch(fresh=None)

    async def _list(self) -> None:
        listing = await list_all(self._client, self.resource, path=self._path, selectors=self._selectors)
        for message in listing.undecodable:
            log.warning("object left out", resource=str(self.resource), reason=message)
        self._replace(listing.items, listing.resource_version)

    async def _watch(self, fresh: dict[str, T] | None) -> None:
        """Follow the changes after `_version`. If `fresh` is given, first collect the whole state in it."""
        params = self._selectors | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(random.randint(*_WATCH_SECONDS)),
        }
        if fresh is None:
            params["resourceVersion"] = self._version
        else:
            params |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        codec = self.resource.codec
        buffer = bytearray()
        async with self._client.stream(
            self._path, params=params, accept=codec.accept_watch, read_timeout=self._read_timeout
        ) as content:
            while chunk := await content.readany():
                buffer += chunk
                for frame in codec.frames(buffer):
                    kind, item = codec.event(frame)
                    if fresh is None:
                        self._take(kind, item)
                    elif self._collect(fresh, kind, item):
                        fresh = None
                # Reading data that is already there does not yield to the loop, so yield here.
                await asyncio.sleep(0)

    def _collect(self, fresh: dict[str, T], kind: str, item: T | Bookmark | ApiStatus | Broken) -> bool:
        """Take one event of the initial state. Return whether the state is complete."""
        match item:
            case Bookmark(initial_events_end=True):
                self._replace(fresh, item.resource_version)
                return True
            case Bookmark():
                pass
            case ApiStatus():
                raise item.error()
            case Broken():
                log.warning(
                    "object left out", resource=str(self.resource), object=item.key, reason=item.message
                )
                fresh.pop(item.key, None)
            case _ if kind == "DELETED":
                fresh.pop(item.key, None)
            case _:
                fresh[item.key] = item
        return False

    def _take(self, kind: str, item: T | Bookmark | ApiStatus | Broken) -> None:
        """Take one event of the watch."""
        match item:
            case ApiStatus():
                raise item.error()
            case Bookmark():
                self._version = item.resource_version
            case Broken():
                log.warning(
                    "object left out", resource=str(self.resource), object=item.key, reason=item.message
                )
                self._delete(item.key)
                self._version = item.resource_version or self._version
            case _ if kind == "DELETED":
                self._delete(item.key, last=item)
                self._version = item.metadata.resource_version
            case _:
                self._put(item)
                self._version = item.metadata.resource_version
        if not self._heard:
            self._heard = True
            self._backoff.reset()

    def _replace(self, fresh: dict[str, T], version: str) -> None:
        for key in [key for key in self.store if key not in fresh]:
            self._delete(key)
        for item in fresh.values():
            self._put(item)
        self._version = version
        self._heard = True
        self._backoff.reset()
        self.lists += 1
        if not self.synced.is_set():
            self.synced.set()
            self.on_synced()

    def _put(self, item: T) -> None:
        key = item.key
        old = self.store.get(key)
        if old is not None and old.metadata.uid != item.metadata.uid:
            # The object was replaced by another one of the same name, and we missed the deletion.
            self._delete(key)
            old = None
        if old is not None and old.metadata.resource_version == item.metadata.resource_version:
            return
        self.store[key] = item
        self._on_change(Change(old, item))

    def _delete(self, key: str, last: T | None = None) -> None:
        old = self.store.pop(key, None)
        if old is not None:
            self._on_change(Change(last if last is not None else old, None))
